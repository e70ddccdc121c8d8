#include "trainer/torch/ps_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/check.h"
#include "trainer/hogwild/thread_team.h"
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

// S-MA is S-BMUF whose model takes the whole way to the mean of the replicas.
void make_centre(const TrainerConfig& config, wire::PsTable& dense) {
  dense.rule = config.sync == SyncStrategy::kShadowEasgd ? "sum" : "mean";
  dense.learning_rate = config.sync == SyncStrategy::kShadowBmuf ? config.shadow_eta : 1;
  dense.weight_decay = 0;
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

// What one thread computes with. Several have the table of the batch in common, and the replica of
// the dense parameters, of which each has a copy.
struct Learner {
  std::shared_ptr<Model> model;
  Parts parts;
  torch::Tensor gradient_memory = torch::empty({0, 0});  // of the table
};

// The model's table consists of the rows of the present batch, and its ids are positions in it.
class TorchPsModel final : public PsModel {
 public:
  TorchPsModel(const TrainerConfig& config, const data::DataShape& shape, kit::Metric metric,
               std::vector<Learner> learners)
      : shape_(shape),
        metric_(std::move(metric)),
        learners_(std::move(learners)),
        threads_(config.threads),
        team_(learners_.size(), [] { set_compute_threads({}); }) {
    const Parts& parts = learners_.front().parts;
    if (parts.table.defined()) {
      width_ = static_cast<std::size_t>(parts.table.size(1));
      columns_ = learners_.front().model->table_columns();
    }
    for (const kit::TableColumns& columns : columns_) {
      tables_.push_back(table_of(config, columns));
      tables_.back().learning_rate *= config.table_rate;
    }
    tables_.push_back(table_of(config, {"dense", 0, kDenseWidth, 0}));
    dense_keys_.resize((parts.dense.size() + kDenseWidth - 1) / kDenseWidth);
    std::iota(dense_keys_.begin(), dense_keys_.end(), 0);
    first_values_ = padded(parts.dense.values());
    if (!is_shadow(config.sync)) return;
    make_centre(config, tables_.back());
    replica_.emplace(parts.dense.values(), ps::TableKeys{dense_table(), dense_keys_}, kDenseWidth,
                     rule_of(config), static_cast<float>(config.shadow_alpha),
                     tables_.back().rule == "sum" ? ElasticReplica::Carries::kDistance
                                                  : ElasticReplica::Carries::kReplica);
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
      threads_.begin();
      std::vector<Result<BatchSums>> sums(learners_.size());
      team_.run([&](std::size_t part) {
        sums[part] = or_thrown(ErrorKind::kInternal, what, [&] { return learn(part, tensors); });
      });
      threads_.end();
      threads_.computed(batch.count);
      threads_.finish_step();  // each batch is a step of its own
      BatchSums all;
      for (const Result<BatchSums>& of_part : sums) {
        if (!of_part) return tl::unexpected(of_part.error());
        all.weight += of_part->weight;
        all.loss += of_part->loss;
      }
      return Computed{gradients(rows), all};
    });
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch,
                                                   const KeysByTable& rows,
                                                   const RowValues& values) override {
    ANTDT_RETURN_IF_ERROR(check(rows, values, tables_.size()));
    const std::string what =
        fmt::format("the model cannot evaluate a batch of {} records", batch.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<wire::EvalPartial> {
      ANTDT_TRY(const Batch tensors, take(batch, rows, values));
      Model& model = *learners_.front().model;
      if (model.is_training()) model.eval();
      return evaluate_batch(model, metric_, tensors);
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

  // One thread's part of a batch. Where there is a replica, the part is a step of its own: the
  // gradient of its records at the replica as it is now is applied to the replica as it is then.
  [[nodiscard]] Result<BatchSums> learn(std::size_t part, const Batch& batch) {
    Learner& learner = learners_[part];
    FlatParameters& dense = learner.parts.dense;
    std::ranges::fill(dense.gradients(), 0.0F);
    if (!columns_.empty()) learner.parts.table.mutable_grad().zero_();
    const Batch records = part_of(batch, part, learners_.size());
    if (records.records == 0) return BatchSums{};
    if (replica_) replica_->read(dense.values());
    if (!learner.model->is_training()) learner.model->train();
    ANTDT_TRY(const kit::Loss loss, forward_loss(*learner.model, records));
    loss.sum.backward();
    if (replica_) replica_->update(dense.gradients(), loss.weight, part, learners_.size());
    return BatchSums{loss.weight, loss.sum.item<double>()};
  }

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
      const std::span<float> dense = learners_.front().parts.dense.values();
      std::ranges::copy_n(values.back().begin(), std::ssize(dense), dense.begin());
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
      for (Learner& l : learners_) l.gradient_memory = torch::empty_like(table_memory_);
    }
    for (Learner& l : learners_) {
      l.parts.table.set_data(table_memory_.narrow(0, 0, rows));
      l.parts.table.mutable_grad() = l.gradient_memory.narrow(0, 0, rows);
    }
  }

  void fill_columns(const kit::TableColumns& columns, const std::vector<float>& values) {
    float* to = table_memory_.data_ptr<float>() + columns.first;
    for (auto from = values.begin(); from != values.end(); from += columns.width, to += width_) {
      std::copy_n(from, columns.width, to);
    }
  }

  [[nodiscard]] std::vector<ps::TableGradient> gradients(const KeysByTable& rows) const {
    const Parts& parts = learners_.front().parts;
    for (std::size_t i = 1; i < learners_.size() && !columns_.empty(); ++i) {
      parts.table.grad().add_(learners_[i].parts.table.grad());
    }
    std::vector<ps::TableGradient> all;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      all.push_back({rows[i].table, {rows[i].keys, gradient_of(columns_[i])}});
    }
    if (!replica_) {
      all.push_back({dense_table(), {dense_keys_, padded(parts.dense.gradients())}});
    }
    return all;
  }

  [[nodiscard]] std::vector<float> gradient_of(const kit::TableColumns& columns) const {
    const torch::Tensor& gradient = learners_.front().parts.table.grad();
    std::vector<float> values(static_cast<std::size_t>(gradient.size(0)) * columns.width);
    const float* from = gradient.data_ptr<float>() + columns.first;
    for (auto to = values.begin(); to != values.end(); to += columns.width, from += width_) {
      std::copy_n(from, columns.width, to);
    }
    return values;
  }

  data::DataShape shape_;
  kit::Metric metric_;
  std::vector<Learner> learners_;  // one for each thread of the team
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
  hogwild::ThreadTeam team_;  // the last member: its threads use the others
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

