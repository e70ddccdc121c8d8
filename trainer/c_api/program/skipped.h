// Which records the program could not use: RUN_DIR/skipped-<worker>.jsonl, one JSON object a line
// ("record", "phase", "epoch", "reason"). A record that is trained again after a change of
// membership may be there again.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "core/result.h"

namespace antdt::capi {

// As it is kept and sent: valid UTF-8, and no longer than the wire takes. NULL: none was given.
[[nodiscard]] std::string kept_reason(const char* reason);

class Skipped {
 public:
  // Without a run directory, lines go to the log.
  Skipped(const std::string& run_dir, const std::string& worker);
  [[nodiscard]] Status add(std::uint64_t record, std::uint64_t phase, std::uint64_t epoch,
                           const std::string& reason);

 private:
  const std::string path_;  // empty: there is none
  std::mutex mutex_;
};

}  // namespace antdt::capi
