// The counters of `tally3` as rows on servers, beside those of the engine's own replica
// (sync = "hybrid"): each record adds one to both.
#pragma once

#include <memory>
#include <vector>

#include "trainer/loop/ps_model.h"
#include "trainer/loop/served/hosted_rows.h"

namespace antdt::trainer {

class HostedTally final : public HostedRows {
 public:
  // `model`: make_tally_ps_model().
  explicit HostedTally(std::unique_ptr<PsModel> model) : model_(std::move(model)) {}

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override {
    return model_->tables();
  }
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const override {
    return model_->rows_of(batch);
  }
  [[nodiscard]] Status put(std::vector<ps::TableKeys> rows,
                           const std::vector<std::vector<float>>& /*values*/) override {
    rows_ = std::move(rows);
    return {};
  }
  [[nodiscard]] std::vector<ps::TableGradient> gradients() const override { return gradients_; }

  // Of the batch whose rows were put.
  [[nodiscard]] Status count(const data::Examples& batch) {
    ANTDT_TRY(auto computed, model_->compute(batch, rows_, {}));
    gradients_ = std::move(computed.gradients);
    return {};
  }

 private:
  std::unique_ptr<PsModel> model_;
  std::vector<ps::TableKeys> rows_;
  std::vector<ps::TableGradient> gradients_;
};

}  // namespace antdt::trainer
