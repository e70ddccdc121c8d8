// TensorBoard's event files, as far as scalars need it: records of protocol-buffer messages, each
// with its length and checksums (CRC-32C), as TensorFlow writes them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace antdt::metrics {

// Values at one step.
struct ScalarPoint {
  double unix_seconds = 0;
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;  // tag, such as "train/loss", and value
};

// With what a file begins.
[[nodiscard]] std::string event_file_head(double unix_seconds);
[[nodiscard]] std::string event_record(const ScalarPoint& point);
// The training goes on before `step`: readers forget what earlier files say of it and of later
// steps.
[[nodiscard]] std::string event_restart(double unix_seconds, std::int64_t step);

// CRC-32C (Castagnoli).
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

}  // namespace antdt::metrics
