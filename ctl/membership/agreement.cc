#include "ctl/membership/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace antdt::ctl::membership {
namespace {

bool same_places(const wire::Ready& a, const wire::Ready& b) {
  return a.phase == b.phase &&
         std::ranges::equal(a.places, b.places, [](const auto& x, const auto& y) {
           return x.worker == y.worker && x.place == y.place;
         });
}

// A member that reports no value is not compared.
bool differ_in(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

std::optional<WorkerId> named_twice(const std::vector<wire::MemberPlace>& places) {
  std::set<WorkerId> named;
  for (const wire::MemberPlace& place : places) {
    if (!named.insert(place.worker).second) return place.worker;
  }
  return {};
}

}  // namespace

std::optional<std::string> data_differ(const MemberList& members,
                                       const std::map<Member, wire::Join>& joined) {
  const ExpectedMember& first = members.at(0);
  const wire::DataIdentity& data = joined.at(first.member).data;
  for (const ExpectedMember& e : members.all()) {
    const wire::DataIdentity& other = joined.at(e.member).data;
    if (other.fingerprint != data.fingerprint || other.train_records != data.train_records ||
        other.eval_records != data.eval_records || differ_in(other.built_by, data.built_by)) {
      return fmt::format(
          "the data differs between hosts: {} on {} has {}, {} "
          "on {} has {}; copy the same files "
          "to every host",
          first.member.worker, first.host, data.detail, e.member.worker, e.host, other.detail);
    }
  }
  return {};
}

bool devices_differ(const MemberList& members, const std::map<Member, wire::Join>& joined) {
  const std::string& first = joined.at(members.at(0).member).device.name;
  bool differ = false;
  for (const ExpectedMember& e : members.all()) {
    const wire::Join& join = joined.at(e.member);
    if (!join.settles_differences) return false;
    differ = differ || join.device.name != first;
  }
  return differ;
}

void Agreement::clear() { ready_.clear(); }

void Agreement::hear(Member member, const wire::Ready& ready) {
  if (ready_.empty()) {
    first_ = member;
    places_differ_.reset();
  }
  wire::Ready& heard = ready_[member] = ready;
  heard.history = {};
  if (member == first_) return;
  if (!same_places(state(), heard)) places_differ_ = member;
  heard.places = {};
}

std::optional<std::string> Agreement::difference(const MemberList& members,
                                                 bool compares_places) const {
  const ExpectedMember& first = members.at(members.rank_of(first_));
  for (const ExpectedMember& e : members.all()) {
    const wire::Ready& other = ready_.at(e.member);
    if (other.step != state().step || other.state_hash != state().state_hash) {
      return fmt::format(
          "the training state differs: {} on {} is at step {} "
          "with hash {:016x}, {} on {} at step "
          "{} with hash {:016x}; are the same programs and "
          "libraries installed on both hosts?",
          first.member.worker, first.host, state().step, state().state_hash, e.member.worker,
          e.host, other.step, other.state_hash);
    }
  }
  if (compares_places && places_differ_) {
    const ExpectedMember& other = members.at(members.rank_of(*places_differ_));
    return fmt::format(
        "{} on {} and {} on {} do not agree on how far each "
        "member was at step {}; this is a "
        "defect of the trainer",
        first.member.worker, first.host, other.member.worker, other.host, state().step);
  }
  if (const auto twice = named_twice(state().places)) {
    return fmt::format(
        "the members say twice how far {} was at step {}; this "
        "is a defect of the trainer",
        *twice, state().step);
  }
  return {};
}

}  // namespace antdt::ctl::membership
