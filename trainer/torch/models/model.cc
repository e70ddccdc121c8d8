#include "trainer/torch/models/model.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "trainer/torch/embedding.h"
#include "trainer/torch/models/built_in.h"
#include "trainer/torch/models/models.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

// LibTorch reads only through mutable pointers.
template <class T>
torch::Tensor view_of(const std::vector<T>& values, std::vector<std::int64_t> sizes,
                      torch::ScalarType type) {
  return torch::from_blob(const_cast<T*>(values.data()), sizes, torch::TensorOptions(type));
}

torch::Tensor view_of(const std::vector<std::byte>& bytes, std::int64_t rows,
                      const data::ColumnShape& column) {
  std::vector<std::int64_t> sizes{rows};
  sizes.insert(sizes.end(), column.sizes.begin(), column.sizes.end());
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), sizes, scalar_type(column.type));
}

// A column with the name of a member of Batch is stored in that member.
void add_column(Batch& batch, const std::string& name, const torch::Tensor& column) {
  batch.columns.emplace(name, column);
  if (name == "dense") batch.dense = column;
  if (name == "ids") batch.ids = column;
  if (name == "labels") batch.labels = column;
  if (name == "weights") batch.weights = column;
}

}  // namespace

kit::Settings settings_of(const TrainerConfig& config) {
  kit::Settings settings;
  settings.model = config.model;
  settings.optimizer = config.optimizer;
  settings.learning_rate = config.learning_rate;
  settings.momentum = config.momentum;
  settings.weight_decay = config.weight_decay;
  settings.embedding_dim = config.embedding_dim;
  settings.hidden = config.hidden;
  settings.cin_layers = config.cin_layers;
  settings.bottom_hidden = config.bottom_hidden;
  settings.global_batch = config.global_batch;
  settings.seed = config.seed;
  settings.on_servers = on_servers(config.sync);
  return settings;
}

torch::ScalarType scalar_type(data::ElementType type) {
  switch (type) {
    case data::ElementType::kFloat32:
      return torch::kFloat32;
    case data::ElementType::kFloat64:
      return torch::kFloat64;
    case data::ElementType::kInt64:
      return torch::kInt64;
    case data::ElementType::kInt32:
      return torch::kInt32;
    case data::ElementType::kUint8:
      return torch::kUInt8;
    case data::ElementType::kBool:
      return torch::kBool;
  }
  ANTDT_CHECK(false, "a column of type {}", static_cast<int>(type));
}

kit::DataShape shape_of(const data::DataShape& shape) {
  kit::DataShape seen;
  seen.dense_width = shape.dense_width;
  seen.id_width = shape.id_width;
  seen.id_rows = shape.id_rows;
  seen.classes = shape.classes;
  seen.channels = shape.channels;
  seen.height = shape.height;
  seen.width = shape.width;
  for (const data::ColumnShape& column : shape.columns) {
    seen.columns.push_back({column.name, scalar_type(column.type), column.sizes});
  }
  return seen;
}

Batch tensors_over(const data::Examples& examples, const data::DataShape& shape) {
  const auto rows = static_cast<std::int64_t>(examples.count);
  Batch batch;
  batch.records = rows;
  batch.classes = shape.classes;
  if (!shape.columns.empty()) {
    for (std::size_t i = 0; i < shape.columns.size(); ++i) {
      add_column(batch, shape.columns[i].name,
                 view_of(examples.columns[i], rows, shape.columns[i]));
    }
    return batch;
  }
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

Batch part_of(const Batch& batch, std::size_t part, std::size_t parts) {
  if (parts == 1) return batch;
  const auto before = [&](std::size_t n) {
    return batch.records * static_cast<std::int64_t>(n) / static_cast<std::int64_t>(parts);
  };
  const auto records = [&](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, before(part), before(part + 1) - before(part)) : all;
  };
  Batch own;
  own.records = before(part + 1) - before(part);
  own.classes = batch.classes;
  own.dense = records(batch.dense);
  own.ids = records(batch.ids);
  own.labels = records(batch.labels);
  own.weights = records(batch.weights);
  for (const auto& [name, column] : batch.columns) own.columns.emplace(name, records(column));
  return own;
}

std::span<const std::int64_t> ids_of(const data::Examples& examples, const data::DataShape& shape) {
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (shape.columns[i].name != "ids") continue;
    const std::vector<std::byte>& bytes = examples.columns[i];
    return {reinterpret_cast<const std::int64_t*>(bytes.data()),
            bytes.size() / sizeof(std::int64_t)};
  }
  return examples.ids;
}

