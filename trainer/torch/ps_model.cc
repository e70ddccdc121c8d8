#include "trainer/torch/ps_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/check.h"
#include "trainer/torch/batch_keys.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/models/models.h"
#include "trainer/torch/parameters.h"

namespace antdt::trainer {
namespace {

using KeysByTable = std::vector<ps::TableKeys>;
using RowValues = std::vector<std::vector<float>>;

constexpr std::uint32_t kDenseWidth = 1024;

// Columns [first, first + width) of the model's embedding table, which are a table
// of their own on the servers.
struct Columns {
  std::string name;
  std::size_t first = 0;
  std::uint32_t width = 1;
  bool zero = true;  // rows begin with zeros
};

// First-order weights begin with zeros and the embeddings beside them do not; a
// table of servers begins one way, so they are two.
std::vector<Columns> columns_of(const std::string& model, const std::string& name,
                                std::uint32_t width) {
  if (model == "lr") return {{name, 0, width, true}};
  if (model == "deepfm" || model == "xdeepfm") {
    return {{name, 1, width - 1, false}, {"first_order", 0, 1, true}};
  }
  return {{name, 0, width, false}};
}

wire::PsTable table_of(const TrainerConfig& config, const Columns& columns) {
  wire::PsTable table;
  table.name = columns.name;
  table.width = columns.width;
  table.rule = config.optimizer;
  table.learning_rate = config.learning_rate;
  table.weight_decay = config.weight_decay;
  table.init = columns.zero ? "zero" : "normal";
  table.init_scale = columns.zero ? 0 : kEmbeddingDeviation;
  return table;
}

// A model's parameters, the embedding table apart.
struct Parts {
  std::string table_name;
  torch::Tensor table;  // undefined: it has none
  FlatParameters dense;
};

Parts parts_of(Model& model) {
  Parts parts;
  std::vector<std::pair<std::string, torch::Tensor>> dense;
  for (const auto& item : model.named_parameters()) {
    if (is_embedding_table(item.key())) {
      parts.table_name = item.key();
      parts.table = item.value();
    } else {
      dense.emplace_back(item.key(), item.value());
    }
  }
  parts.dense = FlatParameters(std::move(dense));
  return parts;
}

// The model's table is the rows of the batch at hand, and its ids are their places.
class TorchPsModel final : public PsModel {
 public:
  TorchPsModel(const TrainerConfig& config, const data::DataShape& shape,
               std::shared_ptr<Model> model)
      : shape_(shape), model_(std::move(model)), parts_(parts_of(*model_)) {
    if (parts_.table.defined()) {
      width_ = static_cast<std::size_t>(parts_.table.size(1));
      columns_ = columns_of(config.model, parts_.table_name, static_cast<std::uint32_t>(width_));
    }
    for (const Columns& columns : columns_) tables_.push_back(table_of(config, columns));
    tables_.push_back(table_of(config, {"dense", 0, kDenseWidth, true}));
    dense_keys_.resize((parts_.dense.size() + kDenseWidth - 1) / kDenseWidth);
    std::iota(dense_keys_.begin(), dense_keys_.end(), 0);
    first_values_ = padded(parts_.dense.values());
  }

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }

  [[nodiscard]] std::vector<ps::TableGradient> first_values() const override {
    return {{dense_table(), {dense_keys_, first_values_}}};
  }

  [[nodiscard]] KeysByTable rows_of(const data::Examples& batch) const override {
    KeysByTable rows;
    if (!columns_.empty()) rows.push_back({0, unique_keys(batch.ids)});
    while (rows.size() < columns_.size()) {
      rows.push_back({static_cast<std::uint32_t>(rows.size()), rows.front().keys});
    }
    rows.push_back({dense_table(), dense_keys_});
    return rows;
  }

  [[nodiscard]] Result<Computed> compute(const data::Examples& batch, const KeysByTable& rows,
                                         const RowValues& values) override {
    ANTDT_RETURN_IF_ERROR(check(rows, values));
    try {
      ANTDT_TRY(const TensorBatch tensors, take(batch, rows, values));
      clear_gradients();
      const torch::Tensor loss = weighted_loss(*model_, tensors, shape_);
      loss.backward();
      return Computed{gradients(rows), {weight_of(tensors), loss.item<double>()}};
    } catch (const c10::Error& e) {
      return fail(ErrorKind::kInternal, "the model cannot compute a batch of {} records: {}",
                  batch.count, e.what_without_backtrace());
    }
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch,
                                                   const KeysByTable& rows,
                                                   const RowValues& values) override {
    ANTDT_RETURN_IF_ERROR(check(rows, values));
    try {
      const torch::NoGradGuard no_grad;
      ANTDT_TRY(const TensorBatch tensors, take(batch, rows, values));
      return evaluate_batch(model_->forward(tensors), tensors, shape_);
    } catch (const c10::Error& e) {
      return fail(ErrorKind::kInternal, "the model cannot evaluate a batch of {} records: {}",
                  batch.count, e.what_without_backtrace());
    }
  }

 private:
  [[nodiscard]] std::uint32_t dense_table() const {
    return static_cast<std::uint32_t>(columns_.size());
  }
  [[nodiscard]] std::vector<float> padded(std::span<const float> dense) const {
    std::vector<float> blocks(dense_keys_.size() * kDenseWidth);
    std::ranges::copy(dense, blocks.begin());
    return blocks;
  }

