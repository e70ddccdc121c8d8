// [[inject]] and [emulated] as job.json has them, for everybody but the launcher,
// which wrote them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/drill/emulation.h"
#include "core/drill/injection.h"
#include "core/result.h"

namespace antdt::drill {

// "inject" and "emulated" of a job's effective configuration; what is not there has
// its default. The error (kUsage) says what cannot be read.
[[nodiscard]] Result<std::vector<Rule>> parse_rules(const std::string& config_json);
[[nodiscard]] Result<Emulation> parse_emulation(const std::string& config_json);
// What everything random follows from: job.seed.
[[nodiscard]] Result<std::uint64_t> parse_seed(const std::string& config_json);

// Reads the traces that rules name. The error (kUsage) names the file.
[[nodiscard]] Result<Traces> read_traces(const std::vector<Rule>& rules);

}  // namespace antdt::drill
