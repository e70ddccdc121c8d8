// What happened, for people and tools: RUN/events.jsonl, one JSON object a
// line: {"time_s", "kind", "text", …}. The newest are kept for the live view.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace antdt::jobd {

class EventLog {
 public:
  // Appends to `path`; a file that cannot be opened only costs the file.
  explicit EventLog(const std::string& path);

  // `extra_json`: more members of the object, such as R"("target":"w3")", or "".
  void add(double time_s, std::string_view kind, std::string_view text,
           std::string_view extra_json = "");

  // The events from number `from` on that are still kept, and the number after
  // the last.
  [[nodiscard]] std::vector<std::string> since(std::uint64_t from) const;
  [[nodiscard]] std::uint64_t next() const { return first_ + kept_.size(); }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::deque<std::string> kept_;
  std::uint64_t first_ = 0;  // number of kept_.front()
};

}  // namespace antdt::jobd
