#include "trainer/ps/push_order.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::ps {

void PushOrder::add(const wire::PsCommit& commit) {
  ANTDT_CHECK(pushes_.empty() || pushes_.back().commit.number < commit.number,
              "push {} is made after push {}", commit.number, pushes_.back().commit.number);
  pushes_.push_back({commit, At::kMade, {}});
}

PushOrder::Push& PushOrder::move(std::uint64_t number, At from, At to) {
  const auto found =
      std::ranges::find(pushes_, number, [](const Push& push) { return push.commit.number; });
  ANTDT_CHECK(found != pushes_.end() && found->at == from, "push {} goes on, and is not there",
              number);
  found->at = to;
  return *found;
}

void PushOrder::staged(std::uint64_t number) { move(number, At::kStaging, At::kStaged); }

void PushOrder::decided(std::uint64_t number, const wire::PsDecided& decision) {
  move(number, At::kCommitting, At::kDecided).decision = decision;
}

std::optional<PushOrder::Say> PushOrder::next() {
  bool before_is_decided = true;
  for (Push& push : pushes_) {
    switch (push.at) {
      case At::kMade:
        push.at = At::kStaging;
        return Stage{push.commit.number};
      case At::kStaging:
        return {};
      case At::kStaged:
        if (!before_is_decided) break;
        push.at = At::kCommitting;
        said_ = {push.commit.phase, push.commit.to};
        return push.commit;
      case At::kCommitting:
      case At::kDecided:
        break;
    }
    before_is_decided = push.at == At::kDecided;
  }
  return {};
}

std::optional<wire::PsDecided> PushOrder::take_decision() {
  if (!has_decision()) return {};
  const wire::PsDecided decision = pushes_.front().decision;
  pushes_.pop_front();
  return decision;
}

}  // namespace antdt::ps
