// How often a record may enter the model in an epoch: the delivery promise of a job
// (docs/delivery.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace antdt {

enum class Delivery : std::uint8_t {
  kExactlyOnce,
  kAtLeastOnce,  // none is lost; some may be repeated in a part of the model
  kAtMostOnce,   // none is repeated; some may be lost from a part of the model
};

inline constexpr std::string_view kDeliveryNames[] = {"exactly-once", "at-least-once",
                                                      "at-most-once"};

[[nodiscard]] constexpr std::string_view to_string(Delivery delivery) {
  return kDeliveryNames[static_cast<std::uint8_t>(delivery)];
}

// Finds a promise by its name in job.toml.
[[nodiscard]] constexpr std::optional<Delivery> parse_delivery(std::string_view name) {
  for (const Delivery d : {Delivery::kExactlyOnce, Delivery::kAtLeastOnce, Delivery::kAtMostOnce}) {
    if (to_string(d) == name) return d;
  }
  return std::nullopt;
}

// For readers of stored values: the highest valid value.
constexpr Delivery last_of(Delivery) { return Delivery::kAtMostOnce; }

// Whether the promise is kept if this many records were repeated and lost.
[[nodiscard]] constexpr bool is_kept(Delivery delivery, std::uint64_t repeated,
                                     std::uint64_t lost) {
  return (repeated == 0 || delivery == Delivery::kAtLeastOnce) &&
         (lost == 0 || delivery == Delivery::kAtMostOnce);
}

}  // namespace antdt
