#include "ctl/membership/membership.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "core/check.h"

namespace antdt::ctl {
namespace {

// A stranger that connects to a member's port, or one lost packet too many, can
// spoil a formation; five in a row have another cause.
constexpr std::uint32_t kFormations = 5;
constexpr Duration kRepeatOrders = std::chrono::seconds(2);

std::vector<Member> members_of(const std::vector<ExpectedMember>& all) {
  std::vector<Member> members;
  for (const ExpectedMember& e : all) members.push_back(e.member);
  return members;
}

std::optional<WorkerId> named_twice(const std::vector<wire::MemberPlace>& places) {
  std::set<WorkerId> named;
  for (const wire::MemberPlace& place : places) {
    if (!named.insert(place.worker).second) return place.worker;
  }
  return {};
}

}  // namespace

std::vector<MembershipEffect> Membership::step(const MembershipEvent& event, MonoTime now) {
  now_ = now;
  if (since_ == MonoTime{}) since_ = now;
  Effects effects;
  std::visit([&](const auto& e) { on(e, effects); }, event);
  check_invariants();
  return effects;
}

// Of a few numbers, whatever the size of the group.
void Membership::check_invariants() const {
  ANTDT_CHECK(base_ <= generation_, "base {} is after generation {}", base_, generation_);
  ANTDT_CHECK(state_ != State::kSettled || base_ == generation_,
              "generation {} is settled, and {} is the base", generation_, base_);
  ANTDT_CHECK(!forming() || (!members_.empty() && base_ < generation_),
              "generation {} is formed of {} members on base {}", generation_, members_.size(),
              base_);
}

MembershipImage Membership::image() const {
  return {generation_, base_, state_ == State::kSettled, base_members_, lineage_, restore_};
}

void Membership::restore(const MembershipImage& image) {
  generation_ = image.generation;
  base_ = image.base;
  set_base(image.base_members);
  set_members(image.base_members);
  lineage_ = image.lineage;
  restore_ = image.restore;
  state_ = image.settled ? State::kSettled : State::kGathering;
}

bool Membership::contains(Member member) const { return rank_of(member) < members_.size(); }

// Members of the base are waited for; while there is none, or nobody of it is left,
// everybody is.
bool Membership::some_of_base_expected() const {
  return std::ranges::any_of(base_ids_, [&](Member m) { return is_expected(m); });
}

void Membership::set_members(std::vector<ExpectedMember> members) {
  members_ = std::move(members);
  ranks_.clear();
  for (std::size_t rank = 0; rank < members_.size(); ++rank) ranks_[members_[rank].member] = rank;
}

void Membership::set_base(std::vector<ExpectedMember> members) {
  base_members_ = std::move(members);
  base_ids_.clear();
  for (const ExpectedMember& e : base_members_) base_ids_.insert(e.member);
}

std::vector<Member> Membership::missing() const {
  std::vector<Member> missing;
  const bool all_are_required = gathering() && !some_of_base_expected();
  for (const ExpectedMember& e : gathering() ? expected_ : members_) {
    const bool has_done =
        gathering() ? joined_.contains(e.member) || !(all_are_required || in_base(e.member))
        : state_ == State::kAddresses  ? addresses_.contains(e.member)
        : state_ == State::kConnecting ? ready_.contains(e.member)
                                       : true;
    if (!has_done) missing.push_back(e.member);
  }
  return missing;
}

std::string Membership::waiting_for() const {
  switch (state_) {
    case State::kGathering:
    case State::kRegrouping:
      return "to join";
    case State::kAddresses:
      return "to name its end points";
    case State::kConnecting:
      return "to connect to its neighbours and take over the training state";
    case State::kSettled:
      return "";
  }
  return "";
}

std::size_t Membership::rank_of(Member member) const {
  const auto found = ranks_.find(member);
  return found == ranks_.end() ? members_.size() : found->second;
}

// ------------------------------------------------------------- who is to be in

void Membership::on(const Expect& event, Effects& effects) {
  expected_ = event.members;
  expected_ids_.clear();
  for (const ExpectedMember& e : expected_) expected_ids_.insert(e.member);
  std::erase_if(expected_since_, [&](const auto& e) { return !is_expected(e.first); });
  for (const ExpectedMember& e : expected_) expected_since_.try_emplace(e.member, now_);
  std::ranges::sort(expected_, {}, [](const ExpectedMember& e) {
    return std::tuple(e.host_order, e.member.worker);
  });
  begin_if_complete(effects);
}

void Membership::on(const MemberJoined& event, Effects& effects) {
  if (!is_expected(event.member)) return;
  hear_unreadable(event);
  // Sent before it was in the base, and late: it says nothing of now.
  if (in_base(event.member) && event.generation < base_) return;
  const bool member = !gathering() && contains(event.member);
  if (!member) {
    const bool first_back =
        contains(event.member) &&
        std::ranges::none_of(members_, [&](const auto& e) { return joined_.contains(e.member); });
    if (first_back) told_ = now_;  // the others are about to come
    joined_[event.member] = event.join;
    if (state_ == State::kSettled) regroup_for_newcomers(effects);
    begin_if_complete(effects);
    return;
  }
  if (event.generation < generation_) {  // it has not heard of this generation
    if (state_ == State::kAddresses) effects.emplace_back(form_for(rank_of(event.member)));
    return;
  }
  if (forming()) return formation_failed(event, effects);
  // It has left the settled generation. The others stop at the same step, or
  // are in a collective that cannot complete.
  gather(State::kRegrouping);
  joined_[event.member] = event.join;
  begin_if_complete(effects);
}

// From: any state with members. To: kGathering, or kRegrouping where all stop at the end of a step
// by themselves. Everybody has to join again.
void Membership::gather(State how) {
  for (const ExpectedMember& e : members_) joined_.erase(e.member);
  addresses_.clear();
  ready_.clear();
  state_ = how;
  since_ = told_ = now_;
}

void Membership::abort_others(Member but, const std::string& reason, Effects& effects) {
  std::vector<Member> others = members_of(members_);
  std::erase(others, but);
  std::erase_if(others, [&](Member m) { return !is_expected(m); });
  effects.emplace_back(SendAbort{generation_, std::move(others), reason});
}

void Membership::formation_failed(const MemberJoined& event, Effects& effects) {
  const std::string& host = members_[rank_of(event.member)].host;
  const std::string reason =
      fmt::format("{} on {} {}", event.member.worker, host,
                  event.join.problem.empty() ? "left while it was formed" : event.join.problem);
  if (!event.join.problem.empty() && ++failed_formations_ == kFormations) {
    effects.emplace_back(CannotSettle{fmt::format(
        "{} ({} times in a row); do the hosts reach each other on [cluster] interface, and does a "
        "firewall let [cluster] ports through?",
        reason, kFormations)});
    return;
  }
  effects.emplace_back(GenerationBroken{generation_, reason});
  abort_others(event.member, reason, effects);
  gather(State::kGathering);
  joined_[event.member] = event.join;
  begin_if_complete(effects);
}

void Membership::regroup_for_newcomers(Effects& effects) {
  std::string who;
  for (const auto& [member, join] : joined_) {
    if (contains(member) || !is_expected(member)) continue;
    who += fmt::format("{}{}", who.empty() ? "" : ", ", member.worker);
  }
  if (who.empty()) return;
  effects.emplace_back(
      SendRegroup{generation_, members_of(members_), fmt::format("{} is ready to join", who)});
  gather(State::kRegrouping);
}

void Membership::on(const MemberGone& event, Effects& effects) {
  joined_.erase(event.member);
  // Who went explains why the others could not connect or heal: no fault of theirs.
  if (!event.in_order) failed_formations_ = 0;
  if (in_base(event.member) && event.suspect) suspects_.insert(event.member);
  const bool was_to_read = state_ == State::kConnecting && reads_checkpoint() &&
                           contains(event.member) && rank_of(event.member) == reader_;
  if (was_to_read && !ready_.contains(event.member)) reading_failed(event.member);
  expected_ids_.erase(event.member);
  std::erase_if(expected_, [&](const ExpectedMember& e) { return e.member == event.member; });
  if (contains(event.member)) member_gone(event, effects);
  begin_if_complete(effects);
}

void Membership::member_gone(const MemberGone& event, Effects& effects) {
  switch (state_) {
    // From: kGathering. To: the same. The others have been told to join.
    case State::kGathering:
      return;
    // From: kRegrouping, kSettled. To: kRegrouping, if it left at the end of a step. The others
    // stop at the same one.
    case State::kRegrouping:
      if (event.in_order) return;
      break;
    case State::kSettled:
      if (event.in_order) return gather(State::kRegrouping);
      break;
    case State::kAddresses:
    case State::kConnecting:
      break;
  }
  // From: kRegrouping, kAddresses, kConnecting, kSettled. To: kGathering. Those that have not
  // joined again break off: they may be in a collective that cannot complete.
  const bool broken = state_ != State::kRegrouping && !event.in_order;
  if (broken) effects.emplace_back(GenerationBroken{generation_, event.reason});
  std::vector<Member> inside;
  for (const ExpectedMember& e : members_) {
    const bool in = !gathering() || !joined_.contains(e.member);
    if (in && is_expected(e.member)) inside.push_back(e.member);
  }
  effects.emplace_back(SendAbort{generation_, std::move(inside), event.reason});
  if (gathering()) {
    state_ = State::kGathering;
  } else {
    gather(State::kGathering);
  }
}

void Membership::on(const Stuck& event, Effects& effects) {
  if (state_ != State::kSettled) return;
  effects.emplace_back(GenerationBroken{generation_, event.reason});
  abort_others({}, event.reason, effects);
  gather(State::kGathering);
}

void Membership::on(const Begin& event, Effects& effects) {
  lineage_ = event.lineage;
  restore_ = event.restore;
  base_ = {};
  set_base({});
  suspects_.clear();
  state_lost_ = false;
  failed_reads_on_.clear();
  failed_reads_.clear();
  unreadable_.clear();
  begin_if_complete(effects);
}

// Orders may be lost. Once one member is back the others are at the end of the
// same step too: one that is still in a collective waits for somebody who has
// gone, and must be released.
void Membership::repeat_orders(Effects& effects) {
  if (now_ - told_ < kRepeatOrders) return;
  told_ = now_;
  std::vector<Member> away;
  bool some_are_back = false;
  for (const ExpectedMember& e : members_) {
    if (!is_expected(e.member)) continue;
    joined_.contains(e.member) ? void(some_are_back = true) : away.push_back(e.member);
  }
  if (away.empty()) return;
  if (state_ == State::kRegrouping && !some_are_back) {
    effects.emplace_back(SendRegroup{generation_, std::move(away), "the membership is to change"});
    return;
  }
  // From: kRegrouping, kGathering. To: kGathering. One has stopped, and so the others can.
  state_ = State::kGathering;
  effects.emplace_back(
      SendAbort{generation_, std::move(away), "the others have left this generation"});
}

void Membership::on(const MembershipTick&, Effects& effects) {
  if (state_ == State::kSettled) return;
  if (gathering()) repeat_orders(effects);
  for (const Member member : missing()) {
    MonoTime& asked = expected_since_[member];
    const bool starting = gathering() && !in_base(member);
    const Duration patience = starting ? std::max(patience_, kStartPatience) : patience_;
    if (now_ - std::max(since_, asked) < patience) continue;
    asked = now_;  // said again only after as long
    effects.emplace_back(Unresponsive{
        member, fmt::format("it was asked {} {:.0f} s ago", waiting_for(), to_seconds(patience))});
  }
}

// ------------------------------------------------------------------- formation

void Membership::begin_if_complete(Effects& effects) {
  if (!gathering() || state_lost_) return;
  const bool all_are_required = !some_of_base_expected();
  const auto is_waited_for = [&](Member m) {
    return is_expected(m) && !joined_.contains(m) && (all_are_required || in_base(m));
  };
  if (is_waited_for(waits_for_)) return;
  std::vector<ExpectedMember> chosen;
  // From behind: they come by rank.
  for (auto e = expected_.rbegin(); e != expected_.rend(); ++e) {
    if (is_waited_for(waits_for_ = e->member)) return;
    if (joined_.contains(e->member)) chosen.push_back(*e);
  }
  std::ranges::reverse(chosen);
  if (chosen.empty()) return;
  const auto holds_state = [&](const ExpectedMember& e) {
    // A later one never settled: it was formed from the base.
    return joined_.at(e.member).settled >= base_;
  };
  if (base_ != Generation{} && std::ranges::none_of(chosen, holds_state)) {
    state_lost_ = true;
    effects.emplace_back(StateLost{base_});
    return;
  }
  set_members(std::move(chosen));
  auto impossible = data_differs();
  if (!impossible) impossible = nobody_can_read();
  if (impossible) {
    effects.emplace_back(std::move(*impossible));
    return;
  }
  form(effects);
}

void Membership::form(Effects& effects) {
  generation_ = generation_.next();
  state_ = State::kAddresses;
  since_ = now_;
  addresses_.clear();
  ready_.clear();
  reader_ = choose_reader();
  effects.emplace_back(GenerationBegun{generation_});
  for (std::size_t rank = 0; rank < members_.size(); ++rank) effects.emplace_back(form_for(rank));
}

SendForm Membership::form_for(std::size_t rank) const {
  wire::Form form;
  form.rank = static_cast<std::uint32_t>(rank);
  form.size = static_cast<std::uint32_t>(members_.size());
  const crypto::Secret secret = secret_.derive(
      (crypto::Transcript("antdt generation") << lineage_.value << generation_.value).text());
  form.secret = secret.for_wire();
  // An earlier trainer sends it in the clear: nothing of the secret can be read from it.
  const crypto::Mac earlier = secret.mac("antdt key of an earlier trainer");
  std::memcpy(&form.key, earlier.data(), sizeof(form.key));
  form.base = base_;
  if (reads_checkpoint()) {
    form.restore = restore_;
    form.reader = reader_;
  }
  return {members_[rank].member, generation_, std::move(form)};
}

void Membership::on(const AddressArrived& event, Effects& effects) {
  const bool ours = event.generation == generation_ && forming() && contains(event.member);
  if (!ours) {
    // Of a formation that is over, or that a former incarnation began.
    if (is_expected(event.member) && gathering() && !joined_.contains(event.member)) {
      effects.emplace_back(
          SendAbort{event.generation, {event.member}, "this generation is not formed any more"});
    }
    return;
  }
  if (state_ == State::kConnecting) {  // it has not heard of the roster
    effects.emplace_back(SendRoster{event.member, generation_, roster()});
    return;
  }
  addresses_[event.member] = event.address;
  if (addresses_.size() < members_.size()) return;
  state_ = State::kConnecting;
  since_ = now_;
  const SharedRoster shared = roster();
  for (const auto& member : members_) {
    effects.emplace_back(SendRoster{member.member, generation_, shared});
  }
}

SharedRoster Membership::roster() const {
  auto list = std::make_shared<std::vector<wire::RosterMember>>();
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const Member member = members_[r].member;
    list->push_back(
        {member.worker, static_cast<std::uint32_t>(r), members_[r].host, addresses_.at(member).at});
  }
  return {std::move(list)};
}

