// Partial evaluations, merged by addition, and what they say.
#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "core/wire/shard_messages.h"

namespace antdt::shard_server {

// An error names what a peer's partial gets wrong: bins that do not rise or do
// not exist, lists of different lengths, a loss that is no number.
[[nodiscard]] Status check_partial(const wire::EvalPartial& partial);

// Adds `part` (which passes check_partial) to `sum`. O(bins of both).
void merge(wire::EvalPartial& sum, const wire::EvalPartial& part);

struct EvalMetrics {
  std::uint64_t records = 0;
  // Area under the ROC curve from the histogram: a pair of one bin counts half
  // (Hanley and McNeil, "The Meaning and Use of the Area under a ROC Curve",
  // Radiology 1982). Nothing without both classes.
  std::optional<double> auc;
  std::optional<double> log_loss;  // nats a record; nothing without records
  std::optional<double> accuracy;
};
[[nodiscard]] EvalMetrics metrics(const wire::EvalPartial& sum);

}  // namespace antdt::shard_server
