// What a member averages with other members where their replicas may differ (docs/synchronisation):
// in a step the parameters, the buffers and the moments of an optimizer that has any; in a
// consolidation all that the optimizer keeps.
//
// States: own -> mixed (mix) -> own (forget: the step was applied; restore: it was not).
#pragma once

#include <span>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/torch/buffers.h"
#include "trainer/torch/parameters.h"

namespace antdt::trainer {

// Of arrays in the host's memory. `arrays` and `buffers` are those of one model in all calls.
class Replica {
 public:
  using Arrays = std::span<const std::span<float>>;

  // All become the mean over the group, with the same bits on each of its members. Needs memory
  // for the arrays once more, from the first call on. Errors are the collective's; after one,
  // restore() is needed.
  [[nodiscard]] Status mix(Collective& group, Arrays arrays, Buffers& buffers);
  // What was before mix() is forgotten, or comes back. Nothing happens if nothing was mixed.
  void forget() { mixed_ = false; }
  void restore(Arrays arrays, Buffers& buffers);

  // All arrays and the buffers become the mean over the holders. Needs memory for all of them once
  // more while it runs. After an error (the collective's) nothing has changed.
  [[nodiscard]] static Status consolidate(Collective& holders, Arrays arrays, Buffers& buffers);

 private:
  bool mixed_ = false;
  std::vector<torch::Tensor> arrays_;  // from before, like the buffers
  std::vector<double> buffers_;
};

}  // namespace antdt::trainer
