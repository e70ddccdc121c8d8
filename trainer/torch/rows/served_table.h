// The embedding table of a model whose rows are on servers: it consists of the rows of one batch,
// and the ids of that batch are positions in it.
#pragma once

#include <vector>

#include "trainer/loop/served/hosted_rows.h"
#include "trainer/loop/trainer_config.h"
#include "trainer/torch/batch_keys.h"
#include "trainer/torch/models/model.h"

namespace antdt::trainer {

class ServedTable final : public HostedRows {
 public:
  // `table`: the model's parameter of that name.
  ServedTable(const TrainerConfig& config, const data::DataShape& shape, const Model& model,
              torch::Tensor table);

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const override;
  [[nodiscard]] Status put(std::vector<ps::TableKeys> rows,
                           const std::vector<std::vector<float>>& values) override;
  [[nodiscard]] std::vector<ps::TableGradient> gradients() const override;

  // The batch over these rows, whose gradients are zero. Valid until the next put().
  [[nodiscard]] Result<Batch> batch_over(const data::Examples& batch);

 private:
  const data::DataShape shape_;
  torch::Tensor table_;
  std::size_t width_ = 0;
  std::vector<kit::TableColumns> columns_;
  std::vector<wire::PsTable> tables_;
  std::vector<ps::TableKeys> rows_;  // of the present batch
  KeyPositions positions_of_;
  std::vector<std::int64_t> positions_;
};

}  // namespace antdt::trainer
