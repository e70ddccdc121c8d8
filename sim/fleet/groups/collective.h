// Members of a collective: a step takes as long as its slowest member's own work, and what members
// say to one another and to the servers that may hold their rows. What all members of a generation
// know (the step, the records counted) is kept once.
//
//   joined ──Form, Roster──> ready ──Settle, PhaseStart──> steps ──> the phase's end
//                                                            │
//                            somebody is lost, leaves or joins: all join again
#pragma once

#include <optional>
#include <vector>

#include "sim/fleet/groups/row_servers.h"
#include "sim/fleet/groups/sharing/shared_step.h"
#include "sim/fleet/player.h"
#include "trainer/worker/sharing/share_trial.h"
#include "trainer/worker/step_log.h"

namespace antdt::fleet {

class Collective final : public Group {
 public:
  explicit Collective(Player& player);

  void hear(Worker& process, Generation generation, const ctl::job::WorkerMessage& body) override;
  void joined(Worker& process) override;
  void gone(Worker& worker) override;
  void recorded(Generation generation, Step step) override;
  [[nodiscard]] Step step() const override { return step_; }
  [[nodiscard]] const char* activity(const Worker& worker) const override;

 private:
  void on(Worker& worker, Generation generation, const wire::Form& form);
  void on(Worker& worker, Generation generation, const ctl::SharedRoster& roster);
  void on(Worker& worker, Generation generation, const wire::Settle& settle);
  void on(Worker& worker, Generation generation, const wire::PhaseStart& start);
  void on(Worker& worker, Generation generation, const wire::Plan& plan);
  void on(Worker& worker, Generation generation, const wire::CheckpointOrder& order);
  void on(Worker& worker, Generation generation, const wire::Regroup& regroup);
  void on(Worker& worker, Generation generation, const wire::Abort& abort);
  void on(Worker& worker, Generation generation, const wire::Leave& leave);
  template <class Other>  // messages for other kinds of group
  void on(Worker&, Generation, const Other&) {}

  void join(Worker& worker);
  void begin_from_checkpoint();
  [[nodiscard]] wire::Ready ready(const Worker& worker) const;
  void dissolve();
  // The steps of a phase.
  void begin_step();
  void look_for_data();
  void compute(Worker& worker);
  void computed_all();
  void conclude();
  void conclude_of(Worker& worker, bool switches, double step_s);
  void finish_phase();
  void compare_kinds();
  void log_step();
  void write_checkpoint(std::uint64_t number);
  void write_final_model();
  void write(std::uint64_t number, std::vector<wire::MemberPlace> places);
  void tell_progress(Worker& worker, bool done);
  void after(double seconds, void (Collective::*what)());
  [[nodiscard]] double exchange_s() const;
  [[nodiscard]] bool complete() const { return counted_ >= remaining_; }

  Player& player_;
  // The step of the training state that holders share.
  Step step_;
  std::uint64_t state_phase_ = 0;
  std::vector<wire::MemberPlace> places_;  // of the base's members, after step_
  std::uint64_t checkpoint_ = 0;
  worker::StepLog log_;
  std::optional<SharedStep> shared_;
  std::optional<RowServers> rows_;  // none: the members hold the whole model
  MonoTime steps_told_{};

  // Of the generation that is settled or forms.
  Generation generation_;
  std::vector<Worker*> members_;  // by rank, once settled
  std::size_t in_phase_ = 0;      // how many members have begun the phase
  wire::PhaseStart phase_;
  bool training_ = false;
  bool stops_ = false;  // the members stop together at the end of the step
  bool plan_changed_ = true;
  bool finishes_ = false;  // the final model is to be written
  std::uint64_t remaining_ = 0, counted_ = 0;
  std::uint64_t checkpoint_ordered_ = 0;
  std::uint64_t turn_ = 0;  // what was scheduled in an earlier turn is void
  // Of members that may share steps: what compares both kinds, which kind the next step is, and
  // the step that is being computed.
  std::optional<worker::sharing::ShareTrial> trial_;
  bool shares_next_ = true;
  bool shared_step_ = false;
  MonoTime step_began_{};
  MonoTime work_ends_{};  // of the members that compute
};

}  // namespace antdt::fleet
