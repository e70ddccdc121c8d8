#include "trainer/torch/threads/thread_trial.h"

#include <algorithm>
#include <span>

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

// OpenBLAS's threads spin for some 26 ms, those of GCC's OpenMP for some 75 ms.
constexpr Duration kSkipped = milliseconds(80);
constexpr Duration kMeasured = milliseconds(60);
constexpr std::size_t kLeastSteps = 3;
constexpr double kGain = 0.95;  // of the time of a candidate with fewer threads
constexpr double kHopeless = 1.5;
constexpr double kSlower = 1.5;
constexpr Duration kFirstWatch = std::chrono::seconds(1);
constexpr Duration kLastWatch = std::chrono::seconds(64);

std::uint32_t sum(PoolThreads t) { return t.torch + t.blas; }

}  // namespace

ThreadTrial::ThreadTrial(std::uint32_t threads, bool two_pools)
    : most_(threads), two_pools_(two_pools), watched_(kFirstWatch) {
  if (threads <= 1) {
    begin(Stage::kSettled, {PoolThreads{}});
  } else {
    begin_trial();
  }
}

void ThreadTrial::begin_trial() {
  if (two_pools_) {
    begin(Stage::kFirstRound, {PoolThreads{}, {1, 2}, {2, 1}, {2, 2}});
  } else {
    begin(Stage::kFirstRound, {PoolThreads{}, {2, 2}});
  }
}

void ThreadTrial::begin(Stage stage, std::vector<PoolThreads> candidates) {
  stage_ = stage;
  candidates_.clear();
  std::ranges::stable_sort(candidates, {}, sum);
  for (const PoolThreads& threads : candidates) candidates_.push_back({threads});
  at_ = 0;
}

void ThreadTrial::step(Duration took, std::uint64_t records) {
  if (settled() || records == 0) return;
  if (skipped_ < kSkipped) {
    skipped_ += took;
    return;
  }
  measured_ += took;
  seconds_.push_back(to_seconds(took) / static_cast<double>(records));
  if (seconds_.size() < kLeastSteps) return;
  if (stage_ == Stage::kWatching) {
    if (measured_ >= watched_) compare_with_last_round();
  } else if (measured_ >= kMeasured || is_hopeless()) {
    next_candidate();
  }
}

bool ThreadTrial::is_hopeless() const {
  if (at_ == 0) return false;
  const auto tried = std::span(candidates_).first(at_);
  const double best = std::ranges::min(tried, {}, &Candidate::seconds).seconds;
  return std::ranges::min(seconds_) > best * kHopeless;
}

double ThreadTrial::take_median() {
  const auto middle = seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2);
  std::ranges::nth_element(seconds_, middle);
  const double median = *middle;
  skipped_ = measured_ = {};
  seconds_.clear();
  return median;
}

void ThreadTrial::next_candidate() {
  candidates_[at_].seconds = take_median();
  if (++at_ == candidates_.size()) conclude();
}

// From watching to the first round, if its steps have become much slower.
void ThreadTrial::compare_with_last_round() {
  if (take_median() < candidates_.front().seconds * kSlower) return;
  watched_ = std::min(2 * watched_, kLastWatch);
  begin_trial();
}

// The candidates are in the order of their threads, so each is compared with fewer.
PoolThreads ThreadTrial::winner() const {
  const Candidate* best = &candidates_.front();
  for (const Candidate& c : candidates_) {
    const double limit = sum(c.threads) > sum(best->threads) ? kGain : 1;
    if (c.seconds < best->seconds * limit) best = &c;
  }
  return best->threads;
}

void ThreadTrial::conclude() {
  const PoolThreads best = winner();
  if (stage_ != Stage::kFirstRound) return double_or_settle(best);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.threads == best; });
  const auto second = std::ranges::min_element(candidates_, {}, &Candidate::seconds);
  begin(Stage::kSecondRound, {best, second->threads});
}

void ThreadTrial::double_or_settle(PoolThreads best) {
  const bool lost = stage_ == Stage::kDoubling && best == candidates_.front().threads;
  const PoolThreads more = doubled(best);
  if (lost || more == best) return settle(best);
  begin(Stage::kDoubling, {best, more});
}

void ThreadTrial::settle(PoolThreads best) {
  const auto found = std::ranges::find(candidates_, best, &Candidate::threads);
  const double seconds = found->seconds;
  begin(best == PoolThreads{} ? Stage::kSettled : Stage::kWatching, {best});
  candidates_.front().seconds = seconds;
}

PoolThreads ThreadTrial::doubled(PoolThreads t) const {
  const auto more = [&](std::uint32_t n) { return n == 1 ? 1 : std::min(2 * n, most_); };
  return {more(t.torch), more(t.blas)};
}

}  // namespace antdt::trainer
