#include "ctl/job/past.h"

#include <algorithm>

#include "core/wire/packet.h"

namespace antdt::ctl {
namespace {

ImageAction image_of(const ActionReport& a) {
  return {a.number, a.time_s, a.kind, a.target, a.reason, a.outcome};
}

}  // namespace

void Past::bound() {
  while (actions_.size() > kMostActions) actions_.pop_front();
  for (; failures_.size() > kMostFailures; ++failures_before_) failures_.pop_front();
}

Result<bool> Past::replay(const shard_server::JournalEntry& entry) {
  const auto put = [this](const ImageAction& a) {
    actions_.push_back({a.number, a.time_s, a.kind, a.target, a.reason, a.outcome});
    next_number_ = std::max(next_number_, a.number + 1);
  };
  if (entry.kind == kActionRecord) {
    ANTDT_TRY(const ImageAction action, wire::decode<ImageAction>(entry.bytes));
    put(action);
  } else if (entry.kind == kFailureRecord) {
    ANTDT_TRY(FailureRecord failure, wire::decode<FailureRecord>(entry.bytes));
    failures_.push_back(std::move(failure));
  } else if (entry.kind == kEpochRecord) {
    ANTDT_TRY(ImageEpoch epoch, wire::decode<ImageEpoch>(entry.bytes));
    // the epoch is trained once more
    if (epoch.number < epochs_.size()) epochs_.resize(epoch.number);
    epochs_.push_back(epoch);
  } else if (entry.kind == kWorkerRecord) {
    ANTDT_TRY(ImageWorker worker, wire::decode<ImageWorker>(entry.bytes));
    workers_[worker.worker] = std::move(worker);
  } else if (entry.kind == kPastSection) {
    ANTDT_TRY(ImagePast past, wire::decode<ImagePast>(entry.bytes));
    for (const ImageAction& action : past.actions) put(action);
    std::ranges::move(past.failures, std::back_inserter(failures_));
    failures_before_ += past.failures_before;
    std::ranges::move(past.epochs, std::back_inserter(epochs_));
    for (ImageWorker& worker : past.workers) workers_[worker.worker] = std::move(worker);
  } else {
    return false;
  }
  bound();
  return true;
}

void Past::take_from(JobImage& image) {
  for (const ImageAction& a : std::exchange(image.actions, {})) {
    add(ActionReport{0, a.time_s, a.kind, a.target, a.reason, a.outcome});
  }
  epochs_.resize(std::min<std::size_t>(epochs_.size(), image.epochs_before));
}

std::uint64_t Past::add(ActionReport action) {
  action.number = next_number_++;
  records_.emplace_back(kActionRecord, wire::encode(image_of(action)));
  actions_.push_back(std::move(action));
  bound();
  return actions_.back().number;
}

void Past::add(FailureRecord failure) {
  shorten_cause(failure);
  records_.emplace_back(kFailureRecord, wire::encode(failure));
  failures_.push_back(std::move(failure));
  bound();
}

void Past::add(const ImageEpoch& epoch) {
  epochs_.push_back(epoch);
  epochs_.back().number = epochs_.size() - 1;
  records_.emplace_back(kEpochRecord, wire::encode(epochs_.back()));
}

void Past::keep(ImageWorker worker) {
  records_.emplace_back(kWorkerRecord, wire::encode(worker));
  workers_[worker.worker] = std::move(worker);
}

void Past::keep_epochs(std::size_t count) { epochs_.resize(std::min(epochs_.size(), count)); }

const ActionReport* Past::action(std::uint64_t number) const {
  if (actions_.empty() || number < actions_.front().number) return nullptr;
  const std::uint64_t index = number - actions_.front().number;
  return index < actions_.size() ? &actions_[index] : nullptr;
}

// Actions are numbered from 1.
std::uint64_t Past::actions_before() const {
  return actions_.empty() ? next_number_ - 1 : actions_.front().number - 1;
}

std::vector<std::pair<std::string_view, std::string>> Past::take_records() {
  return std::exchange(records_, {});
}

shard_server::JournalEntry Past::section() const {
  ImagePast past;
  for (const ActionReport& action : actions_) past.actions.push_back(image_of(action));
  past.failures.assign(failures_.begin(), failures_.end());
  past.failures_before = failures_before_;
  past.epochs = epochs_;
  for (const auto& [id, worker] : workers_) past.workers.push_back(worker);
  return {std::string(kPastSection), wire::encode(past)};
}

}  // namespace antdt::ctl
