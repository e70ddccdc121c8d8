#include "core/os/port_range.h"

#include <charconv>

namespace antdt {

Result<PortRange> parse_port_range(const std::string& text) {
  PortRange range;
  if (text.empty()) return range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const bool dash = first.ec == std::errc() && first.ptr != end && *first.ptr == '-';
  const auto last = dash ? std::from_chars(first.ptr + 1, end, range.last) : first;
  if (dash && last.ec == std::errc() && last.ptr == end && range.first > 0 &&
      range.first <= range.last) {
    return range;
  }
  return fail(ErrorKind::kUsage, "cluster.ports: '{}' must be \"first-last\"", text);
}

}  // namespace antdt
