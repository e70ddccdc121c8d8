// Log lines of a daemon (core/log/log.h), written by a thread of their own: a log whose disk stands
// still holds nobody up. Of lines that find no room meanwhile the newest are dropped, and the log
// says how many.
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
  std::uint64_t most_bytes = 64ULL << 20;  // of PATH and PATH.1 together
};

class BackgroundLog {
 public:
  // From here on until its end log lines go there. An error: the file cannot be opened. One that
  // does not answer within a second is no error.
  [[nodiscard]] static Result<BackgroundLog> start(const std::string& program,
                                                   const BackgroundLogOptions& options,
                                                   const Clock& clock);
  BackgroundLog(BackgroundLog&&) noexcept;
  BackgroundLog& operator=(BackgroundLog&&) = delete;
  ~BackgroundLog();  // waits for what was logged; where that may take for ever, end() comes first

  // Until all that was logged is written, at most so long; whether it is. Before an abort.
  bool flush(Duration patience) const;
  // The same, and the thread ends. False: the disk does not answer, and the process can only be
  // left by _exit.
  [[nodiscard]] bool end(Duration patience);

 private:
  class Writer;
  explicit BackgroundLog(std::shared_ptr<Writer> writer);
  std::shared_ptr<Writer> writer_;
};

}  // namespace antdt
