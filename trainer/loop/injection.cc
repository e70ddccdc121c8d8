#include "trainer/loop/injection.h"

namespace antdt::trainer {

Duration Injection::delay(Duration since_first_step, Duration compute,
                          std::uint64_t samples) const {
  Duration added{};
  double slowdown = 1;
  for (const InjectionRule& rule : rules_) {
    if (since_first_step < rule.from) continue;
    if (rule.until > Duration{} && since_first_step >= rule.until) continue;
    added += rule.delay + rule.delay_per_sample * static_cast<std::int64_t>(samples);
    slowdown *= rule.slowdown;
  }
  const auto slowed = from_seconds(to_seconds(compute + added) * slowdown);
  return slowed > compute ? slowed - compute : Duration{};
}

}  // namespace antdt::trainer
