// A model whose parameters are rows on parameter servers, however it is computed.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/engine.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::trainer {

// Keeps no parameters between two calls. One thread at a time.
class PsModel {
 public:
  virtual ~PsModel() = default;

  // The same on every worker of the job.
  [[nodiscard]] virtual const std::vector<wire::PsTable>& tables() const = 0;
  // Rows whose first values the servers cannot draw (dense parameters). Every worker puts the same
  // ones, and the first put counts.
  [[nodiscard]] virtual std::vector<ps::TableGradient> first_values() const = 0;

  // The rows that this batch needs, by rising table, each with rising keys.
  [[nodiscard]] virtual std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const = 0;

  struct Computed {
    std::vector<ps::TableGradient> gradients;  // for rows_of(batch), or some of them
    BatchSums sums;
  };
  // Computes the gradient of the sum of weighted losses. `values`: the rows of `rows`, one after
  // another, in its order; `rows` is rows_of(batch).
  [[nodiscard]] virtual Result<Computed> compute(const data::Examples& batch,
                                                 const std::vector<ps::TableKeys>& rows,
                                                 const std::vector<std::vector<float>>& values) = 0;
  [[nodiscard]] virtual Result<wire::EvalPartial> evaluate(
      const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
      const std::vector<std::vector<float>>& values) = 0;
};

}  // namespace antdt::trainer
