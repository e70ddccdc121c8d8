#include "trainer/worker/member/member_machine.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::worker {
namespace {

std::vector<WorkerId> ids_of(const wire::Roster& roster) {
  std::vector<WorkerId> ids;
  for (const wire::RosterMember& member : roster.members) ids.push_back(member.worker);
  return ids;
}

constexpr std::size_t kFirstOperation = Effect(BuildCollective{}).index();

}  // namespace

MemberMachine::MemberMachine(WorkerConfig config) : config_(std::move(config)) {
  member_.self = config_.self;
}

template <class S>
S& MemberMachine::expect() {
  S* const state = std::get_if<S>(&state_);
  ANTDT_CHECK(state != nullptr, "{} of generation {} is {}: an answer to what was not asked",
              config_.self, generation_, state_name());
  return *state;
}

// What only a training phase is answered with.
// From: training. To: training; what follows on a phase, if that was its end.
template <class Answer>
void MemberMachine::on(const Answer& input, MonoTime now, Effects& out) {
  TrainPhase& phase = expect<TrainPhase>();
  if (const auto end = phase.on(input, now, out)) phase_ended(*end, phase.breakage(), out);
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
void MemberMachine::on(const Started&, MonoTime, Effects& out) { join({}, {}, out); }

// To: joining. "I am ready for a new generation", or why the last one could not be formed here.
void MemberMachine::join(std::string problem, std::string unreadable, Effects& out) {
  state_ = Joining{};
  wire::Join join = config_.join;
  join.problem = std::move(problem);
  join.unreadable = std::move(unreadable);
  join.settled = std::max(member_.training.settled, ready_);
  join.step = member_.training.step;
  out.emplace_back(Send{std::move(join)});
}

// ------------------------------------------------------- forming a generation

// From: any that waits for an order. To: building. What was before is let go of.
void MemberMachine::on(const FormOrdered& input, MonoTime, Effects& out) {
  generation_ = input.generation;
  form_ = input.form;
  member_.rank = form_.rank;
  member_.heard.over = false;
  final_model_.forget();
  if (member_.resting != TimeUse::kStartup) member_.resting = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{member_.resting});
  out.emplace_back(LeaveCollective{});
  state_ = Building{};
  out.emplace_back(BuildCollective{generation_, form_.rank, form_.size});
}

// From: building. To: awaiting roster.
void MemberMachine::on(const CollectiveBuilt& input, MonoTime, Effects& out) {
  expect<Building>();
  state_ = AwaitingRoster{};
  out.emplace_back(Send{wire::Address{input.address}});
}

// From: awaiting roster. To: connecting. Elsewhere it is of a generation that ended meanwhile.
void MemberMachine::on(const RosterArrived& input, MonoTime, Effects& out) {
  if (input.generation != generation_ || !std::holds_alternative<AwaitingRoster>(state_)) return;
  state_ = Connecting{ids_of(input.roster)};
  out.emplace_back(SpendTime{TimeUse::kReconfigure});
  out.emplace_back(ConnectCollective{form_, input.roster.members});
}

// From: connecting. To: reading, if training begins from a checkpoint that this member is to
// read; else comparing states.
void MemberMachine::on(const CollectiveConnected&, MonoTime, Effects& out) {
  std::vector<WorkerId> members = std::move(expect<Connecting>().members);
  const bool begins_again = form_.base == Generation{} && !form_.restore.empty();
  // What was there is gone whether or not the checkpoint can be read.
  if (begins_again) member_.training.forget();
  if (!begins_again || form_.rank != form_.reader) return compare_states(std::move(members), out);
  state_ = Reading{std::move(members)};
  out.emplace_back(ReadState{form_.restore});
}

// From: reading. To: comparing states.
void MemberMachine::on(const StateRead& input, MonoTime, Effects& out) {
  std::vector<WorkerId> members = std::move(expect<Reading>().members);
  member_.training.step = input.step;
  compare_states(std::move(members), out);
}

// From: reading. To: joining.
void MemberMachine::on(const StateUnreadable& input, MonoTime, Effects& out) {
  expect<Reading>();
  if (input.interrupted) return formation_failed(input.why, out);
  const std::string why =
      fmt::format("cannot read the checkpoint {}: {}", form_.restore, input.why);
  dissolve(why, out, why, input.why);
}

// From: connecting, reading. To: comparing states; ended, if it holds another state.
void MemberMachine::compare_states(std::vector<WorkerId> members, Effects& out) {
  const auto holds = holds_state();
  if (!holds) {
    return give_up({ErrorKind::kAborted,
                    fmt::format("generation {} is to begin training anew, and {} is at step {} "
                                "already: only a new process can go back to the beginning",
                                generation_, config_.self, member_.training.step)},
                   out);
  }
  ready_ = {};
  state_ = ComparingStates{std::move(members), *holds};
  out.emplace_back(CompareStates{*holds, member_.training.step, meta_of(member_.training)});
}

