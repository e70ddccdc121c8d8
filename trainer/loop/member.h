// A worker as a member of its job: from join to bye.
//
//   joining --Form--> forming --Roster--> connecting --ready, Settle--> settled
//   settled --PhaseStart--> in a phase --end--> settled
//   any     --Form--> forming            (a new generation)
//   any     --Abort, broken collective--> joining, for kNewGenerationPatience
//   settled --PhaseStart "finish"--> ended;  any --Leave, SIGTERM--> ended
//
// The member does what the orders say, in the order in which they come; the
// training state stays in memory through generations.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

class Member {
 public:
  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    CollectiveFactory make_collective;
    std::uint32_t eval_batch = 256;  // records
  };
  Member(Tools tools, Parts parts);

  // Until the job or this member's part of it ends; answers the exit code, and
  // bye has been said. An error is why this member gives up; the caller says so.
  [[nodiscard]] Result<int> run();

 private:
  [[nodiscard]] Result<int> live();
  // Each answers an exit code when the member's life ends with it.
  using Verdict = Result<std::optional<int>>;
  void join(std::string problem);  // "I am ready", or why the last formation failed here
  [[nodiscard]] Verdict turn();
  [[nodiscard]] Verdict obey(const client::Directive& directive);
  [[nodiscard]] Verdict on(const wire::Form& form);
  [[nodiscard]] Verdict on(const wire::Roster& roster);
  [[nodiscard]] Verdict on(const wire::Settle& settle);
  [[nodiscard]] Verdict on(const wire::PhaseStart& start);
  [[nodiscard]] Verdict on(const wire::Abort& abort);
  [[nodiscard]] Verdict on(const wire::Leave& leave);
  [[nodiscard]] Result<PhaseEnd> run_phase(const wire::PhaseStart& start);
  [[nodiscard]] int finish(const wire::PhaseStart& start);
  [[nodiscard]] int leave_code() const;
  void dissolve(std::string reason);

  Tools tools_;
  Parts parts_;
  TrainingState state_;
  Generation generation_;
  std::uint64_t key_ = 0;
  std::shared_ptr<CollectiveBuilder> builder_;
  std::shared_ptr<Collective> collective_;
  std::optional<MonoTime> dissolved_;  // since when this member has no generation
  std::string dissolved_why_;
};

}  // namespace antdt::trainer
