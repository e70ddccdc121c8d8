// What a batch contributes to the evaluation of a model.
#pragma once

#include "core/wire/shard_messages.h"
#include "trainer/torch/models/model.h"

namespace antdt::trainer {

// Two classes: a histogram of predicted probabilities, the log loss and how
// many are right at 0.5. More: cross entropy and how many are right at the
// highest logit. A number: the squared error.
[[nodiscard]] wire::EvalPartial evaluate_batch(const torch::Tensor& logits,
                                               const TensorBatch& batch,
                                               const data::DataShape& shape);

}  // namespace antdt::trainer
