// antdt run --resume: a run that has ended or was broken off goes on.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

struct ResumeOptions {
  std::string run;
  bool from_checkpoint = false;  // the journal is put aside
  std::vector<std::string> set;  // KEY=VALUE: settings that are to change (resume_settings.h)
  bool json = false;
  bool detach = false;
};

// Checks that the run can go on (it does not run, is not done, its journal is
// whole, its data is what it began with), says which checkpoint it goes on from
// and which ones are damaged, then starts a private agent and the job daemon on
// its directory and shows it as `antdt run` does. The exit code.
//
// `from_checkpoint`: without its journal, which stays under another name; what
// the newest whole checkpoint does not know is trained again.
[[nodiscard]] Result<int> resume(const ResumeOptions& options);

}  // namespace antdt::cli