std::optional<bool> MemberMachine::holds_state() {
  TrainingState& training = member_.training;
  if (form_.base != Generation{}) {
    // It settled with this member, who was not told.
    if (form_.base == ready_ && training.settled != form_.base) {
      training.settle(ready_, ready_members_);
    }
    return training.settled == form_.base;
  }
  if (!form_.restore.empty()) return form_.rank == form_.reader;  // which has read it
  if (training.pristine) return config_.begins_alike || form_.rank == 0;
  return {};
}

// From: comparing states. To: passing state, if somebody beside this member lacks it; else hashing
// state.
void MemberMachine::on(const StatesCompared& input, MonoTime, Effects& out) {
  ComparingStates compared = std::move(expect<ComparingStates>());
  const auto plan = heal_plan(input.slots, form_.rank);
  if (!plan) return formation_failed(plan.error().message, out);
  if (!plan->receives && !plan->sends) return hash_state(std::move(compared.members), out);
  if (plan->receives && !compared.holds) {
    member_.training.settled = {};
    member_.training.pristine = false;
  }
  state_ = PassingState{std::move(compared.members), plan->receives};
  out.emplace_back(PassState{*plan, plan->receives ? std::string() : meta_of(member_.training),
                             input.slots[form_.rank].part_bytes + plan->meta_bytes,
                             compared.holds});
}

// From: passing state. To: hashing state, at the step of all.
void MemberMachine::on(const StatePassed& input, MonoTime, Effects& out) {
  PassingState passed = std::move(expect<PassingState>());
  if (passed.receives) {
    member_.training.pristine = false;
    if (const Status taken = take_over(input.meta, member_.training); !taken) {
      member_.training.settled = {};
      return formation_failed(taken.error().message, out);
    }
    member_.training.settled = form_.base;
    // The beginning of rank 0 is now this member's.
    member_.training.pristine = form_.base == Generation{} && form_.restore.empty();
  }
  hash_state(std::move(passed.members), out);
}

void MemberMachine::hash_state(std::vector<WorkerId> members, Effects& out) {
  member_.training.members = std::move(members);
  state_ = HashingState{};
  out.emplace_back(HashState{member_.training.step});
}

// From: hashing state. To: awaiting settle.
void MemberMachine::on(const StateHashed& input, MonoTime, Effects& out) {
  expect<HashingState>();
  const TrainingState& training = member_.training;
  state_ = AwaitingSettle{};
  ready_ = generation_;
  ready_members_ = training.members;
  out.emplace_back(SpendTime{member_.resting});
  // All are at the same step: one of them tells which records made the last ones.
  out.emplace_back(
      Send{wire::Ready{training.step, input.hash, training.phase, training.places,
                       form_.rank == 0 ? training.log.history() : wire::StepHistory{}}});
}

// From: awaiting settle. To: settled; ended, if it settled at another step than this member's.
void MemberMachine::on(const GenerationSettled& input, MonoTime, Effects& out) {
  if (input.generation != generation_ || !std::holds_alternative<AwaitingSettle>(state_)) return;
  TrainingState& training = member_.training;
  if (input.settle.step != training.step) {
    return give_up(
        {ErrorKind::kInternal, fmt::format("generation {} settled at step {}, and this member is "
                                           "at step {}",
                                           generation_, input.settle.step, training.step)},
        out);
  }
  state_ = Settled{};
  training.settle(generation_, training.members);
  training.share = share_of(input.settle.plan, config_.self);
  out.emplace_back(SetRate{input.settle.plan.rate});
}

// ------------------------------------------------------------ the end of a generation

// From: any of that generation. To: joining. Of one ahead from joining, too: one that ended before
// its Form was given out has answered the join. Where its own is over already, this member has
// joined again for that reason.
void MemberMachine::on(const GenerationAborted& input, MonoTime, Effects& out) {
  if (input.generation > generation_) return dissolve("another one has begun and ended", out);
  if (input.generation == generation_ && in_generation()) dissolve(input.reason, out);
}

// From: any of that generation, or of one before. To: joining.
void MemberMachine::on(const RegroupOrdered& input, MonoTime, Effects& out) {
  if (input.generation >= generation_ && in_generation()) dissolve(input.reason, out);
}

// From: an operation with the others. To: joining.
void MemberMachine::on(const CollectiveBroke& input, MonoTime, Effects& out) {
  auto* const phase = std::get_if<TrainPhase>(&state_);
  if (phase == nullptr) return formation_failed(input.why, out);
  phase->broke(input.why, out);
  phase_ended(PhaseEnd::kOver, input.why, out);
}

void MemberMachine::formation_failed(const std::string& why, Effects& out) {
  dissolve(why, out, member_.heard.over ? std::string() : why);
}

// From: any. To: joining.
void MemberMachine::dissolve(const std::string& reason, Effects& out, std::string problem,
                             std::string unreadable) {
  member_.resting = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{member_.resting});
  out.emplace_back(LeaveCollective{reason});
  join(std::move(problem), std::move(unreadable), out);
}

}  // namespace antdt::worker
