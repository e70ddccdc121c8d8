#include "trainer/data/data_config.h"

#include <nlohmann/json.hpp>

#include "core/json_integer.h"

namespace antdt::data {
namespace {

using nlohmann::json;

Result<ColumnKind> parse_kind(const std::string& column, const std::string& kind) {
  if (kind == "label") return ColumnKind::kLabel;
  if (kind == "numeric") return ColumnKind::kNumeric;
  if (kind == "category") return ColumnKind::kCategory;
  if (kind == "ignore") return ColumnKind::kIgnore;
  return fail(ErrorKind::kUsage,
              "data.columns: column '{}' has kind '{}'; it must be \"label\", \"numeric\", "
              "\"category\" or \"ignore\"",
              column, kind);
}

Status read_columns(const json& data, DataConfig& config) {
  for (const json& column : data.value("columns", json::array())) {
    const std::string name = column.at("name");
    ANTDT_TRY(const ColumnKind kind, parse_kind(name, column.at("kind")));
    config.columns.push_back({name, kind});
  }
  const auto labels = std::count_if(config.columns.begin(), config.columns.end(),
                                    [](const Column& c) { return c.kind == ColumnKind::kLabel; });
  if (config.format == "csv" && labels != 1) {
    return fail(
        ErrorKind::kUsage,
        "data.columns has {} columns of kind \"label\"; format \"csv\" needs the columns of "
        "the file in order, one of them the label",
        labels);
  }
  return {};
}

Result<DataConfig> read(const json& data, Split split) {
  const bool train = split == Split::kTrain;
  DataConfig config;
  config.format = data.value("format", "none");
  config.paths = data.value(train ? "paths" : "eval_paths", config.paths);
  config.label_paths = data.value(train ? "labels" : "eval_labels", config.label_paths);
  if (train) config.records = json_integer(data, "records", config.records);
  if (const json bad = data.value("on_bad_record", json::object()); !bad.empty()) {
    config.quarantine = bad.value("action", "fail") == "quarantine";
    config.quarantine_max = json_integer(bad, "max", config.quarantine_max);
  }
  config.vocabulary = data.value("encode", "hash") == "vocabulary";
  config.hash_buckets = json_integer(data, "hash_buckets", config.hash_buckets);
  config.vocabulary_min_count =
      json_integer(data, "vocabulary_min_count", config.vocabulary_min_count);
  const std::string separator = data.value("separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n") {
    return fail(ErrorKind::kUsage, "data.separator is '{}'; it must be one character", separator);
  }
  config.separator = separator[0];
  config.header = data.value("header", config.header);
  if (config.hash_buckets == 0) {
    return fail(ErrorKind::kUsage, "data.hash_buckets is 0; it must be at least 1");
  }
  ANTDT_RETURN_IF_ERROR(read_columns(data, config));
  return config;
}

}  // namespace

Result<DataConfig> parse_data_config(const std::string& config_json, Split split) {
  try {
    const json config = json::parse(config_json);
    return read(config.value("data", json::object()), split);
  } catch (const json::exception& e) {
    return fail(ErrorKind::kUsage, "cannot read [data] of the job's configuration: {}", e.what());
  }
}

}  // namespace antdt::data
