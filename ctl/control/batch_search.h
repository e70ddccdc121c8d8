// The shortest step that devices of several classes can make of one global batch.
//
// All n_d members of class d compute c_d micro-batches of b_d samples, each in
// t_d(b_d) seconds; the step takes as long as its slowest member:
//
//   min over integers (b, c) of max_d c_d * t_d(b_d)
//   with sum_d n_d * c_d * b_d = B and b_d within the class's limits
//
// (AntDT-DD in Xiao et al., arXiv:2404.09679). Solved exactly. For each class
// and each part s = c * b the cheapest way to compute it is tabled; then the
// least time is searched at which the parts that fit in it can add up to B:
// feasible times form an interval, and for one time it is a subset sum over
// what the members' largest parts exceed B by, which is little at the times
// that matter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace antdt::ctl {

// Sizes in samples. A micro-batch is a multiple of `multiple_of`, at least `least`.
struct BatchClass {
  std::uint32_t members = 1;
  // seconds[i]: of a micro-batch of the i-th allowed size, that is `least`
  // rounded up to a multiple, plus i multiples. All of them positive.
  std::vector<double> seconds;
  std::uint32_t least = 1;
  std::uint32_t least_part = 1;         // of c * b
  std::uint32_t most_accumulation = 0;  // 0: no bound
};

// What `members` of the class with index `cls` compute.
struct ClassBatches {
  std::size_t cls = 0;
  std::uint32_t members = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 0;
};

struct BatchesFound {
  double step_s = 0;
  std::vector<ClassBatches> parts;  // by rising class
};

// The optimum with all members of a class alike; nothing if no such batches add
// up to B exactly.
[[nodiscard]] std::optional<BatchesFound> search_alike(std::span<const BatchClass> classes,
                                                       std::uint32_t global_batch,
                                                       std::uint32_t multiple_of);

// The same, but where alike members cannot make B, or only in a step that is over
// kUnlikeGain longer than a bound for any batches, the members of one class
// differ: some have a smaller micro-batch, one may have whatever is left over.
// Nothing if the limits leave no way.
inline constexpr double kUnlikeGain = 0.02;
[[nodiscard]] std::optional<BatchesFound> search_batches(std::span<const BatchClass> classes,
                                                         std::uint32_t global_batch,
                                                         std::uint32_t multiple_of);

}  // namespace antdt::ctl
