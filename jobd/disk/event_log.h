// What happened, for people and tools: RUN/events.jsonl, one JSON object a
// line: {"time_s", "kind", "text", …}. The newest are kept for the live view. The file is
// written by a thread, in their order, and has a bound: events.jsonl.1 has the lines before
// those of events.jsonl, and what was before them is gone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/disk_thread.h"
#include "core/os/rotating_file.h"

namespace antdt::jobd {

class EventLog {
 public:
  static constexpr std::uint64_t kMostBytes = 64ULL << 20;  // of both files

  // Appends to `path`; a file that cannot be written only costs the file.
  EventLog(const std::string& path, DiskThread& disk);

  // `extra_json`: more members of the object, such as R"("target":"w3")", or "".
  void add(double time_s, std::string_view kind, std::string_view text,
           std::string_view extra_json = "");

  // The events from number `from` on that are still kept, and the number after
  // the last.
  [[nodiscard]] std::vector<std::string> since(std::uint64_t from) const;
  [[nodiscard]] std::uint64_t next() const { return first_ + kept_.size(); }

 private:
  void write(std::string lines);

  DiskThread& disk_;
  std::shared_ptr<RotatingFile> file_;  // the thread's
  std::uint64_t missing_ = 0;           // lines that found no room to wait, since one that did
  std::deque<std::string> kept_;
  std::uint64_t first_ = 0;  // number of kept_.front()
};

}  // namespace antdt::jobd
