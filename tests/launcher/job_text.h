// A small job.toml to change in tests.
#pragma once

#include <string>
#include <vector>

#include "launcher/config/job_config.h"

namespace antdt::launcher {

// 11 lines; needs no file.
inline const std::string kJob = R"(schema = 1
[job]
name = "ctr"
epochs = 2
[roles.worker]
count = 4
[data]
format = "index"
records = 1000
[batch]
global = 512
)";

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// The same with two servers; 15 lines.
inline const std::string kServersJob = kJob + R"([trainer]
sync = "ps-bsp"
[roles.server]
count = 2
)";

// Every problem that load_text finds, or "" when there is none.
inline std::string problems_of(const std::string& text,
                               const std::vector<std::string>& overrides = {}) {
  const auto config = load_text(text, "job.toml", overrides);
  return config ? "" : config.error().message;
}

}  // namespace antdt::launcher
