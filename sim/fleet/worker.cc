#include "sim/fleet/worker.h"

#include <algorithm>

namespace antdt::fleet {
namespace {

constexpr double kHoldSeconds = 6;
constexpr std::uint64_t kHoldBatches = 8;
constexpr Duration kHoldInterval = std::chrono::milliseconds(500);

std::uint64_t microseconds(double seconds) {
  return static_cast<std::uint64_t>(std::max(0.0, seconds) * 1e6);
}

}  // namespace

// Entries are in rising order of workers; if no worker is missing, a worker's entry is at its
// index.
void Worker::take_up(const wire::Plan& plan) {
  const auto& entries = plan.entries;
  auto own =
      entries.begin() +
      std::min<std::ptrdiff_t>(member.worker.index, static_cast<std::ptrdiff_t>(entries.size()));
  if (own == entries.end() || own->worker != member.worker) {
    own = std::ranges::find(entries, member.worker, &wire::PlanEntry::worker);
  }
  held = own == entries.end() ? PartOfStep{plan.version, 0, 0}
                              : PartOfStep{plan.version, own->micro_batch, own->accumulation};
}

void Worker::begin_phase(std::uint64_t number, MonoTime now) {
  phase = number;
  place = stable_place = records = 0;
  feed.begin(number, generation);
  hold_place = 0;
  hold_set = now;
  set_hold(now, true);
}

void Worker::take() {
  const std::uint64_t missing = share.samples() - std::min(share.samples(), records);
  waits_for_data = false;
  if (missing == 0) return;
  const client::Taken taken = feed.take(missing);
  records += taken.records;
  if (taken.records == missing) return;
  const client::Taken more = feed.take(1);  // why there is no more
  waits_for_data = more.status == client::TakeStatus::kWait && !more.stale;
}

void Worker::measured(double wait_s, bool counts, MonoTime now) {
  if (computed == 0) return;
  if (sum.batches + sum.skipped == 0) sum_since = now;
  samples_total += computed;
  account.compute += own_s;
  account.collective_wait += wait_s;
  if (!counts) {
    ++sum.skipped;
    return;
  }
  ++sum.batches;
  sum.samples += computed;
  sum.compute_us += microseconds(own_s);
  sum.wait_us += microseconds(wait_s);
}

void Worker::set_hold(MonoTime now, bool at_once) {
  const Duration elapsed = now - hold_set;
  if (!at_once && elapsed < kHoldInterval) return;
  const double per_second =
      static_cast<double>(place - hold_place) / std::max(to_seconds(elapsed), 1e-3);
  const auto seconds_worth =
      elapsed < kHoldInterval ? 0 : static_cast<std::uint64_t>(per_second * kHoldSeconds);
  feed.set_hold(std::max(seconds_worth, kHoldBatches * share.samples()));
  hold_set = now;
  hold_place = place;
}

wire::Metrics Worker::metrics(Step step, const char* activity, MonoTime now) {
  const bool empty = sum.batches + sum.skipped == 0;
  const auto window =
      std::chrono::duration_cast<std::chrono::milliseconds>(empty ? Duration{} : now - sum_since);
  wire::Metrics metrics{sum, static_cast<std::uint32_t>(window.count())};
  metrics.sum.samples_total = samples_total;
  metrics.sum.account = account;
  metrics.sum.step = step;
  metrics.sum.activity = activity;
  sum = {};
  return metrics;
}

}  // namespace antdt::fleet
