#include "trainer/worker/member/member_machine.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/overloaded.h"

namespace antdt::worker {
namespace {

constexpr std::size_t kFirstOperation = Effect(BuildCollective{}).index();

}  // namespace

MemberMachine::MemberMachine(WorkerConfig config)
    : config_(std::move(config)), member_{config_.self, StepExchange(config_.exchange)} {
  member_.stages_rows = config_.stages_rows;
}

// A consolidation is of a training phase, or of the formation of a generation.
void MemberMachine::on(const Consolidated& input, MonoTime now, Effects& out) {
  if (auto* const formation = std::get_if<Formation>(&state_)) {
    return formation_ended(formation->on(input, out), out);
  }
  auto* const phase = std::get_if<TrainPhase>(&state_);
  ANTDT_CHECK(phase != nullptr, "{} of generation {} is {}: an answer to what was not asked",
              config_.self, generation_, state_name());
  if (const auto end = phase->on(input, now, out)) phase_ended(*end, phase->breakage(), out);
}

// Inputs that only the formation of a generation, or a training phase, handles.
template <class Answer>
void MemberMachine::on(const Answer& input, MonoTime now, Effects& out) {
  if constexpr (requires(Formation & formation) { formation.on(input, out); }) {
    auto* const formation = std::get_if<Formation>(&state_);
    ANTDT_CHECK(formation != nullptr, "{} of generation {} is {}: an answer to what was not asked",
                config_.self, generation_, state_name());
    formation_ended(formation->on(input, out), out);
  } else {
    // From: training. To: training; what follows on a phase, if that was its end.
    auto* const phase = std::get_if<TrainPhase>(&state_);
    ANTDT_CHECK(phase != nullptr, "{} of generation {} is {}: an answer to what was not asked",
                config_.self, generation_, state_name());
    if (const auto end = phase->on(input, now, out)) phase_ended(*end, phase->breakage(), out);
  }
}

void MemberMachine::step(const Input& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(!ended(), "{} is told something after its end", config_.self);
  const std::size_t before = out.size();
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
  for (std::size_t i = before; i < out.size(); ++i) {
    ANTDT_CHECK(out[i].index() < kFirstOperation || i + 1 == out.size(),
                "{}: an operation is not the last effect of its step", state_name());
  }
}

bool MemberMachine::in_generation() const {
  return !std::holds_alternative<Joining>(state_) && !ended();
}

// From: nothing. To: joining.
void MemberMachine::on(const Started&, MonoTime, Effects& out) { join({}, out); }

// To: joining. Reports that it is ready for a new generation, or why the last one could not be
// formed here.
void MemberMachine::join(const Formation::Failed& problem, Effects& out) {
  state_ = Joining{};
  wire::Join join = config_.join;
  join.problem = problem.why;
  join.lasts = problem.lasts;
  if (problem.unread) {
    join.unreadable = problem.unread->why;
    join.may_pass = problem.unread->cause == StateUnreadable::Cause::kDisk;
  }
  join.settled = std::max(member_.training.settled, member_.ready);
  join.step = member_.training.step;
  join.ends = member_.heard.ends;
  out.emplace_back(Send{std::move(join)});
}

// ------------------------------------------------------- forming a generation

// From: any that waits for an order. To: forming. Releases what was there before.
void MemberMachine::on(const FormOrdered& input, MonoTime, Effects& out) {
  generation_ = input.generation;
  member_.rank = input.form.rank;
  member_.heard.over = false;
  // Training goes on from a checkpoint, perhaps one from before the program ended it.
  if (input.form.base == Generation{}) member_.told_end = false;
  final_model_.forget();
  standing_model_.end();
  if (member_.resting != TimeUse::kStartup) member_.resting = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{member_.resting});
  out.emplace_back(LeaveCollective{});
  state_.emplace<Formation>(config_, member_, input).begin(out);
}

// In any other state it concerns a generation that has ended.
void MemberMachine::on(const RosterArrived& input, MonoTime, Effects& out) {
  auto* const formation = std::get_if<Formation>(&state_);
  if (formation != nullptr) formation_ended(formation->on(input, out), out);
}

void MemberMachine::on(const GenerationSettled& input, MonoTime, Effects& out) {
  auto* const formation = std::get_if<Formation>(&state_);
  if (formation != nullptr) formation_ended(formation->on(input, out), out);
}

// From: forming. To: forming; settled; joining; ended.
void MemberMachine::formation_ended(Formation::End end, Effects& out) {
  if (!end) return;
  const Overloaded conclude{
      [&](Formation::Settled) { state_ = Settled{}; },
      [&](Formation::GaveUp& gave_up_it) { give_up(std::move(gave_up_it.error), out); },
      [&](Formation::Failed& failed) { formation_failed(failed, out); },
  };
  std::visit(conclude, *end);
}

// Where the generation is over anyway, this is no problem of its own; what cannot be read is.
void MemberMachine::formation_failed(const Formation::Failed& failed, Effects& out) {
  const bool says_why = !member_.heard.over || failed.unread;
  dissolve(failed.why, out,
           {says_why ? failed.why : std::string(), failed.unread, says_why && failed.lasts});
}

// ------------------------------------------------------------ the end of a generation

// From: any of that generation. To: joining. Also, from joining, for an Abort of a later
// generation: that generation ended before its Form was returned, so the Abort has answered the
// join. If the member's own generation is over already, it has joined again for that reason.
void MemberMachine::on(const GenerationAborted& input, MonoTime, Effects& out) {
  if (input.generation > generation_) return dissolve("another one has begun and ended", out);
  if (input.generation == generation_ && in_generation()) dissolve(input.reason, out);
}

// From: any of that generation, or of an earlier one. To: joining.
void MemberMachine::on(const RegroupOrdered& input, MonoTime, Effects& out) {
  if (input.generation >= generation_ && in_generation()) dissolve(input.reason, out);
}

// From: an operation with the others, or, evaluating, with servers. To: joining.
void MemberMachine::on(const CollectiveBroke& input, MonoTime, Effects& out) {
  if (std::holds_alternative<EvalPhase>(state_)) {
    return phase_ended(PhaseEnd::kOver, input.why, out);
  }
  auto* const phase = std::get_if<TrainPhase>(&state_);
  if (phase == nullptr) return formation_failed({input.why}, out);
  phase->broke(input.why, out);
  phase_ended(PhaseEnd::kOver, input.why, out);
}

// From: training, evaluating. To: joining, with the problem: the next generation may have the same.
void MemberMachine::on(const RowsUnread& input, MonoTime, Effects& out) {
  if (auto* const phase = std::get_if<TrainPhase>(&state_)) phase->broke(input.why, out);
  Formation::Failed problem{input.why, {}};
  // A disk's error is not told as that of a member, who reads another part of the checkpoint.
  using Cause = StateUnreadable::Cause;
  if (input.cause) {
    problem.unread = StateUnreadable{*input.cause == Cause::kDisk ? "" : input.why, *input.cause};
  }
  phase_ended(PhaseEnd::kOver, input.why, out, problem);
}

// From: any. To: joining.
void MemberMachine::dissolve(const std::string& reason, Effects& out,
                             const Formation::Failed& problem) {
  member_.resting = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{member_.resting});
  out.emplace_back(LeaveCollective{reason});
  join(problem, out);
}

}  // namespace antdt::worker
