#include "trainer/worker/member/formation.h"

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

std::vector<std::string> domains_of(const wire::Roster& roster) {
  std::vector<std::string> domains;
  for (const wire::RosterMember& member : roster.members) domains.push_back(member.domain);
  return domains;
}

}  // namespace

Formation::Formation(const WorkerConfig& config, MemberState& member, const FormOrdered& order)
    : config_(config), member_(member), generation_(order.generation), form_(order.form) {}

template <class S>
S& Formation::expect() {
  S* const state = std::get_if<S>(&state_);
  ANTDT_CHECK(state != nullptr, "{} of generation {} is {}: an answer to what was not asked",
              config_.self, generation_, state_name());
  return *state;
}

bool Formation::awaits_order() const {
  return std::holds_alternative<AwaitingRoster>(state_) ||
         std::holds_alternative<AwaitingSettle>(state_);
}

const char* Formation::state_name() const {
  static constexpr const char* kNames[] = {"building",      "awaiting roster",  "connecting",
                                           "reading",       "comparing states", "consolidating",
                                           "passing state", "hashing state",    "awaiting settle"};
  static_assert(std::size(kNames) == std::variant_size_v<State>);
  return kNames[state_.index()];
}

// To: building.
void Formation::begin(Effects& out) {
  out.emplace_back(BuildCollective{generation_, form_.rank, form_.size, holds_base()});
}

// From: building. To: awaiting roster.
Formation::End Formation::on(const CollectiveBuilt& input, Effects& out) {
  expect<Building>();
  state_ = AwaitingRoster{};
  out.emplace_back(Send{input.address});
  return {};
}

// From: awaiting roster. To: connecting. Elsewhere it is of a generation that ended meanwhile.
Formation::End Formation::on(const RosterArrived& input, Effects& out) {
  if (input.generation != generation_ || !std::holds_alternative<AwaitingRoster>(state_)) return {};
  state_ = Connecting{ids_of(input.roster)};
  member_.domains = domains_of(input.roster);
  share_steps(static_cast<std::uint32_t>(member_.domains.size()));
  out.emplace_back(SpendTime{TimeUse::kReconfigure});
  out.emplace_back(ConnectCollective{form_, input.roster.members});
  return {};
}

void Formation::share_steps(std::uint32_t members) {
  member_.sharing.reset();
  if (!config_.sharing) return;
  const auto group = sharing::group_of(form_.rank, members, *config_.sharing);
  if (group.size() < 2) return;
  member_.sharing.emplace(
      SharingState{sharing::ShareSeat(form_.rank - group.begin, *config_.sharing)});
}

// From: connecting. To: reading, if training begins from a checkpoint that this member is to
// read; else comparing states.
Formation::End Formation::on(const CollectiveConnected& input, Effects& out) {
  collective_ = input.what;
  std::vector<WorkerId> members = std::move(expect<Connecting>().members);
  const bool begins_again = form_.base == Generation{} && !form_.restore.empty();
  // What was there is gone whether or not the checkpoint can be read.
  if (begins_again) member_.training.forget();
  if (!begins_again || form_.rank != form_.reader) return compare_states(std::move(members), out);
  state_ = Reading{std::move(members)};
  out.emplace_back(ReadState{form_.restore});
  return {};
}

// From: reading. To: comparing states.
Formation::End Formation::on(const StateRead& input, Effects& out) {
  std::vector<WorkerId> members = std::move(expect<Reading>().members);
  member_.training.step = input.step;
  return compare_states(std::move(members), out);
}

// From: reading. To: failed.
Formation::End Formation::on(const StateUnreadable& input, Effects&) {
  expect<Reading>();
  if (input.cause == StateUnreadable::Cause::kInterrupted) return Failed{input.why};
  return Failed{fmt::format("cannot read the checkpoint {}: {}", form_.restore, input.why), input};
}

// From: connecting, reading. To: comparing states; gave up, if it holds another state.
Formation::End Formation::compare_states(std::vector<WorkerId> members, Effects& out) {
  const auto holds = holds_state();
  if (!holds) {
    return GaveUp{{ErrorKind::kAborted,
                   fmt::format("generation {} is to begin training anew, and {} is at step {} "
                               "already: only a new process can go back to the beginning",
                               generation_, config_.self, member_.training.step)}};
  }
  member_.ready = {};
  compare(std::move(members), *holds, out);
  return {};
}

// To: comparing states.
void Formation::compare(std::vector<WorkerId> members, bool holds, Effects& out) {
  const TrainingState& training = member_.training;
  state_ = ComparingStates{std::move(members), holds};
  out.emplace_back(CompareStates{holds, training.step, meta_of(training), training.consolidated});
}

// A generation for which this member was ready may have settled with it without its being told.
bool Formation::holds_base() const {
  if (form_.base == Generation{}) return false;
  return form_.base == member_.training.settled || form_.base == member_.ready;
}

std::optional<bool> Formation::holds_state() {
  TrainingState& training = member_.training;
  if (form_.base != Generation{}) {
    const bool holds = holds_base();
    if (holds && training.settled != form_.base) {
      training.settle(member_.ready, member_.ready_members);
    }
    return holds;
  }
  if (!form_.restore.empty()) return form_.rank == form_.reader;  // which has read it
  if (training.pristine) return config_.begins_alike || form_.rank == 0;
  return {};
}

