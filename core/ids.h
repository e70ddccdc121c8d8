// Ids as types that cannot be mixed up.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace antdt {

// A number with a meaning. Each Tag makes a type of its own.
template <class Tag, class Rep = std::uint64_t>
struct Id {
  using rep = Rep;
  Rep value = 0;
  auto operator<=>(const Id&) const = default;
  [[nodiscard]] Id next() const { return Id{static_cast<Rep>(value + 1)}; }
};

// Counts the starts of a worker id in its job; the first is 1.
using Attempt = Id<struct AttemptTag, std::uint32_t>;
// Numbers the memberships of the worker group; 0 before the first.
using Generation = Id<struct GenerationTag>;
// Counts the starts of the job daemon; the first is 1.
using Incarnation = Id<struct IncarnationTag>;
// Counts how often training began from a checkpoint; the first is 1.
using Lineage = Id<struct LineageTag>;
// Number of a global step; the first is 1, and 0 means "none applied yet".
using Step = Id<struct StepTag>;
// Index of a shard in its data set, in file order.
using ShardId = Id<struct ShardTag>;
// A pass over the training data; the first is 0.
using Epoch = Id<struct EpochTag, std::uint32_t>;
// A version of the plan; 0 is none.
using PlanVersion = Id<struct PlanTag>;
// A member's number in one generation, 0 .. size-1; it changes with the generation.
using Rank = Id<struct RankTag, std::uint32_t>;

// The id of a process, stable for the whole job: "w0", "w1", ... for workers, "s0", ... for
// servers. Rank and attempt change; this does not.
struct WorkerId {
  char role = 'w';
  std::uint32_t index = 0;
  auto operator<=>(const WorkerId&) const = default;
};

[[nodiscard]] std::string to_string(WorkerId id);
// "w12" -> {w, 12}; empty for anything that is not a letter and a number without leading zeros
// below 2^31.
[[nodiscard]] std::optional<WorkerId> parse_worker_id(std::string_view text);

// A worker id and the attempt. A process with an older attempt is stale and can change nothing.
struct Member {
  WorkerId worker;
  Attempt attempt;
  auto operator<=>(const Member&) const = default;
};

// A 26-character sortable unique id (Crockford base 32: 48 bits of
// milliseconds since 1970, 80 random bits).
[[nodiscard]] std::string make_ulid(std::uint64_t unix_ms, std::uint64_t random_high,
                                    std::uint64_t random_low);
// The same from the system clock and the kernel's random source; only for `main`.
[[nodiscard]] std::string new_ulid();

}  // namespace antdt

template <class Tag, class Rep>
struct std::hash<antdt::Id<Tag, Rep>> {
  std::size_t operator()(antdt::Id<Tag, Rep> id) const { return std::hash<Rep>()(id.value); }
};
template <>
struct std::hash<antdt::WorkerId> {
  std::size_t operator()(antdt::WorkerId id) const {
    return (static_cast<std::size_t>(static_cast<unsigned char>(id.role)) << 32) | id.index;
  }
};
template <class Tag, class Rep>
struct fmt::formatter<antdt::Id<Tag, Rep>> : fmt::formatter<Rep> {
  auto format(antdt::Id<Tag, Rep> id, fmt::format_context& ctx) const {
    return fmt::formatter<Rep>::format(id.value, ctx);
  }
};
template <>
struct fmt::formatter<antdt::WorkerId> : fmt::formatter<std::string> {
  auto format(antdt::WorkerId id, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(antdt::to_string(id), ctx);
  }
};
