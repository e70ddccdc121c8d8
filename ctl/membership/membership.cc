#include "ctl/membership/membership.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::membership {
namespace {

constexpr Duration kRepeatOrders = std::chrono::seconds(2);

}  // namespace

void Membership::step(const Input& input, MonoTime now, Effects& out) {
  now_ = now;
  if (since_ == MonoTime{}) since_ = now;
  std::visit([&](const auto& e) { on(e, out); }, input);
  check_invariants();
}

// The check looks at a few numbers, whatever the size of the group.
void Membership::check_invariants() const {
  ANTDT_CHECK(base_ <= generation_, "base {} is after generation {}", base_, generation_);
  ANTDT_CHECK(state_ != State::kSettled || base_ == generation_,
              "generation {} is settled, and {} is the base", generation_, base_);
  ANTDT_CHECK(!forming() || (!members_.empty() && base_ < generation_),
              "generation {} is formed of {} members on base {}", generation_, members_.size(),
              base_);
}

MembershipImage Membership::image() const {
  return {generation_, base_,      state_ == State::kSettled, base_members_.all(), lineage_,
          restore_,    collective_};
}

void Membership::restore(const MembershipImage& image) {
  generation_ = image.generation;
  base_ = image.base;
  base_members_ = MemberList(image.base_members);
  members_ = base_members_;
  lineage_ = image.lineage;
  restore_ = image.restore;
  collective_ = image.collective;
  state_ = image.settled ? State::kSettled : State::kGathering;
}

bool Membership::some_of_base_expected() const {
  return std::ranges::any_of(base_members_.all(),
                             [&](const ExpectedMember& e) { return expected_.contains(e.member); });
}

std::vector<Member> Membership::missing() const {
  std::vector<Member> missing;
  const bool all_are_required = gathering() && !some_of_base_expected();
  for (const ExpectedMember& e : (gathering() ? expected_ : members_).all()) {
    const bool has_done = gathering() ? joined_.contains(e.member) ||
                                            !(all_are_required || base_members_.contains(e.member))
                          : state_ == State::kAddresses  ? addresses_.contains(e.member)
                          : state_ == State::kConnecting ? ready_.has(e.member)
                                                         : true;
    if (!has_done) missing.push_back(e.member);
  }
  return missing;
}

bool Membership::awaits(Member member) const {
  if (!gathering() || !expected_.contains(member) || joined_.contains(member)) return false;
  return base_members_.contains(member) || !some_of_base_expected();
}

