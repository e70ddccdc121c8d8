// Resolves the paths of a job.toml on this machine.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

// Makes `path` absolute and removes "." and "..". "~" is the home directory, and a relative path is
// below `base`. The path need not exist.
[[nodiscard]] std::string absolute_path(const std::string& path, const std::string& base);

// The readable files that match `pattern` (a path or a glob), sorted. No match, a directory or an
// unreadable file is an error (kUsage) that names it.
[[nodiscard]] Result<std::vector<std::string>> expand_files(const std::string& pattern,
                                                            const std::string& base);

// The executable `name` as an absolute path: a name with a slash is relative to `base`; another is
// looked for in `beside`, then in PATH.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::string& beside,
                                               const std::string& base);
// The directory of the running program.
[[nodiscard]] std::string program_directory();

}  // namespace antdt::launcher
