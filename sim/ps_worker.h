// A worker of parameter servers: the real client core and, around it, what
// trainer/loop/ps_member.h and ps_train_phase.h do, with a tally for a model.
//
// Its training thread is in one place at a time, as that of sim/worker.h is: what comes
// while it computes is taken in when it is done.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/options.h"
#include "sim/program.h"
#include "sim/ps_link.h"
#include "sim/surroundings.h"
#include "trainer/ps/server.h"

namespace antdt::sim {

class PsWorker final : public ClientProgram {
 public:
  PsWorker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
           Member member, std::uint32_t pid, std::string host, const HostClock& clock)
      : ClientProgram(world, around, member, pid, std::move(host), clock),
        shape_(shape),
        sabotage_(sabotage) {}

  void answered(const PsAnswer& answer) override;
  [[nodiscard]] std::string doing() const override;
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }

 private:
  enum class Doing { kBooting, kIdle, kAsking, kTraining, kEvaluating };
  struct Share {
    PlanVersion version;
    std::uint64_t samples = 0;
  };
  struct Pull {  // that was said
    std::uint64_t number = 0;
    PsLink::Call call = 0;
    std::vector<PsReply> replies;  // empty: not here
  };
  struct Push {
    wire::PsCommit commit;
    client::BatchTimes times;
    std::vector<std::optional<PsAsk>> parts;  // by server, until they are said
    bool staged = false;
    bool committing = false;
    std::optional<wire::PsDecided> decided;
  };

  // ps_worker.cc
  void welcomed() override;
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool) override { link_.reset(); }
  void obey(const client::Directive& directive);
  void join(std::string problem = {});
  void dissolve(std::string problem = {});
  void on(const wire::PsRoster& roster);
  void on(const wire::PhaseStart& start);
  void on(const wire::Abort&);
  void on(const wire::Regroup&);
  void on(const wire::Leave& leave) { exit(static_cast<int>(leave.code)); }
  template <class Other>
  void on(const Other&) {}  // of members of a collective
  void watch_leaving();
  // `next` gets the answers; where there are none, the phase is over.
  void ask(const char* activity, std::vector<std::optional<PsAsk>> asks,
           std::function<void(const std::vector<PsReply>&)> next);
  void ask_all(const char* activity, const PsAsk& ask,
               std::function<void(const std::vector<PsReply>&)> next);
  void no_answers();
  void idle_everywhere(std::uint64_t version, std::function<void(std::uint64_t decided)> next);
  [[nodiscard]] bool barrier() const { return consistency_ == ps::Consistency::kBarrier; }
  [[nodiscard]] bool over() const { return ended_ >= generation_; }
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> keys_by_server(
      std::vector<Record> records) const;

  // ps_worker_phases.cc
  void train();
  void next_batch();
  void wait_for_records();
  void take_up_plan();
  // Whether a batch is at hand: as much as its share, or all that there is.
  [[nodiscard]] bool take_records(std::uint64_t wanted);
  void look_ahead(std::uint64_t more);
  void forget_pull();
  [[nodiscard]] bool pull_waits_for_push() const;
  [[nodiscard]] std::uint64_t pull_clock(std::uint64_t more) const;
  void say_pull(const std::vector<Record>& records, std::uint64_t clock);
  void pull(int left);
  void pulled(int left);
  void compute();
  void computed();
  void push();
  void stage();
  void decide_step();
  void conclude(const Push& push);
  void idle(std::function<void()> next);
  void finish();
  void leave();
  void phase_over();
  void leave_phase();
  void send_progress(bool done);
  void evaluate();

  // ps_worker_pushes.cc
  // Takes in what has come and says what follows from it; false: the phase is over,
  // and was left.
  [[nodiscard]] bool advance();
  void advance_pushes();
  void stage_parts(Push& push);
  void commit(const Push& push);
  void came();  // something has, from servers
  // Goes on with `next` when it is so.
  void wait_until(std::function<bool()> is_so, std::function<void()> next);
  void forget_under_way();

  const JobShape shape_;
  const Sabotage sabotage_;
  bool turning_ = false;
  bool leaves_ = false;
  Doing doing_ = Doing::kBooting;

  Generation generation_;
  Generation ended_;  // newest that is over
  std::unique_ptr<PsLink> link_;
  ps::Consistency consistency_ = ps::Consistency::kBarrier;
  std::uint64_t staleness_ = 0;
  std::uint64_t version_ = 0;  // as many steps as this are decided
  std::uint64_t pushes_said_ = 0;
  wire::PsSaid said_;
  Share share_;

  // Of the phase.
  wire::PhaseStart phase_;
  std::uint64_t place_ = 0;
  std::uint64_t pushed_place_ = 0;
  bool idle_ = false;
  bool plan_changed_ = true;
  std::vector<Record> batch_;   // that is trained
  std::vector<Record> next_;    // whose pull may be said
  std::vector<Record> taking_;  // of the one after
  std::uint64_t pulls_said_ = 0;
  std::optional<Pull> pull_;
  std::deque<Push> pushes_;  // that are not concluded
  bool no_answers_ = false;
  std::function<bool()> waits_for_;
  std::function<void()> goes_on_with_;
  client::TakeStatus taken_ = client::TakeStatus::kWait;
  bool more_may_come_ = false;
  MonoTime data_until_{};
  std::vector<std::uint64_t> versions_;  // that its rows are of, by server
  std::uint64_t pulled_version_ = 0;     // the oldest of these
  Duration computed_{};
};

}  // namespace antdt::sim