std::string Membership::waiting_for() const {
  switch (state_) {
    case State::kGathering:
    case State::kRegrouping:
    case State::kRestoring:
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

// ------------------------------------------------------------- who is to be in

void Membership::on(const MembersExpected& e, Effects& out) {
  std::vector<ExpectedMember> members = e.members;
  std::ranges::sort(members, {}, [](const ExpectedMember& m) {
    return std::tuple(m.host_order, m.member.worker);
  });
  expected_ = MemberList(std::move(members));
  std::erase_if(expected_since_,
                [&](const auto& since) { return !expected_.contains(since.first); });
  for (const ExpectedMember& m : expected_.all()) expected_since_.try_emplace(m.member, now_);
  begin_if_complete(out);
}

void Membership::on(const MemberJoined& e, Effects& out) {
  if (!expected_.contains(e.member)) return;
  const bool could_not_read = !e.join.unreadable.empty() && e.generation == generation_ &&
                              e.generation > begun_after_ && reads_checkpoint();
  if (could_not_read) {
    const std::size_t rank = members_.rank_of(e.member);
    const ExpectedMember reader =
        rank < members_.size() ? members_.at(rank) : ExpectedMember{e.member, {}, 0};
    // It is not the other members' fault that they could not receive the state.
    const bool is_new = reader_.hear_unreadable(reader, {e.join.unreadable, e.join.may_pass});
    if (is_new) failed_.forget();
  }
  // The join was sent before the member was in the base and arrived late, so it says nothing about
  // the present.
  if (base_members_.contains(e.member) && e.generation < base_) return;
  const bool member = !gathering() && members_.contains(e.member);
  if (!member) {
    const bool first_back = members_.contains(e.member) &&
                            std::ranges::none_of(members_.all(), [&](const ExpectedMember& m) {
                              return joined_.contains(m.member);
                            });
    if (first_back) told_ = now_;  // the others will join soon
    joined_[e.member] = e.join;
    if (state_ == State::kSettled) regroup_for_newcomers(out);
    begin_if_complete(out);
    return;
  }
  if (e.generation < generation_) {  // the member has not heard of this generation
    if (state_ == State::kAddresses) out.emplace_back(form_for(members_.rank_of(e.member)));
    return;
  }
  if (forming()) return formation_failed(e, out);
  // From: kSettled. To: kRegrouping. The member has left the settled generation. The others stop at
  // the same step, or are in a collective that cannot complete.
  gather(State::kRegrouping);
  joined_[e.member] = e.join;
  begin_if_complete(out);
}

// From: any state with members. To: kGathering, or to kRegrouping if all stop at the end of a step
// by themselves. All members have to join again.
void Membership::gather(State how) {
  for (const ExpectedMember& e : members_.all()) joined_.erase(e.member);
  addresses_.clear();
  ready_.clear();
  state_ = how;
  since_ = told_ = now_;
}

void Membership::abort_others(Member but, const std::string& reason, Effects& out) {
  std::vector<Member> others = members_.members();
  std::erase(others, but);
  std::erase_if(others, [&](Member m) { return !expected_.contains(m); });
  out.emplace_back(SendAbort{generation_, std::move(others), reason});
}

// The member is in a formation that has ended. Of those that go on or form, only who is not among
// them can be: it was away when the others were told.
void Membership::abort_stray(Member member, Generation generation, Effects& out) {
  if (!expected_.contains(member) || joined_.contains(member)) return;
  if (!gathering() && members_.contains(member)) return;
  out.emplace_back(SendAbort{generation, {member}, "this generation is not formed any more"});
}

// From: kAddresses, kConnecting. To: kGathering, unless too many formations failed.
void Membership::formation_failed(const MemberJoined& e, Effects& out) {
  const std::string& host = members_.at(members_.rank_of(e.member)).host;
  const std::string reason =
      fmt::format("{} on {} {}", e.member.worker, host,
                  e.join.problem.empty() ? "left while it was formed" : e.join.problem);
  if (!e.join.problem.empty()) {
    failed_.add(now_);
    if (failed_.enough(now_, e.join.lasts ? Duration::zero() : patience_)) {
      out.emplace_back(e.join.lasts
                           ? GiveUp{fmt::format("{} ({} times in a row)", reason, failed_.count())}
                           : cannot_form(reason));
      return;
    }
  }
  out.emplace_back(ReportBroken{generation_, reason});
  abort_others(e.member, reason, out);
  gather(State::kGathering);
  joined_[e.member] = e.join;
  begin_if_complete(out);
}

GiveUp Membership::cannot_form(const std::string& reason) const {
  const bool several_hosts = std::ranges::any_of(
      members_.all(), [&](const ExpectedMember& m) { return m.host != members_.at(0).host; });
  return {fmt::format("{} ({} times in a row, for {:.0f} s){}", reason, failed_.count(),
                      to_seconds(failed_.lasted(now_)),
                      several_hosts ? "; check that the hosts reach each other on [cluster] "
                                      "interface, and that no firewall blocks [cluster] ports"
                                    : "; antdt logs RUN shows what the workers wrote last"),
          ExitClass::kHost, 3};
}

// From: kSettled. To: kRegrouping, if a process that is not a member has joined.
void Membership::regroup_for_newcomers(Effects& out) {
  std::string who;
  for (const auto& [member, join] : joined_) {
    if (members_.contains(member) || !expected_.contains(member)) continue;
    who += fmt::format("{}{}", who.empty() ? "" : ", ", member.worker);
  }
  if (who.empty()) return;
  out.emplace_back(
      SendRegroup{generation_, members_.members(), fmt::format("{} is ready to join", who)});
  gather(State::kRegrouping);
}

void Membership::on(const MemberGone& e, Effects& out) {
  joined_.erase(e.member);
  // The loss of this member explains why the others could not connect or heal.
  if (!e.in_order) failed_.forget();
  if (base_members_.contains(e.member) && e.suspect) suspects_.insert(e.member);
  if (is_to_read(e.member)) reader_.reading_failed(members_.at(reader_.rank()));
  expected_.erase(e.member);
  if (members_.contains(e.member)) lose(e, out);
  begin_if_complete(out);
}

// The order to form is held back until the checkpoint is on the reader's host.
bool Membership::is_to_read(Member member) const {
  const bool has_not_read = (state_ == State::kAddresses && !addresses_.contains(member)) ||
                            (state_ == State::kConnecting && !ready_.has(member));
  return has_not_read && reads_checkpoint() && members_.contains(member) &&
         members_.rank_of(member) == reader_.rank();
}

void Membership::lose(const MemberGone& e, Effects& out) {
  switch (state_) {
    // From: kGathering, kRestoring. To: the same. The others have already been told to join.
    case State::kGathering:
    case State::kRestoring:
      return;
    // From: kRegrouping, kSettled. To: kRegrouping, if the member left at the end of a step. The
    // others stop at the same step.
    case State::kRegrouping:
      if (e.in_order) return;
      break;
    case State::kSettled:
      if (e.in_order) return gather(State::kRegrouping);
      break;
    case State::kAddresses:
    case State::kConnecting:
      break;
  }
  // From: kRegrouping, kAddresses, kConnecting, kSettled. To: kGathering. The members that have not
  // joined again must break off, because they may be in a collective that cannot complete.
  const bool broken = state_ != State::kRegrouping && !e.in_order;
  if (broken) out.emplace_back(ReportBroken{generation_, e.reason});
  std::vector<Member> inside;
  for (const ExpectedMember& m : members_.all()) {
    const bool in = !gathering() || !joined_.contains(m.member);
    if (in && expected_.contains(m.member)) inside.push_back(m.member);
  }
  out.emplace_back(SendAbort{generation_, std::move(inside), e.reason});
  if (gathering()) {
    state_ = State::kGathering;
  } else {
    gather(State::kGathering);
  }
}

// From: kSettled. To: kGathering.
void Membership::on(const CollectiveStuck& e, Effects& out) {
  if (state_ != State::kSettled) return;
  out.emplace_back(ReportBroken{generation_, e.reason});
  abort_others({}, e.reason, out);
  gather(State::kGathering);
}

// From: kConnecting. To: kGathering, unless too many formations failed.
void Membership::on(const FormationStuck& e, Effects& out) {
  if (state_ != State::kConnecting) return;
  failed_.add(now_);
  if (failed_.enough(now_, patience_)) {
    out.emplace_back(cannot_form(e.reason));
    return;
  }
  out.emplace_back(ReportBroken{generation_, e.reason});
  abort_others({}, e.reason, out);
  gather(State::kGathering);
}

// From: any. To: kRestoring, until training begins again.
void Membership::on(const StateLost& e, Effects& out) {
  if (!gathering()) {
    out.emplace_back(ReportBroken{generation_, e.reason});
    abort_others({}, e.reason, out);
    return gather(State::kRestoring);
  }
  if (std::exchange(state_, State::kRestoring) != State::kRegrouping) return;
  std::vector<Member> inside;
  for (const ExpectedMember& m : members_.all()) {
    if (!joined_.contains(m.member) && expected_.contains(m.member)) inside.push_back(m.member);
  }
  out.emplace_back(SendAbort{generation_, std::move(inside), e.reason});
}

void Membership::on(const FormationAllowed& e, Effects& out) {
  may_form_ = e.allowed;
  begin_if_complete(out);
}

void Membership::on(const TrainingBegun& e, Effects& out) {
  lineage_ = e.lineage;
  restore_ = e.restore;
  begun_after_ = generation_;
  base_ = {};
  base_members_ = {};
  suspects_.clear();
  // From: kRestoring. To: kGathering.
  if (state_ == State::kRestoring) state_ = State::kGathering;
  reader_.clear();
  begin_if_complete(out);
}

void Membership::on(const StateMoved& /*e*/, Effects& /*out*/) {
  if (state_ != State::kSettled) since_ = now_;
}

// Orders may be lost. Once one member has joined again, the others are at the end of the same step,
// too. A member that is still in a collective waits for one that has left, and must be released.
void Membership::repeat_orders(Effects& out) {
  if (now_ - told_ < kRepeatOrders) return;
  told_ = now_;
  std::vector<Member> away;
  bool some_are_back = false;
  for (const ExpectedMember& e : members_.all()) {
    if (!expected_.contains(e.member)) continue;
    joined_.contains(e.member) ? void(some_are_back = true) : away.push_back(e.member);
  }
  if (away.empty()) return;
  if (state_ == State::kRegrouping && !some_are_back) {
    out.emplace_back(SendRegroup{generation_, std::move(away), "the membership is to change"});
    return;
  }
  // From: kRegrouping. To: kGathering. One member has stopped, so the others can stop.
  if (state_ == State::kRegrouping) state_ = State::kGathering;
  out.emplace_back(SendAbort{generation_, std::move(away), "the others have left this generation"});
}

void Membership::on(const TimePassed&, Effects& out) {
  if (state_ == State::kSettled) return;
  if (gathering()) repeat_orders(out);
  if (failed_.count() > 0) begin_if_complete(out);
  if (state_ == State::kConnecting) {
    if (now_ - since_ < patience_) return;
    since_ = now_;  // said again only after the same time
    out.emplace_back(FormationStands{
        fmt::format("nothing has moved for {:.0f} s while the members connected and took over the "
                    "training state",
                    to_seconds(patience_))});
    return;
  }
  for (const Member member : missing()) {
    MonoTime& asked = expected_since_[member];
    const bool starting = gathering() && !base_members_.contains(member);
    const Duration patience = starting ? std::max(patience_, kStartPatience) : patience_;
    if (now_ - std::max(since_, asked) < patience) continue;
    asked = now_;  // repeated only after the same time again
    const char* hint = ": if it needs longer before it joins, raise failure.hang_after";
    out.emplace_back(
        EndUnresponsive{member, fmt::format("it was asked {} {:.0f} s ago{}", waiting_for(),
                                            to_seconds(patience), starting ? hint : "")});
  }
}

}  // namespace antdt::ctl::membership
