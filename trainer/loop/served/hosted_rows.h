// The embedding rows of an engine that does not keep them: they are on parameter servers
// (docs/synchronisation/hybrid.md), and the engine has those of one batch at a time.
#pragma once

#include <vector>

#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/data/dataset.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::trainer {

// Part of an engine, used on its thread.
class HostedRows {
 public:
  virtual ~HostedRows() = default;

  // The same on every member of the job.
  [[nodiscard]] virtual const std::vector<wire::PsTable>& tables() const = 0;
  // The rows that this batch needs, by rising table, each with rising keys.
  [[nodiscard]] virtual std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const = 0;
  // The values of rows_of() of the batch that is computed or evaluated next, one row after another.
  [[nodiscard]] virtual Status put(std::vector<ps::TableKeys> rows,
                                   const std::vector<std::vector<float>>& values) = 0;
  // The gradients that the last compute() left for these rows.
  [[nodiscard]] virtual std::vector<ps::TableGradient> gradients() const = 0;
};

}  // namespace antdt::trainer
