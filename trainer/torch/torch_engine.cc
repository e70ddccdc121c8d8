#include "trainer/torch/torch_engine.h"

#include <torch/torch.h>

#include <algorithm>
#include <optional>

#include "trainer/loop/domains/domain_exchange.h"
#include "trainer/torch/buffers.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/gradient_reducer.h"
#include "trainer/torch/models/model.h"
#include "trainer/torch/optimizer.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/replicas/replica.h"
#include "trainer/torch/rows/awake_rows.h"
#include "trainer/torch/rows/served_table.h"
#include "trainer/torch/state_file.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

class TorchEngine final : public Engine {
 public:
  // `table`: the entry whose gradient may be summed as rows; empty: all gradients are dense.
  // `served`: the model's table, if its rows are on servers; then it is not of the parameters.
  TorchEngine(Training training, FlatParameters parameters, Buffers buffers,
              const data::DataShape& shape, std::optional<std::size_t> table,
              std::unique_ptr<ServedTable> served = {})
      : shape_(shape),
        served_(std::move(served)),
        training_(std::move(training)),
        parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        threads_(training_.threads),
        optimizer_(training_.optimizer.get()),
        of_replica_(dynamic_cast<ReplicaOptimizer*>(optimizer_)),
        table_(table ? parameters_.entries()[*table] : FlatParameters::Entry{}),
        rows_(table ? std::make_optional(rows_of(parameters_, table_, training_.table))
                    : std::nullopt),
        updates_rows_(training_.table == TableGradients::kSparse || optimizer_->keeps_untouched()),
        awake_(rows_ && !updates_rows_ && optimizer_->rests_at_zero()
                   ? std::make_optional<AwakeRows>(table_.count / rows_->width(), rows_->width())
                   : std::nullopt),
        reducer_(parameters_, {.table = table, .rows = rows_ ? &*rows_ : nullptr}) {}

  void begin_step(Collective& collective) override {
    collective_ = &collective;
    weight_ = 0;
    reducer_.begin(collective);
    set_members(1);
    threads_.begin();
  }

