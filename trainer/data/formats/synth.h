// Click logs drawn from a known model, so that results can be judged.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace antdt::data {

struct SynthReport {
  std::string train_file, eval_file;
  std::uint64_t train_rows = 0, eval_rows = 0;
  double best_auc = 0;       // of the true probabilities on the evaluation rows
  double best_log_loss = 0;  // likewise: no model can beat it except by luck
  double base_rate = 0;      // share of clicks in the training rows
};

// Writes out_dir/train.tsv (`rows` rows) and out_dir/eval.tsv (a quarter of them, at least 1000) in
// Criteo's format; out_dir is made if it is missing. The same seed gives the same bytes.
[[nodiscard]] Result<SynthReport> synthesize_criteo(std::uint64_t rows, std::uint64_t seed,
                                                    const std::string& out_dir);

}  // namespace antdt::data
