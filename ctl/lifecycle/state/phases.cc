#include "ctl/lifecycle/state/phases.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {

std::uint64_t Phases::last() const {
  if (ending_) return ending_->finish;
  return shape_.epochs * (shape_.eval_records > 0 ? 2ULL : 1ULL) + 1;
}

wire::PhaseStart Phases::describe(std::uint64_t phase) const {
  wire::PhaseStart start;
  start.phase = phase;
  if (phase == 0) return start;
  if (phase >= last()) {
    start.what = wire::PhaseKind::kFinish;
    start.epoch = Epoch{ending_ ? ending_->epochs : shape_.epochs};
    return start;
  }
  const std::uint64_t index = phase - 1;
  const std::uint64_t phases_an_epoch = shape_.eval_records > 0 ? 2 : 1;
  const bool train = index % phases_an_epoch == 0;
  start.what = train ? wire::PhaseKind::kTrain : wire::PhaseKind::kEval;
  start.epoch = Epoch{static_cast<std::uint32_t>(index / phases_an_epoch)};
  start.records = train ? records_of(start.epoch) : shape_.eval_records;
  return start;
}

std::uint64_t Phases::records_of(Epoch epoch) const {
  if (epoch.value >= sizes_.opened) return shape_.train_records;
  std::uint64_t records = began_with();
  for (const Sizes::Growth& growth : sizes_.growths) {
    if (growth.from <= epoch) records = growth.records;
  }
  return records;
}

void Phases::open(std::uint64_t phase) {
  number_ = phase;
  drained_ = false;
  const wire::PhaseStart start = open();
  if (start.what == wire::PhaseKind::kTrain) keep_size(start.epoch, start.records);
}

void Phases::keep_size(Epoch epoch, std::uint64_t records) {
  if (epoch.value < sizes_.opened) return;
  auto& growths = sizes_.growths;
  if (records != (growths.empty() ? began_with() : growths.back().records)) {
    growths.push_back({epoch, records});
  }
  sizes_.opened = epoch.value + 1;
}

void Phases::end(std::string reason) {
  const wire::PhaseStart start = open();
  const bool evaluates = start.what == wire::PhaseKind::kTrain && shape_.eval_records > 0;
  ending_ = {number_ + (evaluates ? 2 : 1), start.epoch.value + 1, std::move(reason)};
}

void Phases::drain(std::uint64_t trained) {
  drained_ = true;
  const wire::PhaseStart start = open();
  if (!ending_ || start.what != wire::PhaseKind::kTrain || trained > 0) return;
  ending_->finish = number_ + 1;  // the model is that of the epoch before
  ending_->epochs = start.epoch.value;
}

void Phases::go_back_to(std::uint64_t phase, std::uint64_t records, std::string ended) {
  ending_.reset();
  // A journal that was begun anew does not know the epoch.
  const wire::PhaseStart start = describe(phase);
  const bool trains = start.what == wire::PhaseKind::kTrain;
  if (trains && records != 0) keep_size(start.epoch, records);
  open(phase);
  if (!ended.empty()) end(std::move(ended));
  done_with_.clear();
  disband();
}

void Phases::restore(std::uint64_t phase, Sizes sizes, std::optional<EarlyEnd> ending,
                     std::optional<std::vector<Member>> group) {
  number_ = phase;
  ending_ = std::move(ending);
  sizes_ = std::move(sizes);
  // An earlier release did not keep them.
  const wire::PhaseStart start = describe(phase);
  if (phase > 0 && phase < last()) sizes_.opened = std::max(sizes_.opened, start.epoch.value + 1);
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
