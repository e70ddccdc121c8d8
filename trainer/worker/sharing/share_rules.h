// How members share a step: which of them with one another, and in which amounts. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace antdt::worker::sharing {

struct ShareRules {
  // Every run has a multiple of so many records, except the last one of a part.
  std::uint32_t multiple_of = 1;
  // With this part of its records a member begins its first step, and at least `first_least` of
  // them any other, without asking for them.
  double first = 1.0 / 4;
  double first_least = 1.0 / 8;
  // It begins a step with this part of what it could compute, in the slowest of its recent steps,
  // in the time that the step would have taken if it had been divided perfectly.
  double careful = 0.9;
  // How fast a slow step is forgotten: by this part in each step.
  double forgets = 1.0 / 32;
  // A run has at least this part of a member's mean share of the step, and more on a device on
  // which a sample of such small runs takes `dear` times as long as usual.
  double least = 1.0 / 32;
  double dear = 1.5;
  // A run is at least this part of what its member would compute until the end of the step.
  double of_rest = 0.5;
  // At most so many members share with one another.
  std::uint32_t group = 32;
};

// The ranks [begin, end) that share with one another; the first one has their desk.
struct ShareGroup {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  [[nodiscard]] std::uint32_t size() const { return end - begin; }
  bool operator==(const ShareGroup&) const = default;
};

// Neighbours in the ring, in groups whose sizes differ by one at most.
[[nodiscard]] inline ShareGroup group_of(std::uint32_t rank, std::uint32_t members,
                                         const ShareRules& rules) {
  const std::uint64_t groups = (members + rules.group - 1) / rules.group;
  const auto begin_of = [&](std::uint64_t group) {
    return static_cast<std::uint32_t>((group * members + groups - 1) / groups);
  };
  const std::uint64_t group = rank * groups / members;
  return {begin_of(group), begin_of(group + 1)};
}

[[nodiscard]] inline std::uint32_t rounded_up(std::uint32_t records, std::uint32_t multiple_of) {
  return (records + multiple_of - 1) / multiple_of * multiple_of;
}

// How many of its `records` a member computes first. `most`: the largest run that it computes, 0:
// any.
[[nodiscard]] inline std::uint32_t first_run(double first, std::uint32_t records,
                                             std::uint32_t most, const ShareRules& rules) {
  const auto part = static_cast<std::uint32_t>(first * records);
  const std::uint32_t run = rounded_up(std::max<std::uint32_t>(part, 1), rules.multiple_of);
  return std::min({run, records, most == 0 ? records : most});
}

}  // namespace antdt::worker::sharing
