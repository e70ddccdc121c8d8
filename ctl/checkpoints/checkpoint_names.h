// Names of directories in RUN/checkpoints. They come from disks and from other hosts, and become
// paths on the launching host, so whatever is not such a name as a whole is none.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace antdt::ctl::copies {

// How old an unfinished checkpoint is, the oldest first. What is of an earlier generation than
// one that is kept is of an earlier step, or of training that was given up when the job went back
// to a checkpoint; then its number may be higher.
struct Age {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const Age&, const Age&) = default;
};

// "s0000000012-l1-g2-w0.1" -> (1, 12); later checkpoints are greater. Nothing for other names.
[[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> order_of(
    std::string_view name);
// Of an unfinished one: ".tmp-12-g3-w0.1" -> {3, 12}. Nothing for other names.
[[nodiscard]] std::optional<Age> age_of(std::string_view unfinished);

}  // namespace antdt::ctl::copies
