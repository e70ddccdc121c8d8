// Partial evaluations: how they are merged, and the metrics that follow from them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "core/wire/shard_messages.h"

namespace antdt::shard_server {

// Checks a partial evaluation that a peer sent. The error names the fault: bins that do not rise or
// do not exist, lists of different lengths, or named sums that cannot be. A loss that is infinite
// or not a number is what a model that has diverged gives, and makes the mean such.
[[nodiscard]] Status check_partial(const wire::EvalPartial& partial);

// Adds `part` (which passes check_partial) to `sum`. O(bins of both).
void merge(wire::EvalPartial& sum, const wire::EvalPartial& part);

struct EvalMetrics {
  std::uint64_t records = 0;
  // Area under the ROC curve, from the histogram: a pair within one bin counts half (Hanley and
  // McNeil, "The Meaning and Use of the Area under a ROC Curve", Radiology 1982). Empty unless both
  // classes occur.
  std::optional<double> auc;
  std::optional<double> log_loss;  // in nats per record, maybe not finite; empty without records
  std::optional<double> accuracy;
  wire::NamedSums named;  // empty without records
};
[[nodiscard]] EvalMetrics metrics(const wire::EvalPartial& sum);

}  // namespace antdt::shard_server
