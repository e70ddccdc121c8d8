#include "jobd/disk/event_log.h"

#include <nlohmann/json.hpp>

#include "core/log/log.h"

namespace antdt::jobd {
namespace {
constexpr std::size_t kKept = 1000;

// Text of others may be any bytes, and may begin inside a character.
std::string quoted(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

EventLog::EventLog(const std::string& path, DiskThread& disk)
    : disk_(disk), file_(std::make_shared<RotatingFile>(path, kMostBytes)) {}

std::string EventLog::add(double time_s, std::string_view kind, std::string_view text,
                          std::string_view extra_json) {
  std::string line =
      fmt::format(R"({{"time_s":{:.3f},"kind":{},"text":{})", time_s, quoted(kind), quoted(text));
  if (!extra_json.empty()) line += fmt::format(",{}", extra_json);
  line += "}";
  std::string lines = line + "\n";
  if (missing_ > 0) {
    lines.insert(0,
                 fmt::format(R"({{"time_s":{:.3f},"kind":"events-missing","text":"{} events )"
                             R"(before this one could not be written: the disk did not answer"}})"
                             "\n",
                             time_s, missing_));
  }
  write(std::move(lines));
  kept_.push_back(line);
  ++counts_[std::string(kind)];
  if (kept_.size() > kKept) {
    kept_.pop_front();
    ++first_;
  }
  return line;
}

void EventLog::write(std::string lines) {
  const bool taken = disk_.offer("writing events.jsonl", [file = file_, lines = std::move(lines)] {
    if (const Status written = file->append(lines); !written) {
      log_warn("{}", written.error().message);
    }
    return DiskThread::Then();
  });
  missing_ = taken ? 0 : missing_ + 1;
}

std::vector<std::string> EventLog::since(std::uint64_t from) const {
  const std::uint64_t skip = from > first_ ? from - first_ : 0;
  if (skip >= kept_.size()) return {};
  return {kept_.begin() + static_cast<std::ptrdiff_t>(skip), kept_.end()};
}

}  // namespace antdt::jobd
