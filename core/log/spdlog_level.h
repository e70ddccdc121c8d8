// Converts a log level to spdlog's, for the sources that set spdlog up.
#pragma once

#include <spdlog/common.h>

#include "core/log/log.h"

namespace antdt {

[[nodiscard]] inline spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace antdt