  // Whether these are all tables, as rows_of gives them.
  [[nodiscard]] Status check(const KeysByTable& rows, const RowValues& values) const {
    bool fits = rows.size() == tables_.size() && values.size() == rows.size();
    for (std::size_t i = 0; fits && i < rows.size(); ++i) {
      const auto& keys = i < columns_.size() ? rows.front().keys : dense_keys_;
      fits = rows[i].table == i && rows[i].keys == keys &&
             values[i].size() == keys.size() * tables_[i].width;
    }
    if (fits) return {};
    return fail(ErrorKind::kInternal, "the rows of {} tables are not those of this model's {}",
                rows.size(), tables_.size());
  }

  // Makes the values the model's parameters; answers the batch over them.
  [[nodiscard]] Result<TensorBatch> take(const data::Examples& batch, const KeysByTable& rows,
                                         const RowValues& values) {
    std::ranges::copy_n(values.back().begin(), static_cast<std::ptrdiff_t>(parts_.dense.size()),
                        parts_.dense.values().begin());
    TensorBatch tensors = tensors_over(batch, shape_);
    if (columns_.empty()) return tensors;
    ANTDT_RETURN_IF_ERROR(positions_of_.find(rows.front().keys, batch.ids, positions_));
    tensors.ids = torch::from_blob(positions_.data(), tensors.ids.sizes(), torch::kInt64);
    make_table(static_cast<std::int64_t>(rows.front().keys.size()));
    for (std::size_t i = 0; i < columns_.size(); ++i) fill_columns(columns_[i], values[i]);
    return tensors;
  }

  // Views of memory that grows with the largest batch so far.
  void make_table(std::int64_t rows) {
    if (table_memory_.size(0) < rows) {
      table_memory_ = torch::empty({rows, static_cast<std::int64_t>(width_)});
      gradient_memory_ = torch::empty_like(table_memory_);
    }
    parts_.table.set_data(table_memory_.narrow(0, 0, rows));
    parts_.table.mutable_grad() = gradient_memory_.narrow(0, 0, rows);
  }

  void fill_columns(const Columns& columns, const std::vector<float>& values) {
    float* to = parts_.table.data_ptr<float>() + columns.first;
    for (auto from = values.begin(); from != values.end(); from += columns.width, to += width_) {
      std::copy_n(from, columns.width, to);
    }
  }

  void clear_gradients() {
    std::ranges::fill(parts_.dense.gradients(), 0.0F);
    if (!columns_.empty()) parts_.table.mutable_grad().zero_();
  }

  [[nodiscard]] std::vector<ps::TableGradient> gradients(const KeysByTable& rows) const {
    std::vector<ps::TableGradient> all;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      all.push_back({rows[i].table, {rows[i].keys, gradient_of(columns_[i])}});
    }
    all.push_back({dense_table(), {dense_keys_, padded(parts_.dense.gradients())}});
    return all;
  }

  [[nodiscard]] std::vector<float> gradient_of(const Columns& columns) const {
    const torch::Tensor& gradient = parts_.table.grad();
    std::vector<float> values(static_cast<std::size_t>(gradient.size(0)) * columns.width);
    const float* from = gradient.data_ptr<float>() + columns.first;
    for (auto to = values.begin(); to != values.end(); to += columns.width, from += width_) {
      std::copy_n(from, columns.width, to);
    }
    return values;
  }

  data::DataShape shape_;
  std::shared_ptr<Model> model_;
  Parts parts_;
  std::size_t width_ = 0;         // of the model's table
  std::vector<Columns> columns_;  // its tables on the servers; "dense" is the one after
  std::vector<wire::PsTable> tables_;
  std::vector<std::uint64_t> dense_keys_;
  std::vector<float> first_values_;
  KeyPositions positions_of_;
  std::vector<std::int64_t> positions_;  // of the batch's ids among its rows
  torch::Tensor table_memory_ = torch::empty({0, 0});
  torch::Tensor gradient_memory_ = torch::empty({0, 0});
};

Status check_rule(const TrainerConfig& config) {
  constexpr std::array kRules{"sgd", "adagrad", "adam"};
  if (std::ranges::find(kRules, config.optimizer) == kRules.end()) {
    return fail(ErrorKind::kUsage, "trainer.optimizer '{}' is not known: use sgd, adagrad or adam",
                config.optimizer);
  }
  if (config.momentum != 0) {
    return fail(ErrorKind::kUsage,
                "trainer.momentum is {}, and parameter servers have none: remove it, or use "
                "adagrad or adam",
                config.momentum);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                     const data::DataShape& shape) {
  ANTDT_RETURN_IF_ERROR(check_rule(config));
  data::DataShape without_rows = shape;
  without_rows.id_rows = 1;
  ANTDT_TRY(std::shared_ptr<Model> model, make_model(config, without_rows));
  // They would be training state that no server has.
  ANTDT_CHECK(model->buffers().empty(), "model {} has buffers", config.model);
  return std::make_unique<TorchPsModel>(config, shape, std::move(model));
}

}  // namespace antdt::trainer
