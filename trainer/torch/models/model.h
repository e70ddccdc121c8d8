// Batches and models as the trainer's parts use them. include/antdt/kit/model.h defines a model,
// built in or not.
#pragma once

#include <antdt/kit/parts.h>
#include <torch/torch.h>

#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

using kit::Batch;
using kit::Model;

[[nodiscard]] kit::Settings settings_of(const TrainerConfig& config);
[[nodiscard]] kit::DataShape shape_of(const data::DataShape& shape);
[[nodiscard]] torch::ScalarType scalar_type(data::ElementType type);

// Tensors over the memory of an Examples, which must live as long.
[[nodiscard]] Batch tensors_over(const data::Examples& examples, const data::DataShape& shape);
// The records of one of `parts` parts of nearly equal size, with the memory of `batch`. A part of
// fewer records than parts may be empty.
[[nodiscard]] Batch part_of(const Batch& batch, std::size_t part, std::size_t parts);
// The ids in the examples, count x fields.
[[nodiscard]] std::span<const std::int64_t> ids_of(const data::Examples& examples,
                                                   const data::DataShape& shape);

// A model that `factory` makes after the job's seed is set, so that it is the same on every member.
// An error (kUsage) if it cannot be made, or if it does not fit the data.
[[nodiscard]] Result<std::shared_ptr<Model>> make_model(const kit::ModelFactory& factory,
                                                        const kit::Context& context);
// A model that is built in.
[[nodiscard]] Result<std::shared_ptr<Model>> make_model(const TrainerConfig& config,
                                                        const data::DataShape& shape);

// How many logits a label needs: 1 for two classes and for a number.
[[nodiscard]] inline std::int64_t outputs_of(const kit::DataShape& shape) {
  return shape.classes > 2 ? static_cast<std::int64_t>(shape.classes) : 1;
}

// Each sample's loss (batch): cross entropy with natural logarithms for
// classes, squared error for a number.
[[nodiscard]] torch::Tensor sample_losses(const torch::Tensor& output, const Batch& batch);

// The model's loss on a batch, ready for backward. A loss that is not finite is an error
// (kInternal); exceptions of the model pass through.
[[nodiscard]] Result<kit::Loss> forward_loss(Model& model, const Batch& batch);
// Its two checks, where the value is known later than the loss.
[[nodiscard]] Status check_loss(const kit::Loss& loss);
[[nodiscard]] Status check_finite(double sum, double weight, std::int64_t records);

}  // namespace antdt::trainer