Result<std::vector<Learner>> learners_of(const std::vector<std::shared_ptr<kit::Model>>& models) {
  std::vector<Learner> learners;
  for (const auto& model : models) {
    ANTDT_TRY(Parts parts, parts_of(*model));
    if (!learners.empty() && parts.dense.size() != learners.front().parts.dense.size()) {
      return fail(ErrorKind::kUsage,
                  "the model has {} parameters for one thread and {} for another, so they cannot "
                  "train it together: write trainer.shadow.threads = 1",
                  learners.front().parts.dense.size(), parts.dense.size());
    }
    learners.push_back({model, std::move(parts)});
  }
  return learners;
}

}  // namespace

Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                     const data::DataShape& shape,
                                                     ServedModel served) {
  ANTDT_RETURN_IF_ERROR(check_rule(config));
  ANTDT_CHECK(served.models.size() == models_needed(config), "{} models", served.models.size());
  const Model& model = *served.models.front();
  const auto refuse = [&](const char* why) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' is not for parameter servers: {}; use trainer.sync = "
                "\"allreduce\"",
                config.model, why);
  };
  if (!model.fits_servers() && !is_shadow(config.sync)) {
    return refuse(
        "it has no embedding table (register_table), so every step would move the whole "
        "model");
  }
  ANTDT_TRY(const Buffers buffers, Buffers::of(*served.models.front()));
  if (!buffers.empty()) {
    return refuse("it has buffers, or parameters that need no gradient, and no server keeps them");
  }
  ANTDT_TRY(auto learners, learners_of(served.models));
  return std::make_unique<TorchPsModel>(config, shape, std::move(served.metric),
                                        std::move(learners));
}

Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                     const data::DataShape& shape) {
  ANTDT_RETURN_IF_ERROR(check_rule(config));
  ServedModel served{{}, count_by_label};
  while (served.models.size() < models_needed(config)) {
    ANTDT_TRY(served.models.emplace_back(), make_model(config, without_rows(shape)));
  }
  return make_torch_ps_model(config, shape, std::move(served));
}

std::size_t models_needed(const TrainerConfig& config) {
  return is_shadow(config.sync) ? config.shadow_threads : 1;
}

data::DataShape without_rows(const data::DataShape& shape) {
  data::DataShape small = shape;
  small.id_rows = 1;
  return small;
}

}  // namespace antdt::trainer
