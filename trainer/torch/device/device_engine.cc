#include "trainer/torch/device/device_engine.h"

#include <algorithm>
#include <cmath>

#include "core/log/log.h"
#include "trainer/torch/buffers.h"
#include "trainer/torch/device/batch_copy.h"
#include "trainer/torch/device/bucket_reduction.h"
#include "trainer/torch/device/device_optimizer.h"
#include "trainer/torch/device/device_timer.h"
#include "trainer/torch/device/loss_scale.h"
#include "trainer/torch/device/micro_batch_fit.h"
#include "trainer/torch/device/out_of_memory.h"
#include "trainer/torch/device/precision.h"
#include "trainer/torch/device/rollback.h"
#include "trainer/torch/device/state/state_on_device.h"
#include "trainer/torch/device/timed_marks.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/models/model.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/state_file.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Training training, FlatParameters parameters, Buffers buffers,
               std::unique_ptr<DeviceOptimizer> optimizer, const data::DataShape& shape,
               const DeviceChoice& choice)
      : shape_(shape),
        choice_(choice),
        training_(std::move(training)),
        parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        optimizer_(std::move(optimizer)),
        state_(parameters_.value_array(), parameters_.gradient_array(), *optimizer_, buffers_),
        queue_(choice.device, Queue::Kind::kCompute),
        done_(choice.device),
        copy_(choice.device),
        rollback_(gradients(), buffers_.array()),
        timer_(std::make_unique<TimedMarks>(queue_)),
        results_(torch::empty(
            {2}, torch::TensorOptions(torch::kFloat64).pinned_memory(!choice.device.is_cpu()))),
        reduction_(gradients()),
        reducer_(parameters_, {.table = training_.table == TableGradients::kAuto
                                            ? parameters_.place_of(training_.model->table_name())
                                            : std::nullopt,
                               .elsewhere = &reduction_}) {}

  void begin_step(Collective& collective) override {
    collective_ = &collective;
    weight_ = 0;
    is_clear_ = true;
    scaled_ = false;
    reducer_.begin(collective);
  }

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& examples, bool last) override {
    ANTDT_RETURN_IF_ERROR(discarded_);
    const Batch batch = tensors_over(examples, shape_);
    BatchSums sums;
    sums.device_time = Duration{};
    std::size_t at = 0;
    while (at < examples.count) {
      const Piece piece{at, fit_.next(examples.count - at),
                        last && at + fit_.next(examples.count - at) == examples.count};
      ANTDT_TRY(const auto computed, compute(batch, piece));
      if (!computed) continue;
      sums.weight += computed->weight;
      sums.loss += computed->loss;
      *sums.device_time += computed->device_time.value_or(Duration{});
      at += piece.count;
    }
    weight_ += sums.weight;
    return sums;
  }

  // Also called for a step that was given up because the device has failed: then every call of it
  // throws. The reducer's thread is waited for in any case, because it uses the collective.
  [[nodiscard]] Status finish_reduction() override {
    const std::string what = "the gradient cannot be summed";
    const Status unscaled = or_thrown(ErrorKind::kInternal, what, [&] { return unscale(); });
    const Status summed = reducer_.finish();
    ANTDT_RETURN_IF_ERROR(discarded_);
    ANTDT_RETURN_IF_ERROR(unscaled);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Status {
      if (!summed) {
        reduction_.order();
        return summed;
      }
      ANTDT_RETURN_IF_ERROR(reduction_.settle());
      return buffers_.reduce(*collective_, weight_);
    });
  }

  [[nodiscard]] wire::TableSums table_sums() const override { return reducer_.table_sums(); }

  // The device is not waited for: the next micro-batch comes after the update in its queue.
  [[nodiscard]] Status apply(double weight) override {
    return or_thrown(ErrorKind::kInternal, "the model cannot be updated", [&]() -> Status {
      timer_.begin();
      buffers_.apply();
      const double scheduled = training_.schedule ? training_.schedule(optimizer_->steps()) : 1;
      optimizer_->set_rate(job_rate_ * scheduled);
      optimizer_->step(values(), gradients(), 1 / weight);
      timer_.end();
      state_.differs();
      return {};
    });
  }
  void set_rate(double factor) override { job_rate_ = factor; }
  // What fails here is told by the next call that can tell it.
  void discard() override {
    discarded_ = or_thrown(ErrorKind::kInternal, "a step cannot be discarded", [&]() -> Status {
      const torch::NoGradGuard no_grad;
      gradients().zero_();
      buffers_.restore();
      return {};
    });
  }

  [[nodiscard]] std::uint32_t max_micro_batch() const override {
    return static_cast<std::uint32_t>(fit_.bound());
  }

  // The metric sees the host's memory, so that each of a program's own works.
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& examples) override {
    const std::string what =
        fmt::format("the model cannot evaluate a batch of {} records", examples.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<wire::EvalPartial> {
      set_training(false);
      const Batch batch = tensors_over(examples, shape_);
      const torch::NoGradGuard no_grad;
      std::vector<torch::Tensor> outputs;
      std::size_t at = 0;
      while (at < examples.count) {
        const std::size_t count = fit_.next(examples.count - at);
        ANTDT_TRY(const torch::Tensor output, forward_of(batch, at, count));
        if (!output.defined()) continue;
        outputs.push_back(output);
        at += count;
      }
      return evaluate_output(training_.metric, torch::cat(outputs), batch);
    });
  }

  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    state_.copy_to_host();
    return trainer::state_files({step, optimizer_->steps()}, layout(), state_.on_host(),
                                buffers_.state());
  }

  [[nodiscard]] Result<Step> load(CheckpointReader& files) override {
    state_.copy_to_host();
    const auto counters = read_state(files, layout(), state_.on_host(), buffers_.state());
    if (!counters) {
      state_.differs();
      return tl::unexpected(counters.error());
    }
    optimizer_->steps() = counters->optimizer_steps;
    state_.copy_to_device();
    take_buffers();
    return counters->step;
  }

  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    state_.copy_to_host();
    std::vector<std::span<std::byte>> parts;
    for (const StateArray& array : state_.on_host()) {
      parts.push_back(std::as_writable_bytes(array.values));
    }
    for (const auto& part : state_.rest()) parts.push_back(part);
    return parts;
  }
  void state_replaced() override {
    state_.copy_to_device();
    discard();
    take_buffers();
  }
  [[nodiscard]] DeviceState* device_state() override { return &state_; }

 private:
  // Records of a micro-batch.
  struct Piece {
    std::size_t first = 0, count = 0;
    bool last = false;  // of the step
  };

  [[nodiscard]] const torch::Tensor& values() const { return parameters_.value_array(); }
  [[nodiscard]] const torch::Tensor& gradients() const { return parameters_.gradient_array(); }
  [[nodiscard]] bool is_half() const { return choice_.precision == torch::kFloat16; }

  void set_training(bool on) {
    if (training_.model->is_training() != on) training_.model->train(on);
  }
  [[nodiscard]] torch::Tensor forward(const Batch& batch) {
    const LowerPrecision lower(choice_.device.type(), choice_.precision);
    const torch::Tensor output = training_.model->forward(batch);
    return torch::is_floating_point(output) ? output.to(torch::kFloat32) : output;
  }

  // In the host's memory; undefined: it does not fit the device's, and a smaller part is to be
  // tried.
  [[nodiscard]] Result<torch::Tensor> forward_of(const Batch& batch, std::size_t first,
                                                 std::size_t count) {
    std::optional<MemoryShortage> shortage;
    try {
      return forward(copy_.of(batch, static_cast<std::int64_t>(first),
                              static_cast<std::int64_t>(count)))
          .cpu();
    } catch (const std::exception& thrown) {
      if (!is_out_of_memory(thrown)) throw;
      shortage = shortage_of(thrown, choice_.device, count);
    }
    ANTDT_RETURN_IF_ERROR(learn_from(*shortage));
    return torch::Tensor();
  }

  // Empty: it could not be computed, nothing of it is left, and a smaller piece, or the same one
  // with a smaller loss, is to be tried.
  [[nodiscard]] Result<std::optional<BatchSums>> compute(const Batch& batch, const Piece& piece) {
    const std::string what =
        fmt::format("the model cannot compute a batch of {} records", piece.count);
    return or_thrown(ErrorKind::kInternal, what, [&]() -> Result<std::optional<BatchSums>> {
      // A size that is tried for the first time, and any in float16, may have to be undone, so
      // nothing of it may be with other members before it is complete.
      const bool may_fail = is_half() || !fit_.proven(piece.count);
      std::optional<MemoryShortage> shortage;
      try {
        if (may_fail) rollback_.keep(is_clear_);
        ANTDT_TRY(const BatchSums sums,
                  forward_and_backward(batch, piece, piece.last && !may_fail));
        if (!std::isfinite(results_[1].item<double>())) {
          ANTDT_RETURN_IF_ERROR(overflowed(piece));
          return std::optional<BatchSums>();
        }
        fitted(piece);
        return sums;
      } catch (const std::exception& thrown) {
        timer_.drop();
        if (!is_out_of_memory(thrown)) throw;
        shortage = shortage_of(thrown, choice_.device, piece.count);
      }
      // Outside of the handler, which keeps what the exception refers to.
      ANTDT_RETURN_IF_ERROR(mend(*shortage, may_fail));
      return std::optional<BatchSums>();
    });
  }

  [[nodiscard]] Result<BatchSums> forward_and_backward(const Batch& batch, const Piece& piece,
                                                       bool overlaps) {
    set_training(true);
    timer_.begin();
    const Batch there = copy_.of(batch, static_cast<std::int64_t>(piece.first),
                                 static_cast<std::int64_t>(piece.count));
    const kit::Loss loss = training_.model->loss(forward(there), there);
    ANTDT_RETURN_IF_ERROR(check_loss(loss));
    if (overlaps) reducer_.arm();
    is_half() ? (loss.sum * scale_.value()).backward() : loss.sum.backward();
    const torch::NoGradGuard no_grad;
    const torch::Tensor gradient_sum =
        is_half() ? gradients().sum() : torch::zeros({}, gradients().options());
    results_.copy_(torch::stack({loss.sum.detach().to(torch::kFloat64).reshape({}),
                                 gradient_sum.to(torch::kFloat64)}),
                   /*non_blocking=*/true);
    timer_.end();
    done_.set(queue_);
    done_.wait();
    const auto sum = results_[0].item<double>();
    ANTDT_RETURN_IF_ERROR(check_finite(sum, loss.weight, there.records));
    BatchSums sums{loss.weight, sum};
    sums.device_time = timer_.take();
    return sums;
  }

  void fitted(const Piece& piece) {
    fit_.fitted(piece.count);
    is_clear_ = false;
    rollback_.forget();
    if (!is_half()) return;
    scaled_ = true;
    if (const double ratio = scale_.fitted(); ratio != 1) gradients().mul_(ratio);
  }

  // What was added up in this step has the factor of the loss, which is halved.
  [[nodiscard]] Status overflowed(const Piece& piece) {
    rollback_.undo();
    if (!scale_.overflowed()) {
      return fail(
          ErrorKind::kInternal,
          "the gradient of a micro-batch of {} records is not finite in float16, however the "
          "loss is scaled: write trainer.precision = \"bf16\" or \"fp32\", or lower trainer.lr",
          piece.count);
    }
    if (!is_clear_) gradients().mul_(0.5);
    return {};
  }

  // Divides the sum by the factor of the loss, before other members see it.
  [[nodiscard]] Status unscale() {
    if (std::exchange(scaled_, false)) gradients().mul_(1 / scale_.value());
    return {};
  }

  [[nodiscard]] Status mend(const MemoryShortage& shortage, bool may_fail) {
    if (may_fail) {
      rollback_.undo();
      rollback_.forget();
      return learn_from(shortage);
    }
    return fail(ErrorKind::kInternal,
                "{}; a micro-batch of that size had fitted before: does another process use the "
                "device?",
                to_text(shortage));
  }

  [[nodiscard]] Status learn_from(const MemoryShortage& shortage) {
    give_back_unused(choice_.device);
    if (!fit_.too_large(shortage.records)) {
      return fail(ErrorKind::kInternal,
                  "{}; a single record does not fit: use a smaller model, or trainer.precision = "
                  "\"bf16\"",
                  to_text(shortage));
    }
    log_warn("{}", survived_text(shortage, fit_.bound()));
    return {};
  }

  // Those of the state, which was replaced.
  void take_buffers() {
    or_throw_saying(fmt::format("the model's buffers cannot be copied to {}", choice_.device.str()),
                    [&] { buffers_.replaced(); });
  }
  [[nodiscard]] std::vector<StateEntry> layout() const { return trainer::layout(parameters_); }

  data::DataShape shape_;
  DeviceChoice choice_;
  Training training_;
  FlatParameters parameters_;
  // mutable because, like the optimizer's state, they are returned by const functions
  mutable Buffers buffers_;
  std::unique_ptr<DeviceOptimizer> optimizer_;
  mutable StateOnDevice state_;
  Queue queue_;
  Mark done_;
  BatchCopy copy_;
  Rollback rollback_;
  DeviceTimer timer_;
  MicroBatchFit fit_;
  LossScale scale_;
  torch::Tensor results_;  // the loss, and in float16 the sum of the gradient
  DeviceReduction reduction_;
  GradientReducer reducer_;
  Collective* collective_ = nullptr;  // of the step in progress
  double weight_ = 0;                 // weight of the samples computed in this step
  double job_rate_ = 1;               // factor of the learning rate, as the job decided
  bool is_clear_ = true;              // the gradient is zero
  bool scaled_ = false;               // it has the factor of the loss
  Status discarded_;                  // whether the last step that was discarded could be
};

}  // namespace

