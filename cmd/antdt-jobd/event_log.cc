#include "cmd/antdt-jobd/event_log.h"

#include <nlohmann/json.hpp>

#include "core/log.h"

namespace antdt::jobd {
namespace {
constexpr std::size_t kKept = 1000;
}

EventLog::EventLog(const std::string& path) : file_(std::fopen(path.c_str(), "ae")) {
  if (file_ == nullptr) log_warn("{} cannot be opened for appending", path);
}

void EventLog::add(double time_s, std::string_view kind, std::string_view text,
                   std::string_view extra_json) {
  std::string line = fmt::format(R"({{"time_s":{:.3f},"kind":{},"text":{})", time_s,
                                 nlohmann::json(kind).dump(), nlohmann::json(text).dump());
  if (!extra_json.empty()) line += fmt::format(",{}", extra_json);
  line += "}";
  if (file_ != nullptr) {
    std::fprintf(file_.get(), "%s\n", line.c_str());
    std::fflush(file_.get());
  }
  kept_.push_back(std::move(line));
  if (kept_.size() > kKept) {
    kept_.pop_front();
    ++first_;
  }
}

std::vector<std::string> EventLog::since(std::uint64_t from) const {
  const std::uint64_t skip = from > first_ ? from - first_ : 0;
  if (skip >= kept_.size()) return {};
  return {kept_.begin() + static_cast<std::ptrdiff_t>(skip), kept_.end()};
}

}  // namespace antdt::jobd
