// The index of data that are pinned to domains: one for each domain that this host has, and what a
// description tells of the others.
#pragma once

#include <string>

#include "core/domain/pinned_data.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "launcher/config/job_config.h"
#include "trainer/data/dataset.h"

namespace antdt::cli {

struct PinnedIndex {
  data::DataSummary train, eval;  // of all domains
  PinnedData pins;
};
// Builds the indexes, unless they exist. The error (kUsage) names the domain and says how to mend
// it: labels that are counted in another way than in another domain, or a description that does not
// fit.
[[nodiscard]] Result<PinnedIndex> index_pinned(const launcher::JobConfig& config);

// Whether the records are pinned as they were when the run began; more of them, also of new
// domains, may have been added behind.
[[nodiscard]] Status check_pins_kept(const PinnedData& before, const PinnedData& now);

}  // namespace antdt::cli
