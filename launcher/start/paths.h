// The paths of a job.toml, found on this machine.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::launcher {

// `path` made absolute and free of "." and "..": "~" is the home directory, a
// relative path is below `base`. Nothing need be there.
[[nodiscard]] std::string absolute_path(const std::string& path, const std::string& base);

// The readable files that `pattern` (a path or a glob) stands for, sorted. No
// match, a directory or an unreadable file is an error (kUsage) that names it.
[[nodiscard]] Result<std::vector<std::string>> expand_files(const std::string& pattern,
                                                            const std::string& base);

// The executable `name` as an absolute path: one with a slash is taken relative
// to `base`, another is looked for in `beside`, then in PATH.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::string& beside,
                                               const std::string& base);
// The directory of the running program.
[[nodiscard]] std::string program_directory();

}  // namespace antdt::launcher
