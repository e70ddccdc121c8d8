// Reads what the page of a run shows from the run's directory.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "report/bill.h"
#include "report/page.h"

namespace antdt::cli {

// A missing part (of an older run, or one that goes on) is left empty; a history or summary that
// cannot be read is an error.
[[nodiscard]] Result<page::RunView> read_run_view(const std::string& run_dir,
                                                  const std::string& heading);

// The bill of a run. Empty if the run has not ended, because its summary is missing then.
[[nodiscard]] Result<std::optional<report::Bill>> read_bill(const std::string& run_dir);

}  // namespace antdt::cli
