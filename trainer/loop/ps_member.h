// A worker of parameter servers: from join to bye.
//
//   joining --PsRoster--> linked (tables open, first values put)
//   linked --PhaseStart--> in a phase --its end--> linked
//   any but joining --the group is over--> joining   (says so with a Join)
//   any --PsRoster--> linked                         (of a new generation)
//   any --Leave, SIGTERM--> ended
//
// There is no collective: a worker meets the others at the servers alone, and the
// model is theirs. So it brings nothing into a new generation, and nothing is healed.
// A group is over here with Abort, with the order of a later generation, or when a
// server says so. In a phase this worker leaves between two batches; one that nobody
// answers is released after kLeaveGrace.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "trainer/loop/ps_state.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::trainer {

class PsMember {
 public:
  static constexpr Duration kLeaveGrace = std::chrono::seconds(2);

  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    std::uint64_t seed = 0;          // of the rows that servers draw: the job's
    std::uint32_t eval_batch = 256;  // records
    transport::KeyPair keys = {};    // of its own, for servers that are reached over tcp
    wire::Device device = {};
  };
  PsMember(PsTools tools, Parts parts);

  // Until the job or this worker's part of it ends; answers the exit code, and bye
  // has been said. An error is why this worker gives up; the caller says so.
  [[nodiscard]] Result<int> run();

 private:
  [[nodiscard]] Result<int> live();
  // Each answers an exit code when the worker's life ends with it.
  using Verdict = Result<std::optional<int>>;
  void join(std::string problem);
  [[nodiscard]] Verdict turn();
  [[nodiscard]] Verdict obey(const client::Directive& directive);
  [[nodiscard]] Verdict on(const wire::PsRoster& roster);
  [[nodiscard]] Verdict on(const wire::PhaseStart& start);
  [[nodiscard]] Verdict on(const wire::Abort& abort);
  [[nodiscard]] Verdict on(const wire::Regroup& regroup);
  [[nodiscard]] Verdict on(const wire::Leave& leave);
  // Of members of a collective; not said to this worker.
  template <class Other>
  [[nodiscard]] Verdict on(const Other&) {
    return std::nullopt;
  }
  [[nodiscard]] Status open_link(const wire::PsRoster& roster);
  [[nodiscard]] Result<PhaseEnd> run_phase(const wire::PhaseStart& start);
  [[nodiscard]] Result<PhaseEnd> train(const wire::PhaseStart& start);
  [[nodiscard]] Result<PhaseEnd> evaluate();
  [[nodiscard]] Result<std::uint64_t> settle();
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch);
  [[nodiscard]] int leave_code() const;
  // The group is over here: lets go of it and joins again.
  void dissolve(const std::string& reason, std::string problem = {});

  PsTools tools_;
  Parts parts_;
  PsState state_;
  Generation generation_;                 // the newest whose servers were named
  std::shared_ptr<ps::WorkerLink> link_;  // to them, while the generation lasts
  wire::PsSaid said_;                     // over the last link
  std::string breakage_;                  // of the last phase that ended with kOver
};

}  // namespace antdt::trainer
