// What a member does in a settled generation, and how it ends.
#include <utility>

#include "core/check.h"
#include "trainer/worker/member/member_machine.h"

namespace antdt::worker {

// ------------------------------------------------------------------- its phases

// From: settled. To: training, evaluating; settled, if the model must be kept; ended, if the member
// has no such data. In another state, the order belongs to a generation that ended meanwhile.
void MemberMachine::on(const PhaseStarted& input, MonoTime now, Effects& out) {
  if (input.generation != generation_ || !std::holds_alternative<Settled>(state_)) return;
  phase_ = input.start;
  phase_.what == wire::PhaseKind::kEval ? standing_model_.begin(phase_) : standing_model_.end();
  if (phase_.what == wire::PhaseKind::kFinish) return final_model_.finish(phase_, out);
  const bool training = phase_.what == wire::PhaseKind::kTrain;
  if (training ? !config_.has_train_data : !config_.has_eval_data) {
    return give_up({ErrorKind::kUsage, fmt::format("phase {} is '{}', and this worker has no such "
                                                   "data",
                                                   phase_.phase, phase_.what)},
                   out);
  }
  if (training) {
    if (member_.told_end && phase_.committed < phase_.records) {
      return give_up(
          {ErrorKind::kUsage,
           "the program ended the training, and the job goes on: the job daemon is of an "
           "earlier release. Install the same release of AntDT on all hosts"},
          out);
    }
    TrainPhase& phase = state_.emplace<TrainPhase>(member_, phase_, now);
    if (const auto end = phase.begin(now, out)) phase_ended(*end, phase.breakage(), out);
  } else {
    EvalPhase& phase = state_.emplace<EvalPhase>(member_.heard, phase_, config_.eval_batch);
    if (const auto end = phase.begin(out)) phase_ended(*end, "its members go into another", out);
  }
}

// From: evaluating. To: evaluating; what follows a phase, if that was its end.
void MemberMachine::on(const BatchEvaluated& input, MonoTime, Effects& out) {
  auto* const phase = std::get_if<EvalPhase>(&state_);
  ANTDT_CHECK(phase != nullptr, "{} is {}, and a batch was evaluated", config_.self, state_name());
  standing_model_.look(out);
  if (const auto end = phase->on(input, out)) {
    phase_ended(*end, "its members go into another", out);
  }
}

// From: training, evaluating. To: settled, until the next phase; joining; ended.
void MemberMachine::phase_ended(PhaseEnd end, std::string reason, Effects& out,
                                const Formation::Failed& problem) {
  out.emplace_back(Send{client::SetHold{0}});
  switch (end) {
    case PhaseEnd::kDone:
      state_ = Settled{};
      // Until the next phase this member waits for the others.
      member_.resting = TimeUse::kCollectiveWait;
      out.emplace_back(SpendTime{member_.resting});
      out.emplace_back(StopReading{});
      return;
    case PhaseEnd::kOver:
      dissolve(reason, out, problem);
      out.emplace_back(StopReading{});
      return;
    case PhaseEnd::kEnded:
      // The collective stays until the next one is formed, so that nobody's last step breaks.
      member_.resting = TimeUse::kReconfigure;
      out.emplace_back(SpendTime{member_.resting});
      member_.told_end = true;
      join({}, out);
      out.emplace_back(StopReading{});
      return;
    case PhaseEnd::kLeave:
      out.emplace_back(StopReading{});
      return leave(out);
  }
}

// Independent of the operation that is in progress.
void MemberMachine::on(const Saved& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(member_.saving != Saving::kNothing, "{} wrote checkpoint {}, and nobody asked for it",
              config_.self, input.written.number);
  member_.saving = Saving::kNothing;
  final_model_.saved(input.written, now, out);
}

// ------------------------------------------------------------------- its end

// From: any that waits for an order. To: ended, if it was asked to leave.
void MemberMachine::on(const Heard& input, MonoTime, Effects& out) {
  member_.heard = input;
  if (awaits_order() && member_.wants_to_leave()) return leave(out);
  final_model_.heard(out);
}

void MemberMachine::on(const TimePassed&, MonoTime now, Effects& out) {
  final_model_.time_passed(now, out);
  if (std::holds_alternative<Settled>(state_)) standing_model_.look(out);
}

// From: any that waits for an order. To: ended.
void MemberMachine::on(const LeaveOrdered& input, MonoTime, Effects& out) {
  state_ = Ended{};
  out.emplace_back(Exit{static_cast<int>(input.code)});
}

// To: ended.
void MemberMachine::leave(Effects& out) {
  state_ = Ended{};
  out.emplace_back(Exit{member_.heard.leave_code()});
}

// From: any. To: ended; joining, if it evaluated and the generation is over.
void MemberMachine::on(const WorkFailed& input, MonoTime, Effects& out) {
  if (std::holds_alternative<EvalPhase>(state_) && input.error.kind == ErrorKind::kAborted) {
    return phase_ended(PhaseEnd::kOver, input.error.message, out);
  }
  if (std::holds_alternative<TrainPhase>(state_)) out.emplace_back(AbandonStep{});
  give_up(input.error, out);
}

// To: ended.
void MemberMachine::give_up(Error error, Effects& out) {
  state_ = Ended{};
  out.emplace_back(GiveUp{std::move(error)});
}

// ------------------------------------------------------------------- what it is

bool MemberMachine::awaits_order() const {
  const auto* const formation = std::get_if<Formation>(&state_);
  return std::holds_alternative<Joining>(state_) || std::holds_alternative<Settled>(state_) ||
         (formation != nullptr && formation->awaits_order());
}

std::uint64_t MemberMachine::place() const {
  const auto* const phase = std::get_if<TrainPhase>(&state_);
  return phase ? phase->place() : 0;
}

bool MemberMachine::may_end() const {
  const auto* const phase = std::get_if<TrainPhase>(&state_);
  return phase != nullptr && phase->may_end();
}

const char* MemberMachine::state_name() const {
  if (const auto* const formation = std::get_if<Formation>(&state_)) {
    return formation->state_name();
  }
  static constexpr const char* kNames[] = {"joining",  "forming",    "settled",
                                           "training", "evaluating", "ended"};
  static_assert(std::size(kNames) == std::variant_size_v<State>);
  return kNames[state_.index()];
}

void MemberMachine::check_invariants() const {
  const TrainingState& training = member_.training;
  ANTDT_CHECK(training.settled <= generation_,
              "{} holds the state of generation {}, and {} was "
              "formed last",
              config_.self, training.settled, generation_);
  ANTDT_CHECK(member_.ready <= generation_,
              "{} was ready for generation {}, and {} was formed last", config_.self, member_.ready,
              generation_);
  // In a phase it holds the state of its present generation.
  const auto* const phase = std::get_if<TrainPhase>(&state_);
  if (phase == nullptr) return;
  ANTDT_CHECK(training.settled == generation_, "{} trains in generation {} with the state of {}",
              config_.self, generation_, training.settled);
  phase->check_invariants();
}

}  // namespace antdt::worker