void Membership::on(const ReadyArrived& event, Effects& effects) {
  const bool ours = event.generation == generation_ && contains(event.member);
  if (!ours || state_ != State::kConnecting) {
    if (is_expected(event.member) && gathering() && !joined_.contains(event.member)) {
      effects.emplace_back(
          SendAbort{event.generation, {event.member}, "this generation is not formed any more"});
    }
    return;
  }
  hear_ready(event);
  if (ready_.size() == members_.size()) settle(effects);
}

void Membership::settle(Effects& effects) {
  if (auto differs = state_differs()) {
    effects.emplace_back(std::move(*differs));
    return;
  }
  const wire::Ready& state = ready_.at(first_ready_);
  if (const auto twice = named_twice(state.places)) {
    effects.emplace_back(CannotSettle{
        fmt::format("the members say twice how far {} was at step {}; this is a defect of the "
                    "trainer",
                    *twice, state.step)});
    return;
  }
  Settled settled{generation_, state.step, members_, state.phase, {}};
  for (const wire::MemberPlace& place : state.places) {
    const auto old = base_ids_.lower_bound({place.worker, Attempt{}});
    if (old == base_ids_.end() || old->worker != place.worker) continue;
    settled.places.push_back({*old, place.place, suspects_.contains(*old)});
  }
  state_ = State::kSettled;
  since_ = now_;
  failed_formations_ = 0;
  base_ = generation_;
  set_base(members_);
  suspects_.clear();
  for (const ExpectedMember& e : members_) joined_.erase(e.member);
  effects.emplace_back(std::move(settled));
  regroup_for_newcomers(effects);
}

}  // namespace antdt::ctl
