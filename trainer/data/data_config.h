// The [data] part of a job's effective configuration, for one split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/data/dataset.h"

namespace antdt::data {

enum class ColumnKind { kLabel, kNumeric, kCategory, kIgnore };
struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kIgnore;
};

// Filled by parse_data_config; the defaults are those of the keys (core/schema/keys.h).
struct DataConfig {
  std::string format;                    // "criteo", "csv", "idx", "index", "none"; "lines"
  std::vector<std::string> paths;        // files of the split
  std::vector<std::string> label_paths;  // IDX: label files of the split
  std::uint64_t records = 0;             // format "index": number of records of the split

  bool index_beside = false;  // the data, for all hosts; otherwise in the user's cache

  bool quarantine = false;  // malformed rows are put aside instead of failing
  std::uint64_t quarantine_max = 0;

  bool vocabulary = false;  // otherwise hashing
  std::uint64_t hash_buckets = 0;
  std::uint32_t vocabulary_min_count = 0;

  char separator = 0;  // for CSV
  bool header = false;
  std::vector<Column> columns;
};

// The error (kUsage) names the key.
[[nodiscard]] Result<DataConfig> parse_data_config(const std::string& config_json, Split split);

[[nodiscard]] const char* name_of(Split split);

}  // namespace antdt::data
