// What the trainer asks of a model.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// Tensors over the memory of an Examples, which must live as long.
struct TensorBatch {
  torch::Tensor dense;    // batch x dense_width
  torch::Tensor ids;      // batch x id_width, int64
  torch::Tensor labels;   // batch
  torch::Tensor weights;  // batch; undefined: all 1
};
[[nodiscard]] TensorBatch tensors_over(const data::Examples& examples,
                                       const data::DataShape& shape);

// Parameters are registered in the order in which forward uses them.
class Model : public torch::nn::Module {
 public:
  // Logits: batch for a label of two classes (or the number predicted), else
  // batch x classes. A sample's result depends on that sample alone.
  [[nodiscard]] virtual torch::Tensor forward(const TensorBatch& batch) = 0;
};

// The model that `config` names, for data of that shape, initialised from the
// job's seed: the same on every member. An error (kUsage) when there is no such
// model or the data cannot be its input.
[[nodiscard]] Result<std::shared_ptr<Model>> make_model(const TrainerConfig& config,
                                                        const data::DataShape& shape);

// Whether the parameter of that name is a table of which a batch uses the rows that its
// ids name.
[[nodiscard]] inline bool is_embedding_table(std::string_view parameter) {
  return parameter == "table" || parameter == "weights";
}

// How many logits a label needs: 1 for two classes and for a number.
[[nodiscard]] inline std::int64_t outputs_of(const data::DataShape& shape) {
  return shape.classes > 2 ? static_cast<std::int64_t>(shape.classes) : 1;
}

// Each sample's loss (batch): cross entropy with natural logarithms for
// classes, squared error for a number.
[[nodiscard]] torch::Tensor sample_losses(const torch::Tensor& logits, const torch::Tensor& labels,
                                          const data::DataShape& shape);
// What training makes smaller: the sum of the batch's losses times their weights.
[[nodiscard]] torch::Tensor weighted_loss(Model& model, const TensorBatch& batch,
                                          const data::DataShape& shape);
// The sum of the weights.
[[nodiscard]] double weight_of(const TensorBatch& batch);

}  // namespace antdt::trainer
