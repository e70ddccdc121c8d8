// Log lines for people: time, level, program, text. Output only; no decision depends on it. main
// sets it up once; before that, lines go to standard error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace antdt {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Lines go to the file `path` (appended to), or to standard error if it is empty.
[[nodiscard]] Status init_logging(const std::string& program, const std::string& path,
                                  LogLevel level = LogLevel::kInfo);
// "debug", "info", "warn", "error".
[[nodiscard]] Result<LogLevel> parse_log_level(std::string_view text);

[[nodiscard]] bool log_enabled(LogLevel level);
void log_text(LogLevel level, std::string_view text);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kDebug)) return;
  log_text(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kInfo)) return;
  log_text(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kWarn)) return;
  log_text(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kError)) return;
  log_text(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace antdt
