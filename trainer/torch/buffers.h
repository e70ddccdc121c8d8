// The state of a model besides its parameters: buffers, such as the running statistics of
// BatchNorm, and parameters that need no gradient.
//
// Forward changes the buffers of each member according to that member's samples. So that all
// members have the same buffers, a step adds to each buffer the mean of the members' changes,
// weighted like their gradients. A member that computed nothing has no weight, and a buffer that no
// member changed stays the same to the bit. Whole numbers (num_batches_tracked) are rounded. A step
// that is discarded does not change the buffers.
//
// The buffers that forward may change become views of one array where the model is, so that a step
// copies it once, to the host's memory and back. Parameters that need no gradient stay where they
// are, and are copied only where the state is replaced.
//
// Where replicas may differ (replica.h), a step keeps the member's own changes, and members average
// the values from time to time.
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
  // The buffers of `module`, which must outlive this object. kUsage names a buffer of a type that
  // this class cannot add up, or that no parameter can have.
  [[nodiscard]] static Result<Buffers> of(torch::nn::Module& module);

  Buffers() = default;
  Buffers(Buffers&&) = default;
  Buffers& operator=(Buffers&&) = default;

  [[nodiscard]] bool empty() const { return kept_.empty(); }
  // Replaces the changes of this member's forward passes by those of all members. `weight` is the
  // weight of this member's samples in the step. All members call it, in the same order relative to
  // other operations.
  [[nodiscard]] Status reduce(Collective& collective, double weight);
  // The step is applied: the mean of the changes stays.
  void apply();
  // The step is applied, and this member's own changes stay.
  void apply_own();
  // Restores the buffers to the beginning of the step.
  void restore();
  // The state has been replaced in its place in memory: the model takes it.
  void replaced();
  // The state after a step, which is the same on all members, in its place in memory.
  [[nodiscard]] std::vector<StateBuffer> state();
  [[nodiscard]] std::span<std::byte> bytes() { return settled_; }

  // What forward may change, as bytes, in memory of the model's device; undefined: nothing.
  [[nodiscard]] const torch::Tensor& array() const { return array_; }
  // What forward may change of that state, one value after another; and its replacement, in which
  // whole numbers are rounded.
  [[nodiscard]] std::vector<double> values() const;
  void replace(std::span<const double> values);

 private:
  struct Kept {
    std::string name;
    torch::Tensor now;         // the model's own tensor
    torch::Tensor settled;     // a view of settled_
    bool changes = true;       // false: a parameter that needs no gradient
    std::size_t first = 0;     // byte in settled_, and in array_ if it changes
    torch::Tensor place = {};  // its view of array_, if it changes
  };
  // A program may have given a buffer other memory meanwhile.
  void gather();

  std::vector<Kept> kept_;  // those that change first
  std::vector<std::byte> settled_;
  torch::Tensor array_;
  std::vector<double> sums_;  // the weight, then each change times the weight; empty: no reduction
};

}  // namespace antdt::trainer
