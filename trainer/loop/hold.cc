#include "trainer/loop/hold.h"

#include <algorithm>

namespace antdt::trainer {
namespace {

constexpr double kSeconds = 6;
constexpr std::uint64_t kBatches = 8;
constexpr Duration kInterval = std::chrono::milliseconds(500);

}  // namespace

Hold::Hold(client::Client& client, const Clock& clock, std::uint64_t batch)
    : client_(client), clock_(clock), updated_(clock.now()) {
  set(0, batch);
}

void Hold::update(std::uint64_t place, std::uint64_t batch) {
  if (clock_.now() - updated_ >= kInterval) set(place, batch);
}

void Hold::set(std::uint64_t place, std::uint64_t batch) {
  const MonoTime now = clock_.now();
  const Duration elapsed = now - updated_;
  const double per_second =
      static_cast<double>(place - place_) / std::max(to_seconds(elapsed), 1e-3);
  const auto seconds_worth =
      elapsed < kInterval ? 0 : static_cast<std::uint64_t>(per_second * kSeconds);
  client_.set_hold(std::max(seconds_worth, kBatches * batch));
  updated_ = now;
  place_ = place;
}

}  // namespace antdt::trainer
