// What a model holds beside its parameters: buffers, as the running statistics of BatchNorm, and
// parameters that need no gradient.
//
// Forward changes buffers on each member by what that member saw. So that all members go on alike,
// a step adds to each the mean of the members' changes, weighted as their gradients are: a member
// that computed nothing has no say, and a buffer that nobody changed stays as it is to the bit.
// Whole numbers (num_batches_tracked) are rounded. A step that is discarded leaves them as they
// were.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/collective/collective.h"
#include "trainer/torch/state_file.h"

namespace antdt::trainer {

class Buffers {
 public:
  // Of `module`, which outlives this. kUsage names a buffer of a kind that is neither a number that
  // this can add up nor one of a parameter.
  [[nodiscard]] static Result<Buffers> of(torch::nn::Module& module);

  Buffers() = default;
  Buffers(Buffers&&) = default;
  Buffers& operator=(Buffers&&) = default;

  [[nodiscard]] bool empty() const { return kept_.empty(); }
  // What this member's forward passes have changed becomes what all members' have. `weight`: of
  // what this member computed in the step. All members call it, in the same order as other
  // operations.
  [[nodiscard]] Status reduce(Collective& collective, double weight);
  // The step counts: the mean of the changes stays.
  void apply();
  // As they were when the step began, or as they were received.
  void restore();
  // What all members have alike after a step, where it lies.
  [[nodiscard]] std::vector<StateBuffer> state();
  [[nodiscard]] std::span<std::byte> bytes() { return settled_; }

 private:
  struct Kept {
    std::string name;
    torch::Tensor now;      // the model's
    torch::Tensor settled;  // over settled_
    bool changes = true;    // false: a parameter that needs no gradient
  };
  std::vector<Kept> kept_;
  std::vector<std::byte> settled_;
  std::vector<double> sums_;  // the weight, then each change times the weight; empty: no reduction
};

}  // namespace antdt::trainer
