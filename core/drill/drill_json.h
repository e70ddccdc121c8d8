// Reads [[inject]] and [emulated] from job.json. The launcher wrote it; all other parts read it
// with these functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/drill/emulation.h"
#include "core/drill/injection.h"
#include "core/result.h"

namespace antdt::drill {

// Reads "inject" and "emulated" of a job's effective configuration; missing values have their
// defaults. The error (kUsage) says what cannot be read.
[[nodiscard]] Result<std::vector<Rule>> parse_rules(const std::string& config_json);
[[nodiscard]] Result<Emulation> parse_emulation(const std::string& config_json);
// The seed of all randomness: job.seed.
[[nodiscard]] Result<std::uint64_t> parse_seed(const std::string& config_json);

// Reads the trace files that the rules name. The error (kUsage) names the file.
[[nodiscard]] Result<Traces> read_traces(const std::vector<Rule>& rules);

}  // namespace antdt::drill
