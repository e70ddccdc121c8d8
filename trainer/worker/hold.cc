#include "trainer/worker/hold.h"

#include <algorithm>

namespace antdt::worker {
namespace {

constexpr double kSeconds = 6;
constexpr std::uint64_t kBatches = 8;
constexpr Duration kInterval = std::chrono::milliseconds(500);

}  // namespace

std::uint64_t Hold::begin(std::uint64_t batch, MonoTime now) {
  updated_ = now;
  place_ = 0;
  return set(0, batch, now);
}

std::optional<std::uint64_t> Hold::update(std::uint64_t place, std::uint64_t batch, MonoTime now) {
  if (now - updated_ < kInterval) return {};
  return set(place, batch, now);
}

std::uint64_t Hold::set(std::uint64_t place, std::uint64_t batch, MonoTime now) {
  const Duration elapsed = now - updated_;
  const double per_second =
      static_cast<double>(place - place_) / std::max(to_seconds(elapsed), 1e-3);
  const auto seconds_worth =
      elapsed < kInterval ? 0 : static_cast<std::uint64_t>(per_second * kSeconds);
  updated_ = now;
  place_ = place;
  return std::max(seconds_worth, kBatches * batch);
}

}  // namespace antdt::worker
