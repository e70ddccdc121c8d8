#include "trainer/data/data_config.h"

#include <algorithm>
#include <utility>

#include "core/schema/job_reader.h"

namespace antdt::data {
namespace {

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

Status check_columns(const DataConfig& config) {
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

Result<std::vector<Column>> read_columns(schema::JobReader& job) {
  std::vector<std::pair<std::string, std::string>> written;
  job.each("data.columns", [&] {
    auto& [name, kind] = written.emplace_back();
    job.read("data.columns[].name", name);
    job.read("data.columns[].kind", kind);
  });
  ANTDT_RETURN_IF_ERROR(job.status());
  std::vector<Column> columns;
  for (const auto& [name, text] : written) {
    ANTDT_TRY(const ColumnKind kind, parse_kind(name, text));
    columns.push_back({name, kind});
  }
  return columns;
}

}  // namespace

const char* name_of(Split split) { return split == Split::kTrain ? "train" : "eval"; }

Result<DataConfig> parse_data_config(const std::string& config_json, Split split) {
  const bool train = split == Split::kTrain;
  DataConfig config;
  std::string bad_record;
  std::string index;
  std::string encode;
  std::string separator;
  schema::JobReader job(config_json);
  job.read("data.format", config.format);
  if (config.format.empty()) config.format = "none";
  job.read(train ? "data.paths" : "data.eval_paths", config.paths);
  job.read(train ? "data.labels" : "data.eval_labels", config.label_paths);
  job.read(train ? "data.records" : "data.eval_records", config.records);
  job.read("data.index", index);
  config.index_beside = index == "beside";
  job.read("data.on_bad_record.action", bad_record);
  job.read("data.on_bad_record.max", config.quarantine_max);
  config.quarantine = bad_record == "quarantine";
  job.read("data.encode", encode);
  config.vocabulary = encode == "vocabulary";
  job.read("data.hash_buckets", config.hash_buckets);
  job.read("data.vocabulary_min_count", config.vocabulary_min_count);
  job.read("data.separator", separator);
  job.read("data.header", config.header);
  ANTDT_RETURN_IF_ERROR(job.status());
  if (separator.size() != 1 || separator == "\"" || separator == "\n") {
    return fail(ErrorKind::kUsage, "data.separator is '{}'; it must be one character", separator);
  }
  config.separator = separator[0];
  if (config.hash_buckets == 0) {
    return fail(ErrorKind::kUsage, "data.hash_buckets is 0; it must be at least 1");
  }
  ANTDT_TRY(config.columns, read_columns(job));
  ANTDT_RETURN_IF_ERROR(check_columns(config));
  return config;
}

}  // namespace antdt::data