Result<std::unique_ptr<Engine>> make_device_engine(Training training,
                                                   const OptimizerOptions& optimizer,
                                                   const data::DataShape& shape,
                                                   const DeviceChoice& choice) {
  const std::string what = fmt::format("the model cannot be placed on {}", choice.device.str());
  return or_thrown(ErrorKind::kUsage, what, [&]() -> Result<std::unique_ptr<Engine>> {
    // Else cuDNN computes convolutions of float32 with the mantissa of half precision, and cuBLAS
    // products of matrices, too, where TORCH_ALLOW_TF32_CUBLAS_OVERRIDE is in the environment.
    if (!choice.precision) {
      at::globalContext().setAllowTF32CuDNN(false);
      at::globalContext().setAllowTF32CuBLAS(false);
    }
    if (!choice.device.is_cpu()) training.model->to(choice.device);
    ANTDT_TRY(auto trained, FlatParameters::trained_of(*training.model));
    ANTDT_TRY(Buffers buffers, Buffers::of(*training.model));
    FlatParameters parameters(std::move(trained), choice.device);
    ANTDT_TRY(auto made, make_device_optimizer(optimizer, parameters.size(), choice.device));
    return std::make_unique<DeviceEngine>(std::move(training), std::move(parameters),
                                          std::move(buffers), std::move(made), shape, choice);
  });
}

}  // namespace antdt::trainer
