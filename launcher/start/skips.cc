#include "launcher/start/skips.h"

#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"

namespace antdt::launcher {

Result<std::vector<Skip>> read_skips(const std::string& run_dir) {
  const std::string path = run_dir + "/skips.json";
  std::vector<Skip> skips;
  if (::access(path.c_str(), F_OK) != 0) return skips;
  ANTDT_TRY(const std::string text, read_file(path));
  try {
    for (const auto& one : nlohmann::json::parse(text)) {
      skips.push_back({one.at("epoch"), one.at("from"), one.at("to"), one.at("reason"),
                       one.at("who"), one.at("lineage")});
    }
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "{} cannot be read: {}", path, e.what());
  }
  return skips;
}

Status write_skips(const std::string& run_dir, const std::vector<Skip>& skips) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Skip& s : skips) {
    out.push_back({{"epoch", s.epoch},
                   {"from", s.from},
                   {"to", s.to},
                   {"reason", s.reason},
                   {"who", s.who},
                   {"lineage", s.lineage}});
  }
  return write_file_atomic(run_dir + "/skips.json", out.dump(2) + "\n", 0600);
}

Result<SkipRange> parse_skip_range(const std::string& text) {
  SkipRange range;
  const char* const end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, range.from);
  if (from.ec == std::errc() && from.ptr != end && *from.ptr == ':') {
    const auto to = std::from_chars(from.ptr + 1, end, range.to);
    if (to.ec == std::errc() && to.ptr == end && range.from < range.to) return range;
  }
  return fail(ErrorKind::kUsage,
              "'{}' is no range of positions: FROM:TO with FROM below TO, such as 1200:1300", text);
}

}  // namespace antdt::launcher
