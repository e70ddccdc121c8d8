// Log lines of a daemon (core/log/log.h), written by a thread of their own, so that a disk that
// does not answer blocks nobody. If there is no room for waiting lines, the newest are dropped, and
// the log says how many.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/result.h"

namespace antdt {

struct BackgroundLogOptions {
  std::string path;  // empty: standard error, which is not rotated
  LogLevel level = LogLevel::kInfo;
  std::uint64_t most_bytes = 64ULL << 20;  // size of PATH and PATH.1 together
};

class BackgroundLog {
 public:
  // From here until this object ends, log lines go to the file. The error says that the file cannot
  // be opened. If the disk does not answer within a second, that is not an error.
  [[nodiscard]] static Result<BackgroundLog> start(const std::string& program,
                                                   const BackgroundLogOptions& options,
                                                   const Clock& clock);
  BackgroundLog(BackgroundLog&&) noexcept;
  BackgroundLog& operator=(BackgroundLog&&) = delete;
  ~BackgroundLog();  // waits until all lines are written; if that may take forever, call end()
                     // first

  // Waits for at most `patience` until all lines are written; whether they are. To be called before
  // an abort.
  bool flush(Duration patience) const;
  // The same, and the thread ends. False if the disk does not answer, so that the process can only
  // be left by _exit.
  [[nodiscard]] bool end(Duration patience);

 private:
  class Writer;
  explicit BackgroundLog(std::shared_ptr<Writer> writer);
  std::shared_ptr<Writer> writer_;
};

}  // namespace antdt
