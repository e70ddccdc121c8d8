#include "trainer/worker/servers/ps_machine.h"

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/check.h"
#include "trainer/ps/placement.h"
#include "trainer/worker/habits.h"

namespace antdt::worker::ps_worker {
namespace {

// The index of T among the alternatives of a variant.
template <class T, class Variant, std::size_t at = 0>
consteval std::size_t index_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<at, Variant>, T>)
    return at;
  else
    return index_of<T, Variant, at + 1>();
}

constexpr std::size_t kFirstPsOperation = index_of<OpenServers, Effect>();
constexpr const char* kGone = "the servers are gone";

}  // namespace

PsMachine::PsMachine(WorkerConfig config) : config_(std::move(config)) {
  worker_.self = config_.self;
  if (config_.shadow) worker_.shadow.emplace(*config_.shadow);
}

void PsMachine::step(const Input& input, MonoTime now, Effects& out) {
  ANTDT_CHECK(!ended(), "{} is told something after its end", config_.self);
  const std::size_t before = out.size();
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  if (const auto* const phase = std::get_if<PsTrainPhase>(&state_)) phase->check_invariants();
  for (std::size_t i = before; i < out.size(); ++i) {
    ANTDT_CHECK(out[i].index() < kFirstPsOperation || i + 1 == out.size(),
                "{}: an operation is not the last effect of its step", state_name());
  }
}

template <class S>
S& PsMachine::expect() {
  S* const state = std::get_if<S>(&state_);
  ANTDT_CHECK(state != nullptr, "{} of generation {} is {}: an answer to what was not asked",
              config_.self, generation_, state_name());
  return *state;
}

// From: nothing. To: joining.
void PsMachine::on(const Started&, MonoTime, Effects& out) { join({}, out); }

// To: joining.
void PsMachine::join(const std::optional<Error>& problem, Effects& out) {
  state_ = Joining{};
  wire::Join join = config_.join;
  if (problem) join.problem = problem->message;
  // Of a server, which reads the checkpoint.
  join.may_pass = problem && problem->kind == ErrorKind::kPeerIo;
  if (problem && problem->kind == ErrorKind::kCorrupt) join.unreadable = problem->message;
  join.step = Step{worker_.version};
  join.said = said_;
  out.emplace_back(Send{std::move(join)});
}

// ------------------------------------------------------------ a group of servers

// From: any that waits for an order. To: opening; joining, if it cannot be obeyed.
void PsMachine::on(const ServersNamed& input, MonoTime, Effects& out) {
  // The servers of a new group have heard of no push.
  if (input.generation != generation_) worker_.pushes = 0;
  generation_ = input.generation;
  worker_.heard.over = false;
  if (resting_ != TimeUse::kStartup) resting_ = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{resting_});
  out.emplace_back(LeaveServers{});
  commit_said_ = {};
  const auto consistency = ps::consistency_of(input.roster.sync);
  if (!consistency) {
    state_ = Joining{};
    return dissolve(consistency.error().message, out, consistency.error());
  }
  worker_.consistency = *consistency;
  worker_.staleness = input.roster.staleness;
  state_ = Opening{};
  out.emplace_back(OpenServers{generation_, input.roster});
}

// From: opening. To: linked.
void PsMachine::on(const ServersOpened& input, MonoTime, Effects&) {
  expect<Opening>();
  worker_.version = input.version;
  if (worker_.shadow) worker_.shadow->begin();
  state_ = Linked{};
}

// Whether the order is of the present group. A group that ended before its roster was returned has
// answered the join.
bool PsMachine::concerns(Generation generation, Effects& out) {
  if (generation > generation_) dissolve("it is over before it began here", out);
  return generation == generation_;
}

// From: linked. To: joining. If the group is over already, this worker has joined again for that
// reason.
void PsMachine::on(const GenerationAborted& input, MonoTime, Effects& out) {
  if (!concerns(input.generation, out)) return;
  if (std::holds_alternative<Linked>(state_)) dissolve(input.reason, out);
}

// From: linked. To: joining.
void PsMachine::on(const RegroupOrdered& input, MonoTime, Effects& out) {
  if (!concerns(input.generation, out)) return;
  if (std::holds_alternative<Linked>(state_)) dissolve(input.reason, out);
}

// From: any. To: joining. A worker with a problem may come back to the same generation.
void PsMachine::dissolve(const std::string& reason, Effects& out,
                         const std::optional<Error>& problem) {
  resting_ = TimeUse::kReconfigure;
  out.emplace_back(SpendTime{resting_});
  if (!std::holds_alternative<Joining>(state_) && !problem) {
    said_ = {generation_, commit_said_.phase, commit_said_.place};
  }
  out.emplace_back(LeaveServers{reason});
  join(problem, out);
}

// ------------------------------------------------------------------- its phases

// From: linked. To: training, settling; linked, if the servers write the model and Leave follows;
// ended, if it has no such data.
void PsMachine::on(const PhaseStarted& input, MonoTime now, Effects& out) {
  if (!concerns(input.generation, out) || !std::holds_alternative<Linked>(state_)) return;
  if (input.start.what == wire::PhaseKind::kFinish) return;
  phase_ = input.start;
  const bool training = phase_.what == wire::PhaseKind::kTrain;
  if (training ? !config_.has_train_data : !config_.has_eval_data) {
    return give_up({ErrorKind::kUsage, fmt::format("phase {} is '{}', and this worker has no such "
                                                   "data",
                                                   phase_.phase, phase_.what)},
                   out);
  }
  if (!training) {
    state_ = Settling{};
    out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
    out.emplace_back(SettleServers{});
    return;
  }
  PsTrainPhase& phase = state_.emplace<PsTrainPhase>(worker_, phase_);
  if (const auto end = phase.begin(now, out)) phase_ended(*end, phase.breakage(), out);
}

