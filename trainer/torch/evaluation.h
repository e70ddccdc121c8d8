// The contribution of a batch to the evaluation of a model.
#pragma once

#include "core/wire/shard_messages.h"
#include "trainer/torch/models/model.h"

namespace antdt::trainer {

// What an evaluation computes if the program has no metric of its own. Two classes: predicted
// probabilities, the log loss and how many are right at 0.5. More classes: cross entropy and how
// many are right at the highest logit. A number: the squared error.
[[nodiscard]] kit::Sums count_by_label(const torch::Tensor& output, const Batch& batch);

// To be called with gradients off.
// `output` is what the model made of `batch`; both in the host's memory.
[[nodiscard]] wire::EvalPartial evaluate_output(const kit::Metric& metric,
                                                const torch::Tensor& output, const Batch& batch);
[[nodiscard]] wire::EvalPartial evaluate_batch(Model& model, const kit::Metric& metric,
                                               const Batch& batch);

}  // namespace antdt::trainer