Result<std::shared_ptr<Model>> make_model(const kit::ModelFactory& factory,
                                          const kit::Context& context) {
  torch::manual_seed(context.settings.seed);
  const std::string what =
      fmt::format("cannot build trainer.model '{}' for this data", context.settings.model);
  return or_thrown(ErrorKind::kUsage, what, [&]() -> Result<std::shared_ptr<Model>> {
    std::shared_ptr<Model> model = factory(context);
    if (!model) return fail(ErrorKind::kUsage, "{}: its factory made none", what);
    return model;
  });
}

Result<std::shared_ptr<Model>> make_model(const TrainerConfig& config,
                                          const data::DataShape& shape) {
  const auto known = built_in_models();
  const auto found = known.find(config.model);
  if (found == known.end()) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' is not known: use lr, deepfm, xdeepfm, dlrm, mlp or resnet",
                config.model);
  }
  const kit::Settings settings = settings_of(config);
  const kit::Options none;
  const kit::DataShape seen = shape_of(shape);
  return make_model(found->second, {settings, none, seen});
}

torch::Tensor sample_losses(const torch::Tensor& output, const Batch& batch) {
  namespace F = torch::nn::functional;
  if (batch.classes > 2) {
    return F::cross_entropy(output, batch.labels.to(torch::kInt64),
                            F::CrossEntropyFuncOptions().reduction(torch::kNone));
  }
  if (batch.classes == 2) {
    return F::binary_cross_entropy_with_logits(
        output, batch.labels, F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone));
  }
  return F::mse_loss(output, batch.labels, F::MSELossFuncOptions().reduction(torch::kNone));
}

Status check_loss(const kit::Loss& loss) {
  if (loss.sum.defined() && loss.sum.numel() == 1) return {};
  return fail(ErrorKind::kInternal, "the model's loss is {}: it must be one number, a sum",
              loss.sum.defined() ? fmt::format("{} numbers", loss.sum.numel()) : "undefined");
}

Status check_finite(double sum, double weight, std::int64_t records) {
  if (std::isfinite(sum) && std::isfinite(weight) && weight >= 0) return {};
  return fail(ErrorKind::kInternal,
              "the loss of a micro-batch of {} records is {} and its weight {}: the training "
              "diverged, or a record holds what the model cannot take; lower trainer.lr, or find "
              "the record with antdt data which",
              records, sum, weight);
}

Result<kit::Loss> forward_loss(Model& model, const Batch& batch) {
  kit::Loss loss = model.loss(model.forward(batch), batch);
  ANTDT_RETURN_IF_ERROR(check_loss(loss));
  ANTDT_RETURN_IF_ERROR(check_finite(loss.sum.item<double>(), loss.weight, batch.records));
  return loss;
}

}  // namespace antdt::trainer

namespace antdt::kit {

Model::~Model() = default;

Loss Model::loss(const torch::Tensor& output, const Batch& batch) {
  if (!batch.labels.defined()) {
    throw UsageError(
        "the data have no labels: let the reader make a column 'labels', or give the "
        "model a loss of its own");
  }
  const torch::Tensor losses = trainer::sample_losses(output, batch);
  if (batch.weights.defined()) {
    return {(losses * batch.weights).sum(), batch.weights.sum().item<double>()};
  }
  return {losses.sum(), static_cast<double>(batch.records)};
}

bool Model::fits_servers() const { return !table_name_.empty(); }

torch::Tensor Model::register_table(const std::string& name, std::uint64_t rows,
                                    std::vector<TableColumns> columns) {
  if (!table_name_.empty()) {
    throw UsageError(
        fmt::format("the model has two embedding tables, '{}' and '{}': one table with "
                    "the columns of both can be had",
                    table_name_, name));
  }
  std::int64_t width = 0, together = 0;
  bool all_zero = true;
  for (const TableColumns& of : columns) {
    width = std::max(width, of.first + of.width);
    together += of.width;
    all_zero = all_zero && of.deviation == 0;
    if (of.name == "dense" || of.name.empty()) {
      throw UsageError(
          fmt::format("the columns of table '{}' cannot be called '{}': servers call "
                      "the other parameters 'dense'",
                      name, of.name));
    }
  }
  if (together != width || width == 0) {
    throw UsageError(
        fmt::format("the columns of table '{}' are {} wide and end at {}: they must "
                    "follow one another without a gap",
                    name, together, width));
  }
  const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(rows), width};
  torch::Tensor table = all_zero ? torch::zeros(sizes) : torch::randn(sizes);
  for (const TableColumns& of : columns) {
    torch::Tensor part = table.narrow(1, of.first, of.width);
    if (!all_zero) of.deviation == 0 ? part.zero_() : part.mul_(of.deviation);
  }
  table_name_ = name;
  table_columns_ = std::move(columns);
  return register_parameter(name, table);
}

torch::Tensor embedding_rows(const torch::Tensor& table, const torch::Tensor& ids) {
  return trainer::embedding_rows(table, ids);
}

}  // namespace antdt::kit
