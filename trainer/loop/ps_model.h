// A model whose parameters are rows on parameter servers, however it is computed.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/engine.h"
#include "trainer/ps/rows/tables.h"

namespace antdt::trainer {

// The dense parameters of a model as a worker keeps them itself (trainer.sync = "shadow-…"): a
// replica, which compute() updates by the gradient of each batch, and whose centre the servers
// hold. Without I/O; one thread at a time.
class DenseReplica {
 public:
  virtual ~DenseReplica() = default;

  // The rows of the centre, of one table behind all those of rows_of().
  [[nodiscard]] virtual const ps::TableKeys& centre_rows() const = 0;
  // Becomes the centre; the optimizer begins anew. `centre`: the values of these rows, one after
  // another, as for the next function.
  virtual void begin(std::span<const float> centre) = 0;
  // Moves towards the centre by a share of the distance. Returns what is to be pushed to the
  // centre's rows: what the replica has moved back, if their rule is "sum", or the replica as it is
  // now, if it is "mean".
  [[nodiscard]] virtual ps::TableGradient exchange(std::span<const float> centre) = 0;
  // Factor of the job's learning rate, from the next batch on.
  virtual void set_rate(double factor) = 0;
};

// Keeps no parameters between two calls, except in its replica. One thread at a time.
class PsModel {
 public:
  virtual ~PsModel() = default;

  // The same on every worker of the job.
  [[nodiscard]] virtual const std::vector<wire::PsTable>& tables() const = 0;
  // Rows whose first values the servers cannot draw (dense parameters). Every worker puts the same
  // ones, and the first put counts.
  [[nodiscard]] virtual std::vector<ps::TableGradient> first_values() const = 0;

  // Null: this model keeps no dense parameters. Otherwise they are in no rows_of(), compute() needs
  // no values of them and returns no gradient of them, and evaluate() is given the centre's rows
  // behind the others.
  [[nodiscard]] virtual DenseReplica* replica() { return nullptr; }

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
