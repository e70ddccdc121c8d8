#include "trainer/emulated/emulated_engine.h"

#include "trainer/tally/tally_engine.h"

namespace antdt::trainer {
namespace {

class EmulatedEngine final : public Engine {
 public:
  EmulatedEngine(std::unique_ptr<Engine> tally, std::uint32_t parameters, Pace pace)
      : tally_(std::move(tally)), parameters_(parameters), pace_(std::move(pace)) {}

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& batch, bool last) override {
    const MonoTime began = pace_.now();
    ANTDT_RETURN_IF_ERROR(pace_.check(batch.count));
    fold(batch, parameters_, folded_);
    ANTDT_TRY(const BatchSums sums, tally_->compute(folded_, last));
    pace_.finish(began, batch.count);
    return sums;
  }

  void begin_step(Collective& collective) override { tally_->begin_step(collective); }
  [[nodiscard]] Status finish_reduction() override { return tally_->finish_reduction(); }
  [[nodiscard]] Status apply(double weight) override { return tally_->apply(weight); }
  void discard() override { tally_->discard(); }
  [[nodiscard]] Status can_mix() const override { return {}; }
  [[nodiscard]] Status mix(Collective& group) override {
    ANTDT_RETURN_IF_ERROR(exchange(group));
    return tally_->mix(group);
  }
  void begin_local_step(Collective& members) override { tally_->begin_local_step(members); }
  [[nodiscard]] Status consolidate(Collective& holders) override {
    ANTDT_RETURN_IF_ERROR(exchange(holders));
    return tally_->consolidate(holders);
  }
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch) override {
    return tally_->evaluate(batch);
  }
  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    return tally_->state_files(step);
  }
  [[nodiscard]] Result<Step> load(CheckpointReader& files) override { return tally_->load(files); }
  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    return tally_->state_parts();
  }
  void state_replaced() override { tally_->state_replaced(); }

 private:
  // Takes as long as averaging the parameters does; what the tally merges is no mean, and small
  // beside it.
  [[nodiscard]] Status exchange(Collective& group) {
    exchanged_.resize(parameters_);
    return group.allreduce_mean(exchanged_);
  }

  std::unique_ptr<Engine> tally_;
  std::uint32_t parameters_;
  Pace pace_;
  data::Examples folded_;
  std::vector<float> exchanged_;  // zeros
};

}  // namespace

Result<std::unique_ptr<Engine>> make_emulated_engine(const data::DataShape& shape,
                                                     std::uint32_t parameters, Pace pace) {
  ANTDT_TRY(auto tally, make_tally_engine(folded(shape, parameters)));
  return std::make_unique<EmulatedEngine>(std::move(tally), parameters, std::move(pace));
}

}  // namespace antdt::trainer
