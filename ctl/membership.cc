#include "ctl/membership.h"

#include <algorithm>
#include <tuple>

#include "core/permutation.h"

namespace antdt::ctl {
namespace {

// A stranger that connects to a member's port, or one lost packet too many, can
// spoil a formation; five in a row have another cause.
constexpr std::uint32_t kFormations = 5;

}  // namespace

std::vector<MembershipEffect> Membership::step(const MembershipEvent& event) {
  Effects effects;
  std::visit([&](const auto& e) { on(e, effects); }, event);
  return effects;
}

void Membership::restore(Generation generation, std::vector<ExpectedMember> members_by_rank) {
  generation_ = generation;
  expected_ = members_by_rank;
  members_ = std::move(members_by_rank);
  state_ = State::kSettled;
}

bool Membership::contains(Member member) const { return rank_of(member) < members_.size(); }

std::vector<Member> Membership::missing() const {
  std::vector<Member> missing;
  for (const ExpectedMember& e : expected_) {
    if (!joined_.contains(e.member)) missing.push_back(e.member);
  }
  return missing;
}

std::size_t Membership::rank_of(Member member) const {
  return static_cast<std::size_t>(std::ranges::find(members_, member, &ExpectedMember::member) -
                                  members_.begin());
}

void Membership::on(const Expect& event, Effects& effects) {
  expected_ = event.members;
  std::ranges::sort(expected_, {}, [](const ExpectedMember& e) {
    return std::tuple(e.host_order, e.member.worker);
  });
  begin_if_complete(effects);
}

void Membership::on(const MemberJoined& event, Effects& effects) {
  const bool forming = state_ == State::kAddresses || state_ == State::kConnecting;
  if (forming && !event.join.problem.empty() && event.generation == generation_ &&
      contains(event.member)) {
    return form_again(event, effects);
  }
  if (state_ == State::kAddresses && contains(event.member)) {
    effects.emplace_back(form_for(rank_of(event.member)));  // the first one was lost
    return;
  }
  const bool wanted =
      std::ranges::find(expected_, event.member, &ExpectedMember::member) != expected_.end();
  if (!wanted || state_ != State::kGathering) return;  // a repeated or late Join changes nothing
  joined_[event.member] = event.join;
  begin_if_complete(effects);
}

void Membership::form_again(const MemberJoined& event, Effects& effects) {
  const std::string reason =
      fmt::format("{} on {} could not connect to its neighbours: {}", event.member.worker,
                  members_[rank_of(event.member)].host, event.join.problem);
  if (++failed_formations_ == kFormations) {
    effects.emplace_back(CannotSettle{fmt::format(
        "{} ({} times in a row); do the hosts reach each other on [cluster] interface, and does a "
        "firewall let [cluster] ports through?",
        reason, kFormations)});
    return;
  }
  GenerationBroken broken{generation_, {}, reason};
  for (const ExpectedMember& e : members_) {
    if (e.member != event.member) broken.left.push_back(e.member);
  }
  effects.emplace_back(std::move(broken));
  state_ = State::kGathering;
  begin_if_complete(effects);
}

SendForm Membership::form_for(std::size_t rank) const {
  return {members_[rank].member, generation_,
          wire::Form{static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(members_.size()),
                     combine_seed(job_key_, generation_.value)}};
}

void Membership::begin_if_complete(Effects& effects) {
  if (state_ != State::kGathering || expected_.empty() || !missing().empty()) return;
  const ExpectedMember& first = expected_.front();
  const wire::DataIdentity& data = joined_[first.member].data;
  for (const ExpectedMember& e : expected_) {
    const wire::DataIdentity& other = joined_[e.member].data;
    if (other.fingerprint != data.fingerprint || other.train_records != data.train_records ||
        other.eval_records != data.eval_records) {
      effects.emplace_back(CannotSettle{fmt::format(
          "the data differs between hosts: {} on {} has {}, {} on {} has {}; copy the same files "
          "to every host",
          first.member.worker, first.host, data.detail, e.member.worker, e.host, other.detail)});
      return;
    }
  }
  generation_ = generation_.next();
  state_ = State::kAddresses;
  members_ = expected_;
  addresses_.clear();
  ready_.clear();
  effects.emplace_back(GenerationBegun{generation_});
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    effects.emplace_back(form_for(rank));
  }
}

void Membership::on(const AddressArrived& event, Effects& effects) {
  if (event.generation != generation_ || !contains(event.member)) return;
  if (state_ == State::kConnecting) {  // it has not heard of the roster
    effects.emplace_back(roster_for(rank_of(event.member)));
    return;
  }
  if (state_ != State::kAddresses) return;
  addresses_[event.member] = event.address;
  if (addresses_.size() < members_.size()) return;
  state_ = State::kConnecting;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    effects.emplace_back(roster_for(rank));
  }
}

SendRoster Membership::roster_for(std::size_t rank) const {
  wire::Roster roster;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    roster.members.push_back(
        {members_[r].member.worker, static_cast<std::uint32_t>(r), members_[r].host});
  }
  const std::size_t n = members_.size();
  // Each end point was made for one peer: take the one that faces this rank.
  roster.left = addresses_.at(members_[(rank + n - 1) % n].member).to_right;
  roster.right = addresses_.at(members_[(rank + 1) % n].member).to_left;
  return {members_[rank].member, generation_, std::move(roster)};
}

void Membership::on(const ReadyArrived& event, Effects& effects) {
  if (state_ != State::kConnecting || event.generation != generation_) return;
  if (!contains(event.member)) return;
  ready_[event.member] = event.ready;
  if (ready_.size() == members_.size()) settle(effects);
}

void Membership::settle(Effects& effects) {
  const ExpectedMember& first = members_.front();
  const wire::Ready& state = ready_[first.member];
  for (const ExpectedMember& e : members_) {
    const wire::Ready& other = ready_[e.member];
    if (other.step != state.step || other.state_hash != state.state_hash) {
      effects.emplace_back(CannotSettle{fmt::format(
          "the training state differs: {} on {} is at step {} with hash {:016x}, {} on {} at step "
          "{} with hash {:016x}; are the same programs and libraries installed on both hosts?",
          first.member.worker, first.host, state.step, state.state_hash, e.member.worker, e.host,
          other.step, other.state_hash)});
      return;
    }
  }
  state_ = State::kSettled;
  failed_formations_ = 0;
  effects.emplace_back(Settled{generation_, state.step, members_});
}

void Membership::on(const MemberGone& event, Effects& effects) {
  joined_.erase(event.member);
  if (state_ == State::kGathering || !contains(event.member)) return;
  GenerationBroken broken{generation_, {}, event.reason};
  for (const ExpectedMember& e : members_) {
    if (e.member != event.member) broken.left.push_back(e.member);
  }
  members_.clear();
  joined_.clear();
  state_ = State::kGathering;
  effects.emplace_back(std::move(broken));
}

}  // namespace antdt::ctl