  void begin_local_step(Collective& members) override {
    collective_ = nullptr;
    set_members(members.size());
    threads_.begin();
  }

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& examples, bool last) override {
    const std::string what =
        fmt::format("the model cannot compute a batch of {} records", examples.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<BatchSums> {
      worker::VisitSums visit;
      if (domains_.has_guest()) {
        ANTDT_TRY(visit, evaluate_both(examples));
      }
      ANTDT_TRY(const Batch batch, batch_of(examples));
      if (rows_) rows_->touch(ids_of(examples, shape_));
      if (last && !is_local()) reducer_.arm();
      set_training(true);
      ANTDT_TRY(const kit::Loss loss, forward_loss(*training_.model, batch));
      loss.sum.backward();
      threads_.computed(examples.count);
      if (is_local()) count_time_so_far();
      weight_ += loss.weight;
      return BatchSums{.weight = loss.weight, .loss = loss.sum.item<double>(), .visit = visit};
    });
  }

  [[nodiscard]] Status finish_reduction() override {
    threads_.end();
    if (is_local()) return {};
    ANTDT_RETURN_IF_ERROR(reducer_.finish());
    return or_thrown(ErrorKind::kInternal, "the model's buffers cannot be summed",
                     [&] { return buffers_.reduce(*collective_, weight_); });
  }

  [[nodiscard]] wire::TableSums table_sums() const override { return reducer_.table_sums(); }

  [[nodiscard]] Status apply(double weight) override {
    threads_.begin();
    replica_.forget();
    domains_.applied();
    ANTDT_RETURN_IF_ERROR(or_thrown(ErrorKind::kInternal, "the model cannot be updated",
                                    [&] { return take_step(static_cast<float>(1 / weight)); }));
    if (rows_) rows_->forget();
    threads_.end();
    threads_.finish_step();
    return {};
  }
  void set_rate(double factor) override {
    job_rate_ = factor;
    optimizer_->set_rate(factor);
  }
  void discard() override {
    threads_.forget_step();
    if (rows_) rows_->forget();
    std::fill(parameters_.gradients().begin(), parameters_.gradients().end(), 0.0F);
    replica_.restore(mixed_arrays(), buffers_);
    domains_.discarded(parameters_.values());
    buffers_.restore();
  }

  [[nodiscard]] Status can_mix() const override { return {}; }
  [[nodiscard]] Status mix(Collective& group) override {
    // A row of which this member knew nothing may get moments of another, if moments are mixed.
    if (of_replica_ != nullptr) awake_are_known_ = false;
    return replica_.mix(group, mixed_arrays(), buffers_);
  }
  [[nodiscard]] Status consolidate(Collective& holders) override {
    awake_are_known_ = false;
    return Replica::consolidate(holders, all_values(), buffers_);
  }

  [[nodiscard]] Status can_exchange() const override { return {}; }
  [[nodiscard]] Status exchange_updates(const DomainLinks& links,
                                        const UpdateExchange& about) override {
    return domains_.exchange(links, about, parameters_.values());
  }
  [[nodiscard]] Status consolidate_domains(const DomainLinks& links) override {
    awake_are_known_ = false;
    std::vector<double> statistics = buffers_.values();
    ANTDT_RETURN_IF_ERROR(
        domains_.consolidate(links, parameters_.values(), {all_values(), statistics}));
    buffers_.replace(statistics);
    return {};
  }
  [[nodiscard]] wire::UpdateSums update_sums() const override { return domains_.sums(); }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& examples) override {
    const std::string what =
        fmt::format("the model cannot evaluate a batch of {} records", examples.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<wire::EvalPartial> {
      set_training(false);
      ANTDT_TRY(const Batch batch, batch_of(examples));
      return evaluate_batch(*training_.model, training_.metric, batch);
    });
  }

  [[nodiscard]] HostedRows* hosted_rows() override { return served_.get(); }

  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    return trainer::state_files({step, optimizer_->steps()}, layout(), arrays(), buffers_.state());
  }

  [[nodiscard]] Result<Step> load(CheckpointReader& files) override {
    ANTDT_TRY(const StateCounters counters,
              read_state(files, layout(), arrays(), buffers_.state()));
    replica_.forget();
    domains_.replaced();
    awake_are_known_ = false;
    optimizer_->steps() = counters.optimizer_steps;
    buffers_.replaced();
    return counters.step;
  }

  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    std::vector<std::span<std::byte>> parts;
    for (const StateArray& array : arrays()) parts.push_back(std::as_writable_bytes(array.values));
    parts.push_back(std::as_writable_bytes(std::span(&optimizer_->steps(), 1)));
    if (!buffers_.empty()) parts.push_back(buffers_.bytes());
    return parts;
  }
  // The parameters are views of the array that was written, so nothing else needs to be replaced.
  // Gradients of a step that was broken off must be cleared.
  void state_replaced() override {
    replica_.forget();
    domains_.replaced();
    awake_are_known_ = false;
    discard();
    buffers_.replaced();
  }

 private:
  // This domain's replica and the guest, on the same records.
  [[nodiscard]] Result<worker::VisitSums> evaluate_both(const data::Examples& examples) {
    ANTDT_TRY(const auto own, evaluate_as(domains_.own_before(), examples));
    ANTDT_TRY(const auto guest, evaluate_as(domains_.guest(), examples));
    return worker::VisitSums{own.records, own.correct, guest.correct, own.loss_sum, guest.loss_sum};
  }
  // As if the parameters had these values. Buffers are this domain's own.
  [[nodiscard]] Result<wire::EvalPartial> evaluate_as(std::span<const float> replica,
                                                      const data::Examples& examples) {
    const std::span<float> values = parameters_.values();
    const std::vector<float> present(values.begin(), values.end());
    std::ranges::copy(replica, values.begin());
    auto found = evaluate(examples);
    std::ranges::copy(present, values.begin());
    return found;
  }
  [[nodiscard]] bool is_local() const { return collective_ == nullptr; }
  [[nodiscard]] Result<Batch> batch_of(const data::Examples& examples) {
    if (served_) return served_->batch_over(examples);
    return tensors_over(examples, shape_);
  }
  void set_members(std::uint32_t count) {
    if (of_replica_ != nullptr) of_replica_->set_members(count);
  }
  // What replicas average in each step.
  [[nodiscard]] std::vector<std::span<float>> mixed_arrays() const {
    std::vector<std::span<float>> arrays{parameters_.values()};
    if (of_replica_ == nullptr) return arrays;
    for (const std::span<float> moments : of_replica_->state()) arrays.push_back(moments);
    return arrays;
  }
  // A local step is over for this member when it has computed: what follows is the wait for others,
  // which the next begin() leaves out.
  void count_time_so_far() {
    threads_.end();
    threads_.begin();
  }
  // Modules look the mode up in each forward, and setting it has a cost.
  void set_training(bool on) {
    if (training_.model->is_training() != on) training_.model->train(on);
  }
  static SparseRows rows_of(const FlatParameters& parameters, const FlatParameters::Entry& table,
                            TableGradients how) {
    return {parameters.gradients().subspan(table.first, table.count),
            static_cast<std::size_t>(table.parameter.size(1)),
            how == TableGradients::kSparse ? TableSum::kRows : TableSum::kQuicker};
  }
  // Those whose moments or gradients are not zero.
  void wake_rows() {
    const auto of_table = [&](std::span<float> all) {
      return all.subspan(table_.first, table_.count);
    };
    if (!awake_are_known_) {
      awake_->rest_all();
      for (const auto values : optimizer_->state()) awake_->wake_where_not_zero(of_table(values));
      awake_are_known_ = true;
    }
    if (rows_->is_whole()) return awake_->wake_where_not_zero(of_table(parameters_.gradients()));
    rows_->for_each_run([&](std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t row = first; row < first + count; ++row) awake_->wake(row);
    });
  }
  // By the schedule and the optimizer, which may be a program's own.
  [[nodiscard]] Status take_step(float scale) {
    is_local() ? buffers_.apply_own() : buffers_.apply();
    if (training_.schedule) {
      optimizer_->set_rate(job_rate_ * training_.schedule(optimizer_->steps()));
    }
    if (awake_) {
      wake_rows();
      update_rows(*awake_, scale);
    } else if (rows_ && updates_rows_ && !rows_->is_whole()) {
      update_rows(*rows_, scale);
    } else {
      optimizer_->step(parameters_.values(), parameters_.gradients(), scale);
    }
    return {};
  }
  // Of the table only these rows, of all else everything.
  template <class Rows>
  void update_rows(const Rows& rows, float scale) {
    optimizer_->begin_step();
    update(0, table_.first, scale);
    rows.for_each_run([&](std::uint64_t first, std::uint64_t count) {
      update(table_.first + first * rows_->width(), count * rows_->width(), scale);
    });
    const std::size_t end = table_.first + table_.count;
    update(end, parameters_.size() - end, scale);
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
  [[nodiscard]] std::vector<std::span<float>> all_values() const {
    std::vector<std::span<float>> all;
    for (const StateArray& array : arrays()) all.push_back(array.values);
    return all;
  }
  [[nodiscard]] std::vector<StateEntry> layout() const { return trainer::layout(parameters_); }

  data::DataShape shape_;
  std::unique_ptr<ServedTable> served_;
  Training training_;
  FlatParameters parameters_;
  // mutable because, like the optimizer's state, it is returned by const functions
  mutable Buffers buffers_;
  ComputeThreads threads_;
  kit::Optimizer* optimizer_;
  ReplicaOptimizer* of_replica_;  // the same one; null: it does not depend on how many replicas are
  FlatParameters::Entry table_;
  std::optional<SparseRows> rows_;  // rows of table_; the reducer keeps its address
  bool updates_rows_;               // other rows of table_ stay as they are
  std::optional<AwakeRows> awake_;  // of table_; none: all its rows are updated, or updates_rows_
  bool awake_are_known_ = false;    // and not yet to be found in what the optimizer remembers
  GradientReducer reducer_;
  Replica replica_;
  DomainExchange domains_;
  Collective* collective_ = nullptr;  // that sums the step in progress; null: the step is local
  double weight_ = 0;                 // weight of the samples computed in this step
  double job_rate_ = 1;               // factor of the learning rate, as the job decided
};

}  // namespace

