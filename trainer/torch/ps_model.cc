#include "trainer/torch/ps_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "trainer/torch/batch_keys.h"
#include "trainer/torch/buffers.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/models/model.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/replicas/elastic_replica.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

using KeysByTable = std::vector<ps::TableKeys>;
using RowValues = std::vector<std::vector<float>>;

constexpr std::uint32_t kDenseWidth = 1024;

wire::PsTable table_of(const TrainerConfig& config, const kit::TableColumns& columns) {
  wire::PsTable table;
  table.name = columns.name;
  table.width = static_cast<std::uint32_t>(columns.width);
  table.rule = config.optimizer;
  table.learning_rate = config.learning_rate;
  table.weight_decay = config.weight_decay;
  table.init = columns.deviation == 0 ? "zero" : "normal";
  table.init_scale = columns.deviation;
  return table;
}

ps::UpdateRule rule_of(const TrainerConfig& config) {
  ps::UpdateRule rule;
  rule.kind = ps::parse_update_rule(config.optimizer).value();
  rule.learning_rate = static_cast<float>(config.learning_rate);
  rule.weight_decay = static_cast<float>(config.weight_decay);
  return rule;
}

// A model's parameters, without the embedding table.
struct Parts {
  torch::Tensor table;  // undefined: it has none
  FlatParameters dense;
};

Result<Parts> parts_of(const Model& model) {
  ANTDT_TRY(auto trained, FlatParameters::trained_of(model));
  Parts parts;
  const auto table =
      std::ranges::find(trained, model.table_name(), &std::pair<std::string, torch::Tensor>::first);
  if (table != trained.end()) {
    parts.table = table->second;
    trained.erase(table);
  }
  parts.dense = FlatParameters(std::move(trained));
  return parts;
}

// The model's table consists of the rows of the present batch, and its ids are positions in it.
class TorchPsModel final : public PsModel {
 public:
  TorchPsModel(const TrainerConfig& config, const data::DataShape& shape, ServedModel served,
               Parts parts)
      : shape_(shape),
        model_(std::move(served.model)),
        metric_(std::move(served.metric)),
        parts_(std::move(parts)),
        threads_(config.threads) {
    if (parts_.table.defined()) {
      width_ = static_cast<std::size_t>(parts_.table.size(1));
      columns_ = model_->table_columns();
    }
    for (const kit::TableColumns& columns : columns_) tables_.push_back(table_of(config, columns));
    tables_.push_back(table_of(config, {"dense", 0, kDenseWidth, 0}));
    dense_keys_.resize((parts_.dense.size() + kDenseWidth - 1) / kDenseWidth);
    std::iota(dense_keys_.begin(), dense_keys_.end(), 0);
    first_values_ = padded(parts_.dense.values());
    if (config.sync != SyncStrategy::kShadowEasgd) return;
    tables_.back().rule = "sum";
    replica_.emplace(parts_.dense.values(), parts_.dense.gradients(),
                     ps::TableKeys{dense_table(), dense_keys_}, kDenseWidth, rule_of(config),
                     static_cast<float>(config.shadow_alpha));
  }

