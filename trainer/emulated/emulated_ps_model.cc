#include "trainer/emulated/emulated_ps_model.h"

#include "trainer/tally/ps_tally.h"

namespace antdt::trainer {
namespace {

class EmulatedPsModel final : public PsModel {
 public:
  EmulatedPsModel(std::unique_ptr<PsModel> tally, std::uint32_t parameters, Pace pace)
      : tally_(std::move(tally)), parameters_(parameters), pace_(std::move(pace)) {}

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override {
    return tally_->tables();
  }
  [[nodiscard]] std::vector<ps::TableGradient> first_values() const override {
    return tally_->first_values();
  }
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const override {
    data::Examples folded;
    fold(batch, parameters_, folded);
    return tally_->rows_of(folded);
  }
  [[nodiscard]] Result<Computed> compute(const data::Examples& batch,
                                         const std::vector<ps::TableKeys>& rows,
                                         const std::vector<std::vector<float>>& values) override {
    const MonoTime began = pace_.now();
    ANTDT_RETURN_IF_ERROR(pace_.check(batch.count));
    data::Examples folded;
    fold(batch, parameters_, folded);
    ANTDT_TRY(Computed computed, tally_->compute(folded, rows, values));
    pace_.finish(began, batch.count);
    return computed;
  }
  [[nodiscard]] Result<wire::EvalPartial> evaluate(
      const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
      const std::vector<std::vector<float>>& values) override {
    return tally_->evaluate(batch, rows, values);
  }

 private:
  std::unique_ptr<PsModel> tally_;
  std::uint32_t parameters_;
  Pace pace_;
};

}  // namespace

Result<std::unique_ptr<PsModel>> make_emulated_ps_model(const data::DataShape& shape,
                                                        std::uint32_t parameters, Pace pace) {
  ANTDT_TRY(auto tally, make_tally_ps_model(folded(shape, parameters), 1));
  return std::make_unique<EmulatedPsModel>(std::move(tally), parameters, std::move(pace));
}

}  // namespace antdt::trainer
