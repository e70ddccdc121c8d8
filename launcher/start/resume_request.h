// RUN/resume.request: `antdt run --resume` tells the next job daemon of the run
// that it is to go on, and who asked. For one incarnation, which removes it
// once it has written it down.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace antdt::launcher {

struct ResumeRequest {
  std::string who;
  // The journal was put aside; the new one begins with the newest whole checkpoint.
  bool from_checkpoint = false;
  std::string changes = {};  // of the configuration, in words; empty: none
};

[[nodiscard]] Status write_resume_request(const std::string& run_dir, const ResumeRequest& request);
// Nothing where there is none; kCorrupt for one that cannot be read.
[[nodiscard]] Result<std::optional<ResumeRequest>> read_resume_request(const std::string& run_dir);
[[nodiscard]] Status remove_resume_request(const std::string& run_dir);

}  // namespace antdt::launcher