// From: settling. To: evaluating, with the model after all updates: nobody pushes meanwhile.
void PsMachine::on(const ServersSettled& input, MonoTime, Effects& out) {
  expect<Settling>();
  worker_.version = std::max(worker_.version, input.decided);
  EvalPhase& phase = state_.emplace<EvalPhase>(worker_.heard, phase_, config_.eval_batch);
  if (const auto end = phase.begin(out)) phase_ended(*end, kGone, out);
}

// From: evaluating. To: evaluating; what follows a phase, if that was its end.
void PsMachine::on(const BatchEvaluated& input, MonoTime, Effects& out) {
  if (const auto end = expect<EvalPhase>().on(input, out)) phase_ended(*end, kGone, out);
}

// Inputs that only a training phase handles. From: training. To: training; what follows a phase, if
// that was its end.
template <class Answer>
void PsMachine::on(const Answer& input, MonoTime now, Effects& out) {
  PsTrainPhase& phase = expect<PsTrainPhase>();
  if (const auto end = phase.on(input, now, out)) phase_ended(*end, phase.breakage(), out);
}

// From: training. To: training; ended, if the decision is impossible.
void PsMachine::on(const PushDecided& input, MonoTime now, Effects& out) {
  const Status taken = expect<PsTrainPhase>().on(input, now, out);
  if (!taken) give_up(taken.error(), out);
}

// From: training. To: training.
void PsMachine::on(const CentreHere&, MonoTime, Effects&) {
  ANTDT_CHECK(worker_.shadow, "{}: a centre is here that was not asked for", state_name());
  worker_.shadow->centre_is_here();
}

// From: training, settling, evaluating. To: linked, until the next phase; joining; ended.
void PsMachine::phase_ended(PhaseEnd end, const std::string& reason, Effects& out) {
  out.emplace_back(Send{client::SetHold{0}});
  out.emplace_back(StopReading{});
  switch (end) {
    case PhaseEnd::kDone:
      state_ = Linked{};
      // Until the next phase this worker waits for the others.
      resting_ = TimeUse::kCollectiveWait;
      out.emplace_back(SpendTime{resting_});
      return;
    case PhaseEnd::kOver:
    case PhaseEnd::kEnded:  // only among members of a collective
      return dissolve(std::string(reason), out);
    case PhaseEnd::kLeave:
      return leave(out);
  }
}

// ------------------------------------------------------------------- what it hears

// From: any that waits for an order. To: ended, if it was asked to leave.
void PsMachine::on(const Heard& input, MonoTime, Effects& out) {
  worker_.heard = input;
  if (awaits_order() && worker_.heard.wants_to_leave()) leave(out);
}

// It takes effect with the next batch.
// Servers hear of the learning rate themselves; a replica is updated here.
void PsMachine::on(const PlanHeld& input, MonoTime, Effects& out) {
  worker_.planned = share_of(input.plan, config_.self);
  if (worker_.shadow) out.emplace_back(SetRate{input.plan.rate});
}

void PsMachine::on(const CommitSaid& input, MonoTime, Effects&) { commit_said_ = input; }

// From: any that has a link. To: joining; ended, if it was to leave.
void PsMachine::on(const ServersLost& input, MonoTime, Effects& out) {
  if (auto* const phase = std::get_if<PsTrainPhase>(&state_)) {
    return phase_ended(phase->lost(input.why), input.why, out);
  }
  if (std::holds_alternative<EvalPhase>(state_)) {
    return phase_ended(PhaseEnd::kOver, input.why, out);
  }
  dissolve(input.why, out);
}

// From: opening. To: joining, with the problem; ended, if it is the job's own, as when the model
// does not fit its servers. From: any other. To: ended.
void PsMachine::on(const WorkFailed& input, MonoTime, Effects& out) {
  const bool is_own =
      input.error.kind == ErrorKind::kUsage || input.error.kind == ErrorKind::kTooLarge;
  if (is_own || !std::holds_alternative<Opening>(state_)) return give_up(input.error, out);
  dissolve(input.error.message, out, input.error);
}

// ------------------------------------------------------------------- its end

// From: any that waits for an order. To: ended.
void PsMachine::on(const LeaveOrdered& input, MonoTime, Effects& out) {
  state_ = Ended{};
  out.emplace_back(Exit{static_cast<int>(input.code)});
}

// To: ended.
void PsMachine::leave(Effects& out) {
  state_ = Ended{};
  out.emplace_back(Exit{worker_.heard.leave_code()});
}

// To: ended.
void PsMachine::give_up(Error error, Effects& out) {
  state_ = Ended{};
  out.emplace_back(GiveUp{std::move(error)});
}

// ------------------------------------------------------------------- what it is

std::uint64_t PsMachine::place() const {
  if (const auto* const phase = std::get_if<PsTrainPhase>(&state_)) return phase->place();
  if (const auto* const phase = std::get_if<EvalPhase>(&state_)) return phase->place();
  return 0;
}

const char* PsMachine::state_name() const {
  static constexpr const char* kNames[] = {"joining",  "opening",    "linked", "training",
                                           "settling", "evaluating", "ended"};
  static_assert(std::size(kNames) == std::variant_size_v<State>);
  const auto* const phase = std::get_if<PsTrainPhase>(&state_);
  return phase != nullptr ? phase->name_of_state() : kNames[state_.index()];
}

}  // namespace antdt::worker::ps_worker
