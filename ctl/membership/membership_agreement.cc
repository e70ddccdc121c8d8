// Whether members fit together: they have the same data, and the same training state.
#include <algorithm>

#include "ctl/membership/membership.h"

namespace antdt::ctl {
namespace {

bool same_places(const wire::Ready& a, const wire::Ready& b) {
  return a.phase == b.phase &&
         std::ranges::equal(a.places, b.places, [](const auto& x, const auto& y) {
           return x.worker == y.worker && x.place == y.place;
         });
}

// Who tells nothing about that is not compared.
bool differ_in(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace

std::optional<CannotSettle> Membership::data_differs() const {
  const ExpectedMember& first = members_.front();
  const wire::DataIdentity& data = joined_.at(first.member).data;
  for (const ExpectedMember& e : members_) {
    const wire::DataIdentity& other = joined_.at(e.member).data;
    if (other.fingerprint != data.fingerprint || other.train_records != data.train_records ||
        other.eval_records != data.eval_records || differ_in(other.built_by, data.built_by)) {
      return CannotSettle{fmt::format(
          "the data differs between hosts: {} on {} has {}, {} on {} has {}; copy the same files "
          "to every host",
          first.member.worker, first.host, data.detail, e.member.worker, e.host, other.detail)};
    }
  }
  return {};
}

void Membership::hear_ready(const ReadyArrived& event) {
  if (ready_.empty()) {
    first_ready_ = event.member;
    places_differ_.reset();
  }
  wire::Ready& heard = ready_[event.member] = event.ready;
  heard.history = {};
  if (event.member == first_ready_) return;
  if (!same_places(ready_.at(first_ready_), heard)) places_differ_ = event.member;
  heard.places = {};
}

std::optional<CannotSettle> Membership::state_differs() const {
  const ExpectedMember& first = members_[rank_of(first_ready_)];
  const wire::Ready& state = ready_.at(first.member);
  for (const ExpectedMember& e : members_) {
    const wire::Ready& other = ready_.at(e.member);
    if (other.step != state.step || other.state_hash != state.state_hash) {
      return CannotSettle{fmt::format(
          "the training state differs: {} on {} is at step {} with hash {:016x}, {} on {} at step "
          "{} with hash {:016x}; are the same programs and libraries installed on both hosts?",
          first.member.worker, first.host, state.step, state.state_hash, e.member.worker, e.host,
          other.step, other.state_hash)};
    }
  }
  // Where training begins there is nothing to say where anybody stood.
  if (base_ != Generation{} && places_differ_) {
    const ExpectedMember& other = members_[rank_of(*places_differ_)];
    return CannotSettle{fmt::format(
        "{} on {} and {} on {} do not agree on how far each member was at step {}; this is a "
        "defect of the trainer",
        first.member.worker, first.host, other.member.worker, other.host, state.step)};
  }
  return {};
}

}  // namespace antdt::ctl
