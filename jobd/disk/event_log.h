// The events of a run, for people and tools: RUN/events.jsonl, one JSON object in each line:
// {"time_s", "kind", "text", …}. The newest are kept in memory for the live view. A thread writes
// the file in the order of the events. The file is bounded: events.jsonl.1 has the lines before
// those of events.jsonl, and older lines are gone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/rotating_file.h"
#include "core/threads/disk_thread.h"

namespace antdt::jobd {

class EventLog {
 public:
  static constexpr std::uint64_t kMostBytes = 64ULL << 20;  // of both files together

  // Appends to `path`. If the file cannot be written, only the file is lost.
  EventLog(const std::string& path, DiskThread& disk);

  // `extra_json`: further members of the object, such as R"("target":"w3")", or "". Returns the
  // event as it is written.
  std::string add(double time_s, std::string_view kind, std::string_view text,
                  std::string_view extra_json = "");

  // The events from number `from` on that are still kept, and the number of the next event.
  [[nodiscard]] std::vector<std::string> since(std::uint64_t from) const;
  [[nodiscard]] std::uint64_t next() const { return first_ + kept_.size(); }
  // How many there were of each kind; kinds are constants of the program.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  void write(std::string lines);

  DiskThread& disk_;
  std::shared_ptr<RotatingFile> file_;  // used by the thread
  // lines that were dropped for lack of room since the last one that was not
  std::uint64_t missing_ = 0;
  std::deque<std::string> kept_;
  std::uint64_t first_ = 0;  // number of kept_.front()
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace antdt::jobd
