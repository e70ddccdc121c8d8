// The shortest step in which devices of several classes compute one global batch.
//
// All n_d members of class d compute c_d micro-batches of b_d samples, each in
// t_d(b_d) seconds; the step takes as long as its slowest member:
//
//   min over integers (b, c) of max_d c_d * t_d(b_d)
//   with sum_d n_d * c_d * b_d = B and b_d within the class's limits
//
// (AntDT-DD in Xiao et al., arXiv:2404.09679). Solved exactly. First a table holds, for each class
// and each part s = c * b, the cheapest way to compute it. Then the search finds the least time in
// which the parts that fit can add up to B. Feasible times form an interval. For one time this is a
// subset sum over the amount by which the members' largest parts exceed B, and near the optimum
// that amount is small.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace antdt::ctl {

// Sizes in samples. A micro-batch is a multiple of `multiple_of` and at least `least`.
struct BatchClass {
  std::uint32_t members = 1;
  // seconds[i] is the time of a micro-batch of the i-th allowed size: `least` rounded up to a
  // multiple, plus i multiples. All are positive.
  std::vector<double> seconds;
  std::uint32_t least = 1;
  std::uint32_t least_part = 1;         // the least c * b
  std::uint32_t most_accumulation = 0;  // 0: no bound
};

// What `members` members of the class with index `cls` compute.
struct ClassBatches {
  std::size_t cls = 0;
  std::uint32_t members = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 0;
};

struct BatchesFound {
  double step_s = 0;
  std::vector<ClassBatches> parts;  // in the order of rising classes
};

// The optimum if all members of a class compute the same; empty if no such batches add up to B
// exactly.
[[nodiscard]] std::optional<BatchesFound> search_alike(std::span<const BatchClass> classes,
                                                       std::uint32_t global_batch,
                                                       std::uint32_t multiple_of);

// The optimum if members of one class may differ. They differ only if equal members cannot make B,
// or only in a step that takes over kUnlikeGain longer than the lower bound for any batches: then
// some have a smaller micro-batch, and one may have whatever is left over. Empty if the limits make
// it impossible.
inline constexpr double kUnlikeGain = 0.02;
[[nodiscard]] std::optional<BatchesFound> search_batches(std::span<const BatchClass> classes,
                                                         std::uint32_t global_batch,
                                                         std::uint32_t multiple_of);

}  // namespace antdt::ctl
