#include "trainer/torch/models/model.h"

#include "trainer/torch/models/models.h"

namespace antdt::trainer {
namespace {

// LibTorch reads through mutable pointers only.
template <class T>
torch::Tensor view_of(const std::vector<T>& values, std::vector<std::int64_t> sizes,
                      torch::ScalarType type) {
  return torch::from_blob(const_cast<T*>(values.data()), sizes, torch::TensorOptions(type));
}

Result<std::shared_ptr<Model>> build(const TrainerConfig& config, const data::DataShape& shape) {
  if (config.model == "lr") return std::make_shared<LogisticRegression>(shape);
  if (config.model == "deepfm") return std::make_shared<DeepFm>(config, shape);
  if (config.model == "xdeepfm") return std::make_shared<XDeepFm>(config, shape);
  if (config.model == "dlrm") return std::make_shared<Dlrm>(config, shape);
  if (config.model == "mlp") return std::make_shared<Mlp>(config, shape);
  if (config.model == "resnet") return std::make_shared<ResNet>(shape);
  return fail(ErrorKind::kUsage,
              "trainer.model '{}' is not known: use lr, deepfm, xdeepfm, dlrm, mlp or resnet",
              config.model);
}

// Whether the data can be the model's input.
Status check(const TrainerConfig& config, const data::DataShape& shape) {
  const bool embeds =
      config.model == "deepfm" || config.model == "xdeepfm" || config.model == "dlrm";
  if (embeds && (shape.id_width == 0 || config.embedding_dim == 0)) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' needs category columns and embedding_dim of at least 1; "
                "the data has {} category columns: use lr or mlp",
                config.model, shape.id_width);
  }
  if (config.model == "xdeepfm" && config.cin_layers.empty()) {
    return fail(ErrorKind::kUsage,
                "trainer.cin_layers is empty: 'xdeepfm' needs one layer at least");
  }
  if (config.model == "dlrm" && shape.dense_width == 0) {
    return fail(ErrorKind::kUsage,
                "trainer.model 'dlrm' needs numeric columns, the data has none: use xdeepfm");
  }
  if (config.model == "resnet" && shape.channels * shape.height * shape.width == 0) {
    return fail(ErrorKind::kUsage,
                "trainer.model 'resnet' needs images (data.format = \"idx\"): use mlp");
  }
  if ((config.model == "lr" || embeds) && shape.classes > 2) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' needs a label of two classes, the data has {}: use mlp",
                config.model, shape.classes);
  }
  if (shape.id_width + shape.dense_width == 0) {
    return fail(ErrorKind::kUsage, "the data has no feature columns to train on");
  }
  return {};
}

}  // namespace

TensorBatch tensors_over(const data::Examples& examples, const data::DataShape& shape) {
  const auto rows = static_cast<std::int64_t>(examples.count);
  TensorBatch batch;
  batch.dense = view_of(examples.dense, {rows, static_cast<std::int64_t>(shape.dense_width)},
                        torch::kFloat32);
  batch.ids =
      view_of(examples.ids, {rows, static_cast<std::int64_t>(shape.id_width)}, torch::kInt64);
  batch.labels = view_of(examples.labels, {rows}, torch::kFloat32);
  if (!examples.weights.empty()) {
    batch.weights = view_of(examples.weights, {rows}, torch::kFloat32);
  }
  return batch;
}

Result<std::shared_ptr<Model>> make_model(const TrainerConfig& config,
                                          const data::DataShape& shape) {
  ANTDT_RETURN_IF_ERROR(check(config, shape));
  torch::manual_seed(config.seed);
  try {
    return build(config, shape);
  } catch (const c10::Error& e) {
    return fail(ErrorKind::kUsage, "cannot build trainer.model '{}' for this data: {}",
                config.model, e.what_without_backtrace());
  }
}

torch::Tensor sample_losses(const torch::Tensor& logits, const torch::Tensor& labels,
                            const data::DataShape& shape) {
  namespace F = torch::nn::functional;
  if (shape.classes > 2) {
    return F::cross_entropy(logits, labels.to(torch::kInt64),
                            F::CrossEntropyFuncOptions().reduction(torch::kNone));
  }
  if (shape.classes == 2) {
    return F::binary_cross_entropy_with_logits(
        logits, labels, F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone));
  }
  return F::mse_loss(logits, labels, F::MSELossFuncOptions().reduction(torch::kNone));
}

torch::Tensor weighted_loss(Model& model, const TensorBatch& batch, const data::DataShape& shape) {
  const torch::Tensor losses = sample_losses(model.forward(batch), batch.labels, shape);
  return batch.weights.defined() ? (losses * batch.weights).sum() : losses.sum();
}

double weight_of(const TensorBatch& batch) {
  return batch.weights.defined() ? batch.weights.sum().item<double>()
                                 : static_cast<double>(batch.labels.numel());
}

}  // namespace antdt::trainer
