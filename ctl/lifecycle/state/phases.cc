#include "ctl/lifecycle/state/phases.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {

std::uint64_t Phases::last() const {
  return shape_.epochs * (shape_.eval_records > 0 ? 2ULL : 1ULL) + 1;
}

wire::PhaseStart Phases::describe(std::uint64_t phase) const {
  wire::PhaseStart start;
  start.phase = phase;
  if (phase == 0) return start;
  if (phase >= last()) {
    start.what = wire::PhaseKind::kFinish;
    start.epoch = Epoch{shape_.epochs};
    return start;
  }
  const std::uint64_t index = phase - 1;
  const std::uint64_t phases_an_epoch = shape_.eval_records > 0 ? 2 : 1;
  const bool train = index % phases_an_epoch == 0;
  start.what = train ? wire::PhaseKind::kTrain : wire::PhaseKind::kEval;
  start.epoch = Epoch{static_cast<std::uint32_t>(index / phases_an_epoch)};
  start.records = train ? shape_.train_records : shape_.eval_records;
  return start;
}

void Phases::open(std::uint64_t phase) {
  number_ = phase;
  drained_ = false;
}

void Phases::go_back_to(std::uint64_t phase) {
  open(phase);
  done_with_.clear();
  disband();
}

void Phases::restore(std::uint64_t phase, std::optional<std::vector<Member>> group) {
  number_ = phase;
  settled_ = group.has_value();
  group_ = std::move(group).value_or(std::vector<Member>{});
}

void Phases::done(WorkerId worker, std::uint64_t phase) {
  std::uint64_t& done = done_with_[worker];
  done = std::max(done, phase);
}

bool Phases::is_done(WorkerId worker) const {
  const auto done = done_with_.find(worker);
  return done != done_with_.end() && done->second >= number_;
}

void Phases::settle(std::vector<Member> group) {
  settled_ = true;
  group_ = std::move(group);
  done_with_.clear();
}

void Phases::disband() {
  settled_ = false;
  group_.clear();
}

bool Phases::in_group(Member member) const {
  return std::ranges::find(group_, member) != group_.end();
}

}  // namespace antdt::ctl
