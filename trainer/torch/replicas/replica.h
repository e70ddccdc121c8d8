// What a member averages with other members where their replicas may differ (docs/synchronisation):
// in a step the parameters and buffers, in a consolidation the optimizer's state as well.
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

// Of arrays in the host's memory. `buffers` are those of one model in all calls.
class Replica {
 public:
  // Both become the mean over the group, with the same bits on each of its members. Needs memory
  // for the parameters once more, from the first call on. Errors are the collective's; after one,
  // restore() is needed.
  [[nodiscard]] Status mix(Collective& group, std::span<float> parameters, Buffers& buffers);
  // What was before mix() is forgotten, or comes back. Nothing happens if nothing was mixed.
  void forget() { mixed_ = false; }
  void restore(std::span<float> parameters, Buffers& buffers);

  // All arrays and the buffers become the mean over the holders. Needs memory for all of them once
  // more while it runs. After an error (the collective's) nothing has changed.
  [[nodiscard]] static Status consolidate(Collective& holders,
                                          std::span<const std::span<float>> arrays,
                                          Buffers& buffers);

 private:
  bool mixed_ = false;
  torch::Tensor parameters_ = torch::zeros({0});  // from before
  std::vector<double> buffers_;
};

}  // namespace antdt::trainer
