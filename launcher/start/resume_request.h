// RUN/resume.request: by this file, `antdt run --resume` tells the next job daemon of the run to go
// on, and who asked. It is for one incarnation, which removes it after journaling it.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace antdt::launcher {

struct ResumeRequest {
  std::string who;
  // The journal was put aside, and the new one begins with the newest complete checkpoint.
  bool from_checkpoint = false;
  std::string changes = {};  // changes of the configuration, in words; empty: none
};

[[nodiscard]] Status write_resume_request(const std::string& run_dir, const ResumeRequest& request);
// Empty if there is no file; kCorrupt if it cannot be read.
[[nodiscard]] Result<std::optional<ResumeRequest>> read_resume_request(const std::string& run_dir);
[[nodiscard]] Status remove_resume_request(const std::string& run_dir);

}  // namespace antdt::launcher