  [[nodiscard]] DenseReplica* replica() override { return replica_ ? &*replica_ : nullptr; }

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }

  [[nodiscard]] std::vector<ps::TableGradient> first_values() const override {
    return {{dense_table(), {dense_keys_, first_values_}}};
  }

  [[nodiscard]] KeysByTable rows_of(const data::Examples& batch) const override {
    KeysByTable rows;
    if (!columns_.empty()) rows.push_back({0, unique_keys(ids_of(batch, shape_))});
    while (rows.size() < columns_.size()) {
      rows.push_back({static_cast<std::uint32_t>(rows.size()), rows.front().keys});
    }
    if (!replica_) rows.push_back({dense_table(), dense_keys_});
    return rows;
  }

  [[nodiscard]] Result<Computed> compute(const data::Examples& batch, const KeysByTable& rows,
                                         const RowValues& values) override {
    ANTDT_RETURN_IF_ERROR(check(rows, values, replica_ ? columns_.size() : tables_.size()));
    const std::string what =
        fmt::format("the model cannot compute a batch of {} records", batch.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<Computed> {
      ANTDT_TRY(const Batch tensors, take(batch, rows, values));
      clear_gradients();
      if (!model_->is_training()) model_->train();
      threads_.begin();
      ANTDT_TRY(const kit::Loss loss, forward_loss(*model_, tensors));
      loss.sum.backward();
      threads_.end();
      threads_.computed(batch.count);
      threads_.finish_step();  // each batch is a step of its own
      if (replica_) replica_->update(loss.weight);
      return Computed{gradients(rows), {loss.weight, loss.sum.item<double>()}};
    });
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch,
                                                   const KeysByTable& rows,
                                                   const RowValues& values) override {
    ANTDT_RETURN_IF_ERROR(check(rows, values, tables_.size()));
    const std::string what =
        fmt::format("the model cannot evaluate a batch of {} records", batch.count);
    const Kept kept(*this);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<wire::EvalPartial> {
      ANTDT_TRY(const Batch tensors, take(batch, rows, values));
      if (model_->is_training()) model_->eval();
      return evaluate_batch(*model_, metric_, tensors);
    });
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

  // An evaluation is of the centre, and the replica is what it was afterwards.
  class Kept {
   public:
    explicit Kept(TorchPsModel& model) : model_(model) {
      if (!model_.replica_) return;
      const auto now = model_.parts_.dense.values();
      values_.assign(now.begin(), now.end());
    }
    ~Kept() { std::ranges::copy(values_, model_.parts_.dense.values().begin()); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    TorchPsModel& model_;
    std::vector<float> values_;
  };

  // Whether these are the first `tables` tables, as rows_of returns them.
  [[nodiscard]] Status check(const KeysByTable& rows, const RowValues& values,
                             std::size_t tables) const {
    bool fits = rows.size() == tables && values.size() == rows.size();
    for (std::size_t i = 0; fits && i < rows.size(); ++i) {
      const auto& keys = i < columns_.size() ? rows.front().keys : dense_keys_;
      fits = rows[i].table == i && rows[i].keys == keys &&
             values[i].size() == keys.size() * tables_[i].width;
    }
    if (fits) return {};
    return fail(ErrorKind::kInternal, "the rows of {} tables are not those of this model's {}",
                rows.size(), tables_.size());
  }

  // Makes the values the model's parameters; returns the batch over them.
  [[nodiscard]] Result<Batch> take(const data::Examples& batch, const KeysByTable& rows,
                                   const RowValues& values) {
    if (values.size() == tables_.size()) {
      std::ranges::copy_n(values.back().begin(), static_cast<std::ptrdiff_t>(parts_.dense.size()),
                          parts_.dense.values().begin());
    }
    Batch tensors = tensors_over(batch, shape_);
    if (columns_.empty()) return tensors;
    ANTDT_RETURN_IF_ERROR(positions_of_.find(rows.front().keys, ids_of(batch, shape_), positions_));
    tensors.ids = torch::from_blob(positions_.data(), tensors.ids.sizes(), torch::kInt64);
    if (!tensors.columns.empty()) tensors.columns["ids"] = tensors.ids;
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

  void fill_columns(const kit::TableColumns& columns, const std::vector<float>& values) {
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
    if (!replica_) {
      all.push_back({dense_table(), {dense_keys_, padded(parts_.dense.gradients())}});
    }
    return all;
  }

  [[nodiscard]] std::vector<float> gradient_of(const kit::TableColumns& columns) const {
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
  kit::Metric metric_;
  Parts parts_;
  ComputeThreads threads_;
  std::size_t width_ = 0;                   // of the model's table
  std::vector<kit::TableColumns> columns_;  // its tables on the servers; "dense" is the one after
  std::vector<wire::PsTable> tables_;
  std::vector<std::uint64_t> dense_keys_;
  std::vector<float> first_values_;
  std::optional<ElasticReplica> replica_;
  KeyPositions positions_of_;
  std::vector<std::int64_t> positions_;  // positions of the batch's ids among its rows
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
                                                     const data::DataShape& shape,
                                                     ServedModel served) {
  ANTDT_RETURN_IF_ERROR(check_rule(config));
  const Model& model = *served.model;
  const auto refuse = [&](const char* why) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' is not for parameter servers: {}; use trainer.sync = "
                "\"allreduce\"",
                config.model, why);
  };
  if (!model.fits_servers() && config.sync != SyncStrategy::kShadowEasgd) {
    return refuse(
        "it has no embedding table (register_table), so every step would move the whole "
        "model");
  }
  ANTDT_TRY(const Buffers buffers, Buffers::of(*served.model));
  if (!buffers.empty()) {
    return refuse("it has buffers, or parameters that need no gradient, and no server keeps them");
  }
  ANTDT_TRY(Parts parts, parts_of(model));
  return std::make_unique<TorchPsModel>(config, shape, std::move(served), std::move(parts));
}

Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                     const data::DataShape& shape) {
  ANTDT_RETURN_IF_ERROR(check_rule(config));
  ANTDT_TRY(std::shared_ptr<Model> model, make_model(config, without_rows(shape)));
  return make_torch_ps_model(config, shape, {std::move(model), count_by_label});
}

data::DataShape without_rows(const data::DataShape& shape) {
  data::DataShape small = shape;
  small.id_rows = 1;
  return small;
}

}  // namespace antdt::trainer
