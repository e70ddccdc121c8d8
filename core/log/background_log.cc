#include "core/log/background_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>

#include "core/log/spdlog_level.h"
#include "core/os/rotating_file.h"
#include "core/threads/disk_thread.h"

namespace antdt {
namespace {

constexpr std::size_t kMostLines = 10'000;  // how many lines may wait for the disk

void write_to_standard_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

// The sink for lines, and the thread that writes them. Only the thread uses `file_`.
class BackgroundLog::Writer final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Writer(const BackgroundLogOptions& options, const Clock& clock) : thread_(clock, kMostLines) {
    if (!options.path.empty()) file_.emplace(options.path, options.most_bytes);
  }

  // Returns the error if the file cannot be opened, provided that is known within a second.
  Status try_to_open() {
    if (!file_) return {};
    const auto opened = std::make_shared<Status>();
    thread_.run("opening the log", [this, opened] {
      *opened = file_->append("");
      return DiskThread::Then();
    });
    return thread_.await_idle(std::chrono::seconds(1)) ? *opened : Status();
  }
  bool await_written(Duration patience) const { return thread_.await_idle(patience); }
  bool end(Duration patience) { return thread_.end(patience); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    const std::uint64_t dropped = thread_.refused();
    std::string line(formatted.data(), formatted.size());
    if (dropped > said_dropped_) {
      line.insert(0,
                  fmt::format("({} lines are missing here: the disk of this log did not answer)\n",
                              dropped - said_dropped_));
    }
    const bool taken = thread_.offer("writing the log", [this, line = std::move(line)] {
      if (!file_) {
        write_to_standard_error(line);
      } else {
        // there is nobody to whom an error could be reported
        [[maybe_unused]] const Status written = file_->append(line);
      }
      return DiskThread::Then();
    });
    if (taken) said_dropped_ = dropped;
  }
  void flush_() override {}

 private:
  std::optional<RotatingFile> file_;
  std::uint64_t said_dropped_ = 0;
  DiskThread thread_;  // the last member, because it uses the file
};

BackgroundLog::BackgroundLog(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}
BackgroundLog::BackgroundLog(BackgroundLog&&) noexcept = default;

Result<BackgroundLog> BackgroundLog::start(const std::string& program,
                                           const BackgroundLogOptions& options,
                                           const Clock& clock) {
  auto writer = std::make_shared<Writer>(options, clock);
  if (const Status opened = writer->try_to_open(); !opened) {
    return fail(opened.error().kind, "opening the log: {}", opened.error().message);
  }
  auto logger = std::make_shared<spdlog::logger>(program, writer);
  logger->set_level(spdlog_level(options.level));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %-7l %n[%P]: %v");
  spdlog::set_default_logger(std::move(logger));
  return BackgroundLog(std::move(writer));
}

// Lines that are logged after this, while the program ends, go to standard error.
BackgroundLog::~BackgroundLog() {
  if (writer_ == nullptr) return;
  if (const Status other = init_logging("antdt", ""); !other) spdlog::shutdown();
}

bool BackgroundLog::flush(Duration patience) const { return writer_->await_written(patience); }
bool BackgroundLog::end(Duration patience) { return writer_->end(patience); }

}  // namespace antdt
