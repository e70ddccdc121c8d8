// How a generation is formed, from the members that have joined to the settled one.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "ctl/membership/membership.h"

namespace antdt::ctl::membership {
namespace {

SharedRoster roster_of(const MemberList& members,
                       const std::map<Member, wire::Address>& addresses) {
  auto list = std::make_shared<std::vector<wire::RosterMember>>();
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const ExpectedMember& e = members.at(rank);
    list->push_back({e.member.worker, static_cast<std::uint32_t>(rank), e.host,
                     addresses.at(e.member).at, addresses.at(e.member).sharing, e.domain});
  }
  return {std::move(list)};
}

}  // namespace

void Membership::begin_if_complete(Effects& out) {
  if (!gathering() || state_ == State::kRestoring || !may_form_) return;
  if (failed_.pausing(now_)) return;  // asked again with time
  const bool all_are_required = !some_of_base_expected();
  const auto is_waited_for = [&](Member m) {
    return expected_.contains(m) && !joined_.contains(m) &&
           (all_are_required || base_members_.contains(m));
  };
  if (is_waited_for(waits_for_)) return;
  std::vector<ExpectedMember> chosen;
  // Searched from the end, because members join in the order of their ranks.
  const std::vector<ExpectedMember>& expected = expected_.all();
  for (auto e = expected.rbegin(); e != expected.rend(); ++e) {
    if (is_waited_for(waits_for_ = e->member)) return;
    if (joined_.contains(e->member)) chosen.push_back(*e);
  }
  std::ranges::reverse(chosen);
  if (chosen.empty()) return;
  const auto holds_state = [&](const ExpectedMember& e) {
    // A later generation never settled: it was formed from the base.
    return joined_.at(e.member).settled >= base_;
  };
  // From: kGathering, kRegrouping. To: kRestoring.
  if (base_ != Generation{} && std::ranges::none_of(chosen, holds_state)) {
    state_ = State::kRestoring;
    out.emplace_back(RestoreState{base_, {}});
    return;
  }
  members_ = MemberList(std::move(chosen));
  if (auto differ = data_differ(members_, joined_)) {
    out.emplace_back(GiveUp{std::move(*differ)});
    return;
  }
  if (const auto why = reads_checkpoint() ? reader_.nobody_can(members_) : std::nullopt) {
    return nobody_can_read(*why, out);
  }
  form(out);
}

// From: kGathering. To: kRestoring: who looks for checkpoints waits before it looks again. What
// they found in the files does not pass, but is asked for once more: each read the copy of its own
// host.
void Membership::nobody_can_read(const CheckpointReader::Why& why, Effects& out) {
  std::string said = fmt::format("no member can read the checkpoint {}: {}", restore_, why.text);
  const bool damaged = !why.may_pass;
  if (damaged && std::exchange(damaged_, restore_) == restore_) {
    out.emplace_back(GiveUp{std::move(said), ExitClass::kCheckpoint, 1});
    return;
  }
  state_ = State::kRestoring;
  out.emplace_back(RestoreState{base_, std::move(said), restore_, damaged});
}

// From: kGathering, kRegrouping. To: kAddresses.
void Membership::form(Effects& out) {
  generation_ = generation_.next();
  state_ = State::kAddresses;
  since_ = now_;
  addresses_.clear();
  ready_.clear();
  reader_.choose(members_);
  out.emplace_back(PersistGeneration{generation_});
  unlike_ = devices_differ(members_, joined_);
  SendForm form = form_for(0);  // with a secret that is alike for all, and derived once
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    form.to = members_.at(rank).member;
    form.form.rank = static_cast<std::uint32_t>(rank);
    out.emplace_back(form);
  }
}

SendForm Membership::form_for(std::size_t rank) const {
  wire::Form form;
  form.rank = static_cast<std::uint32_t>(rank);
  form.size = static_cast<std::uint32_t>(members_.size());
  const crypto::Secret secret = secret_.derive(
      (crypto::Transcript("antdt generation") << lineage_.value << generation_.value).text());
  form.secret = secret.for_wire();
  // An earlier trainer sends this key unencrypted. The secret cannot be computed from it.
  const crypto::Mac earlier = secret.mac("antdt key of an earlier trainer");
  std::memcpy(&form.key, earlier.data(), sizeof(form.key));
  form.unlike = unlike_;
  form.base = base_;
  if (reads_checkpoint()) {
    form.restore = restore_;
    form.reader = reader_.rank();
  }
  return {members_.at(rank).member, generation_, std::move(form)};
}

void Membership::on(const AddressArrived& e, Effects& out) {
  const bool ours = e.generation == generation_ && forming() && members_.contains(e.member);
  if (!ours) return abort_stray(e.member, e.generation, out);
  if (state_ == State::kConnecting) {  // the member has not heard of the roster
    out.emplace_back(SendRoster{e.member, generation_, roster_of(members_, addresses_)});
    return;
  }
  addresses_[e.member] = e.address;
  if (addresses_.size() < members_.size()) return;
  // From: kAddresses. To: kConnecting. All addresses are known, so they are sent to all.
  state_ = State::kConnecting;
  since_ = now_;
  const SharedRoster shared = roster_of(members_, addresses_);
  for (const ExpectedMember& m : members_.all()) {
    out.emplace_back(SendRoster{m.member, generation_, shared});
  }
}

void Membership::on(const ReadyArrived& e, Effects& out) {
  const bool ours = e.generation == generation_ && members_.contains(e.member);
  if (!ours || state_ != State::kConnecting) return abort_stray(e.member, e.generation, out);
  ready_.hear(e.member, e.ready);
  if (ready_.size() == members_.size()) settle(out);
}

// From: kConnecting. To: kSettled, if all members have the same state.
void Membership::settle(Effects& out) {
  // Where training begins, there are no places to compare.
  if (auto differs = ready_.difference(members_, base_ != Generation{})) {
    out.emplace_back(GiveUp{std::move(*differs)});
    return;
  }
  const wire::Ready& state = ready_.state();
  SettleGeneration settled{generation_, state.step, members_.all(),
                           state.phase, {},         state.collective};
  for (const wire::MemberPlace& place : state.places) {
    const Member* const old = base_members_.attempt_of(place.worker);
    if (old == nullptr) continue;
    settled.places.push_back({*old, place.place, suspects_.contains(*old)});
  }
  collective_ = state.collective;
  state_ = State::kSettled;
  since_ = now_;
  failed_.forget();
  damaged_.clear();
  base_ = generation_;
  base_members_ = members_;
  suspects_.clear();
  for (const ExpectedMember& m : members_.all()) joined_.erase(m.member);
  out.emplace_back(std::move(settled));
  regroup_for_newcomers(out);
}

}  // namespace antdt::ctl::membership
