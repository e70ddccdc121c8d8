#include "core/log/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <tuple>

#include "core/log/spdlog_level.h"

namespace antdt {

Status init_logging(const std::string& program, const std::string& path, LogLevel level) {
  try {
    spdlog::sink_ptr sink;
    if (path.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    }
    auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
    logger->set_level(spdlog_level(level));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %-7l %n[%P]: %v");
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
    return {};
  } catch (const std::exception& error) {
    return fail(ErrorKind::kIo, "opening the log {}: {}", path.empty() ? "(stderr)" : path,
                error.what());
  }
}

Result<LogLevel> parse_log_level(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warn") return LogLevel::kWarn;
  if (text == "error") return LogLevel::kError;
  return fail(ErrorKind::kUsage, "'{}' is no log level: debug, info, warn or error", text);
}

namespace {

// The library's own first logger, recognised by its empty name, writes to standard output, which
// belongs to the output of commands. Two threads may both be the first to log, and a replaced
// logger is destroyed, so only one of them replaces it.
void replace_first_logger() {
  static std::once_flag first;
  std::call_once(first, [] {
    if (spdlog::default_logger_raw()->name().empty()) {
      std::ignore = init_logging("antdt", "", LogLevel::kInfo);
    }
  });
}

}  // namespace

bool log_enabled(LogLevel level) {
  replace_first_logger();
  return spdlog::should_log(spdlog_level(level));
}

void log_text(LogLevel level, std::string_view text) {
  replace_first_logger();
  spdlog::log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace antdt