// From: comparing states. To: consolidating, or comparing states again, if the replicas of those
// who hold the state may differ; passing state, if somebody beside this member lacks it; else
// hashing state.
Formation::End Formation::on(const StatesCompared& input, Effects& out) {
  ComparingStates compared = std::move(expect<ComparingStates>());
  const auto plan = heal_plan(input.slots, form_.rank);
  if (!plan) {
    return Failed{plan.error().message, {}, plan.error().kind == ErrorKind::kUsage};
  }
  // Where training begins, all have the same state, or only one has it.
  if (form_.base != Generation{} && !plan->version.equal()) {
    if (plan->receives) {
      compare(std::move(compared.members), compared.holds, out);
      return {};
    }
    return consolidate(std::move(compared.members), holders_of(input.slots), out);
  }
  if (!plan->receives && !plan->sends) {
    hash_state(std::move(compared.members), plan->on_device, out);
    return {};
  }
  if (plan->receives && !compared.holds) {
    member_.training.settled = {};
    member_.training.pristine = false;
  }
  state_ = PassingState{std::move(compared.members), plan->receives, plan->version.consolidated,
                        plan->on_device};
  out.emplace_back(PassState{*plan, plan->receives ? std::string() : meta_of(member_.training),
                             input.slots[form_.rank].part_bytes + plan->meta_bytes,
                             compared.holds});
  return {};
}

// To: consolidating, also if no other member holds the state.
Formation::End Formation::consolidate(std::vector<WorkerId> members,
                                      std::vector<std::uint32_t> holders, Effects& out) {
  const auto in_base = ranks_in_base(members, holders);
  if (!in_base) return Failed{in_base.error().message};
  const StepExchange& exchange = member_.exchange;
  state_ = Consolidating{std::move(members), exchange.merged(*in_base)};
  out.emplace_back(exchange.consolidation(*in_base, std::move(holders)));
  return {};
}

// All of these have trained in the base, because a replica that was copied is equal to others.
Result<std::vector<std::uint32_t>> Formation::ranks_in_base(
    const std::vector<WorkerId>& members, const std::vector<std::uint32_t>& holders) const {
  const auto& base = member_.training.places;  // by rank in the base
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t holder : holders) {
    const auto found = std::ranges::find(base, members.at(holder), &wire::MemberPlace::worker);
    if (found == base.end()) {
      return fail(ErrorKind::kCorrupt,
                  "{} says that it holds a replica of generation {}, of which it was no member: "
                  "start that worker again",
                  members[holder], form_.base);
    }
    ranks.push_back(static_cast<std::uint32_t>(found - base.begin()));
  }
  return ranks;
}

// From: consolidating. To: comparing states again.
Formation::End Formation::on(const Consolidated&, Effects& out) {
  Consolidating done = std::move(expect<Consolidating>());
  member_.training.consolidate(generation_, done.merged);
  compare(std::move(done.members), true, out);
  return {};
}

// From: passing state. To: hashing state, at the step of all.
Formation::End Formation::on(const StatePassed& input, Effects& out) {
  PassingState passed = std::move(expect<PassingState>());
  if (passed.receives) {
    member_.training.pristine = false;
    if (const Status taken = take_over(input.meta, member_.training); !taken) {
      member_.training.settled = {};
      return Failed{taken.error().message};
    }
    member_.training.settled = form_.base;
    member_.training.consolidated = passed.consolidated;
    // The beginning of rank 0 is now this member's.
    member_.training.pristine = form_.base == Generation{} && form_.restore.empty();
  }
  hash_state(std::move(passed.members), passed.on_device, out);
  return {};
}

void Formation::hash_state(std::vector<WorkerId> members, bool on_device, Effects& out) {
  member_.training.members = std::move(members);
  state_ = HashingState{};
  out.emplace_back(HashState{member_.training.step, form_.unlike, on_device});
}

// From: hashing state. To: awaiting settle.
Formation::End Formation::on(const StateHashed& input, Effects& out) {
  expect<HashingState>();
  const TrainingState& training = member_.training;
  state_ = AwaitingSettle{};
  member_.ready = generation_;
  member_.ready_members = training.members;
  out.emplace_back(SpendTime{member_.resting});
  // All are at the same step: one of them tells which records made the last ones.
  out.emplace_back(Send{wire::Ready{training.step, input.hash, training.phase, training.places,
                                    form_.rank == 0 ? training.log.history() : wire::StepHistory{},
                                    collective_, input.replaced}});
  return {};
}

// From: awaiting settle. To: settled; gave up, if it settled at another step than this member's.
Formation::End Formation::on(const GenerationSettled& input, Effects& out) {
  if (input.generation != generation_ || !std::holds_alternative<AwaitingSettle>(state_)) return {};
  TrainingState& training = member_.training;
  if (input.settle.step != training.step) {
    return GaveUp{{ErrorKind::kInternal,
                   fmt::format("generation {} settled at step {}, and this member is at step {}",
                               generation_, input.settle.step, training.step)}};
  }
  training.settle(generation_, training.members);
  training.share = share_of(input.settle.plan, config_.self);
  out.emplace_back(SetRate{input.settle.plan.rate});
  if (input.settle.servers) {
    out.emplace_back(UseServers{input.settle.group, *input.settle.servers});
  }
  return Settled{};
}

}  // namespace antdt::worker
