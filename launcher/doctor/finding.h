// One thing that `antdt doctor` says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/names.h"

namespace antdt::launcher {

enum class Level : std::uint8_t {
  kOk,
  kNote,     // costs something, or is worth knowing
  kWarning,  // will probably cost time, or fail under load
  kError,    // will fail
};
constexpr auto names_of(Level) { return names("ok", "note", "warning", "error"); }

struct Finding {
  Level level = Level::kOk;
  std::string subject;  // the host, "hosta -> hostb", or "this host"
  std::string check;    // "open files"
  std::string looked_at;
  std::string found;
  std::string why;     // why it matters
  std::string advice;  // what to do; "" if nothing
};
using Findings = std::vector<Finding>;

}  // namespace antdt::launcher
