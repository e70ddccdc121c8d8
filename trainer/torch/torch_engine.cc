#include "trainer/torch/torch_engine.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/gradient_reducer.h"
#include "trainer/torch/models/model.h"
#include "trainer/torch/optimizer.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/state_file.h"

namespace antdt::trainer {
namespace {

// Large enough for the bandwidth of the ring, small enough that the first
// bucket is on its way early.
constexpr std::size_t kBucketBytes = 1U << 20U;

class TorchEngine final : public Engine {
 public:
  // `table`: the entry whose gradient is rows; none: all are dense.
  TorchEngine(std::shared_ptr<Model> model, FlatParameters parameters,
              std::unique_ptr<Optimizer> optimizer, const data::DataShape& shape,
              std::optional<std::size_t> table)
      : shape_(shape),
        model_(std::move(model)),
        parameters_(std::move(parameters)),
        optimizer_(std::move(optimizer)),
        table_(table ? parameters_.entries()[*table] : FlatParameters::Entry{}),
        rows_(table ? std::make_optional(rows_of(parameters_, table_)) : std::nullopt),
        reducer_(parameters_, kBucketBytes, rows_ ? &*rows_ : nullptr, table.value_or(0)) {}

  void begin_step(Collective& collective) override { reducer_.begin(collective); }

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& examples, bool last) override {
    try {
      const TensorBatch batch = tensors_over(examples, shape_);
      if (rows_) rows_->touch(examples.ids);
      const torch::Tensor loss = weighted_loss(*model_, batch, shape_);
      if (last) reducer_.arm();
      loss.backward();
      return BatchSums{weight_of(batch), loss.item<double>()};
    } catch (const c10::Error& e) {
      return fail(ErrorKind::kInternal, "the model cannot compute a batch of {} records: {}",
                  examples.count, e.what_without_backtrace());
    }
  }

  [[nodiscard]] Status finish_reduction() override { return reducer_.finish(); }

  void apply(double weight) override {
    const auto scale = static_cast<float>(1 / weight);
    if (!rows_) return optimizer_->step(parameters_.values(), parameters_.gradients(), scale);
    optimizer_->begin_step();
    update(0, table_.first, scale);
    for (const std::uint64_t row : rows_->rows()) {
      update(table_.first + row * rows_->width(), rows_->width(), scale);
    }
    rows_->forget();
    const std::size_t end = table_.first + table_.count;
    update(end, parameters_.size() - end, scale);
  }
  void set_rate(double factor) override { optimizer_->set_rate(factor); }
  void discard() override {
    if (rows_) rows_->forget();
    std::fill(parameters_.gradients().begin(), parameters_.gradients().end(), 0.0F);
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& examples) override {
    try {
      const torch::NoGradGuard no_grad;
      const TensorBatch batch = tensors_over(examples, shape_);
      return evaluate_batch(model_->forward(batch), batch, shape_);
    } catch (const c10::Error& e) {
      return fail(ErrorKind::kInternal, "the model cannot evaluate a batch of {} records: {}",
                  examples.count, e.what_without_backtrace());
    }
  }

  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    return trainer::state_files({step, optimizer_->steps()}, layout(), arrays());
  }

  [[nodiscard]] Result<Step> load(CheckpointReader& files) override {
    ANTDT_TRY(const StateCounters counters, read_state(files, layout(), arrays()));
    optimizer_->steps() = counters.optimizer_steps;
    return counters.step;
  }

  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    std::vector<std::span<std::byte>> parts;
    for (const StateArray& array : arrays()) parts.push_back(std::as_writable_bytes(array.values));
    parts.push_back(std::as_writable_bytes(std::span(&optimizer_->steps(), 1)));
    return parts;
  }
  // Parameters are views of the array that was written: nothing else to replace.
  // What a step that was broken off left in the gradients must go.
  void state_replaced() override { discard(); }

 private:
  static SparseRows rows_of(const FlatParameters& parameters, const FlatParameters::Entry& table) {
    return {parameters.gradients().subspan(table.first, table.count),
            static_cast<std::size_t>(table.parameter.size(1))};
  }
  void update(std::size_t first, std::size_t count, float scale) {
    optimizer_->update(parameters_.values().subspan(first, count),
                       parameters_.gradients().subspan(first, count), first, scale);
  }
  [[nodiscard]] std::vector<StateArray> arrays() const {
    std::vector<StateArray> all{{"parameters", parameters_.values()}};
    for (const std::span<float> values : optimizer_->state()) {
      all.push_back({fmt::format("optimizer{}", all.size() - 1), values});
    }
    return all;
  }
  [[nodiscard]] std::vector<StateEntry> layout() const {
    std::vector<StateEntry> entries;
    for (const FlatParameters::Entry& entry : parameters_.entries()) {
      entries.push_back({entry.name, entry.parameter.sizes().vec(), entry.first});
    }
    return entries;
  }

  data::DataShape shape_;
  std::shared_ptr<Model> model_;
  FlatParameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  FlatParameters::Entry table_;
  std::optional<SparseRows> rows_;  // of table_; the reducer keeps its address
  GradientReducer reducer_;
};

// The embedding table of the click models, where this model has one.
std::optional<std::size_t> table_among(const std::vector<FlatParameters::Entry>& entries) {
  const auto found = std::ranges::find_if(
      entries, [](const auto& entry) { return is_embedding_table(entry.name); });
  if (found == entries.end()) return std::nullopt;
  return static_cast<std::size_t>(found - entries.begin());
}

}  // namespace

void set_compute_threads(std::uint32_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  // OpenBLAS with its own threads does not follow LibTorch's setting; another
  // BLAS has no such function.
  using SetThreads = void (*)(int);
  if (const auto set =
          reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(static_cast<int>(threads));
  }
}

Result<std::unique_ptr<Engine>> make_torch_engine(const TrainerConfig& config,
                                                  const data::DataShape& shape) {
  ANTDT_TRY(std::shared_ptr<Model> model, make_model(config, shape));
  // They would be training state that is neither saved nor sent.
  ANTDT_CHECK(model->buffers().empty(), "model {} has buffers", config.model);
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& item : model->named_parameters()) named.emplace_back(item.key(), item.value());
  FlatParameters parameters(std::move(named));
  ANTDT_TRY(auto optimizer, make_optimizer({config.optimizer, config.learning_rate, config.momentum,
                                            config.weight_decay},
                                           parameters.size()));
  std::optional<std::size_t> table;
  if (config.embedding_gradients == "sparse") table = table_among(parameters.entries());
  return std::make_unique<TorchEngine>(std::move(model), std::move(parameters),
                                       std::move(optimizer), shape, table);
}

}  // namespace antdt::trainer