Result<TableGradients> table_gradients(const std::string& named) {
  if (named == "dense") return TableGradients::kDense;
  if (named == "sparse") return TableGradients::kSparse;
  if (named == "auto") return TableGradients::kAuto;
  return fail(ErrorKind::kUsage,
              "trainer.embedding_gradients '{}' is not known: use auto, dense or sparse", named);
}

Result<std::size_t> floats_of(const kit::Model& model) {
  ANTDT_TRY(const auto trained, FlatParameters::trained_of(model));
  return FlatParameters::floats_of(trained);
}

Result<std::unique_ptr<Engine>> make_torch_engine(Training training, const data::DataShape& shape) {
  ANTDT_TRY(auto trained, FlatParameters::trained_of(*training.model));
  ANTDT_TRY(Buffers buffers, Buffers::of(*training.model));
  FlatParameters parameters(std::move(trained));
  std::optional<std::size_t> table;
  if (training.table != TableGradients::kDense) {
    table = parameters.place_of(training.model->table_name());
  }
  return std::make_unique<TorchEngine>(std::move(training), std::move(parameters),
                                       std::move(buffers), shape, table);
}

Result<std::unique_ptr<Engine>> make_served_engine(const TrainerConfig& config,
                                                   const data::DataShape& shape, Training training,
                                                   const MakeOptimizer& optimizer) {
  ANTDT_TRY(auto trained, FlatParameters::trained_of(*training.model));
  const std::string name = training.model->table_name();
  const auto found =
      std::ranges::find(trained, name, &std::pair<std::string, torch::Tensor>::first);
  if (found == trained.end() || !training.model->fits_servers()) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' has no embedding table (register_table) whose rows could be on "
                "servers: use trainer.sync = \"allreduce\"",
                config.model);
  }
  torch::Tensor table = found->second;
  trained.erase(found);
  ANTDT_TRY(training.optimizer, optimizer(FlatParameters::floats_of(trained)));
  ANTDT_TRY(Buffers buffers, Buffers::of(*training.model));
  training.table = TableGradients::kDense;
  auto served = std::make_unique<ServedTable>(config, shape, *training.model, std::move(table));
  FlatParameters parameters(std::move(trained));
  return std::make_unique<TorchEngine>(std::move(training), std::move(parameters),
                                       std::move(buffers), shape, std::nullopt, std::move(served));
}

Result<std::unique_ptr<Engine>> make_torch_engine(const TrainerConfig& config,
                                                  const data::DataShape& shape) {
  Training training;
  ANTDT_TRY(training.model, make_model(config, shape));
  ANTDT_TRY(const std::size_t floats, floats_of(*training.model));
  ANTDT_TRY(training.optimizer, make_optimizer({config.optimizer, config.learning_rate,
                                                config.momentum, config.weight_decay},
                                               floats));
  training.metric = count_by_label;
  ANTDT_TRY(training.table, table_gradients(config.embedding_gradients));
  training.threads = config.threads;
  return make_torch_engine(std::move(training), shape);
}

}  // namespace antdt::trainer
