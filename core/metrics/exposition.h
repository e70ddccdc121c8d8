// Prometheus's text format, version 0.0.4.
#pragma once

#include <string>
#include <string_view>

#include "core/metrics/metric.h"

namespace antdt::metrics {

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

// More bytes of a label's value are cut off.
inline constexpr std::size_t kMostOfALabel = 200;

// Families without samples are left out. Text of others may be any bytes: what is not UTF-8 is
// replaced by U+FFFD, because a scrape with one such byte would be refused as a whole.
[[nodiscard]] std::string to_text(const Families& families);

}  // namespace antdt::metrics
