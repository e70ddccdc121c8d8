// What data are pinned to which domains (data.pin = "domain"), as `antdt run` found it: a part of
// RUN/data.json, and of the configuration that workers are given ("pins"). Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt {

// Consecutive records of one domain.
struct PinnedPart {
  std::string split;  // "train" or "eval"
  std::string domain;
  std::uint64_t records = 0;
  std::vector<std::string> files = {};   // in order; none with format index
  std::vector<std::string> labels = {};  // format idx: the file of labels of each
  bool operator==(const PinnedPart&) const = default;
};

struct PinnedData {
  std::vector<std::string> domains;  // that have records; the ledger numbers them in this order
  std::uint32_t classes = 0;         // of the labels of all files; 0: there are no files
  std::vector<PinnedPart> parts;     // in the order of records
  bool operator==(const PinnedData&) const = default;

  [[nodiscard]] bool empty() const { return parts.empty(); }
  // Whether the records of this split are pinned. If not, every worker may be given any of them.
  [[nodiscard]] bool has(std::string_view split) const;
  // How many records of the split are pinned to the domain.
  [[nodiscard]] std::uint64_t records_of(std::string_view split, std::string_view domain) const;
};

[[nodiscard]] nlohmann::ordered_json to_json(const PinnedData& pins);
// Empty for null. Throws nlohmann::json::exception if it is something else.
[[nodiscard]] PinnedData pinned_data_of(const nlohmann::json& json);
// Those of a configuration that a worker was given. The error (kUsage) says what cannot be read.
[[nodiscard]] Result<PinnedData> parse_pinned_data(const std::string& config_json);

}  // namespace antdt
