#include "trainer/data/dataset.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/os/runtime_dir.h"
#include "trainer/data/data_config.h"
#include "trainer/data/formats/idx.h"
#include "trainer/data/index/index_build.h"
#include "trainer/data/pinned_reader.h"
#include "trainer/data/text_reader.h"

namespace antdt::data {
namespace {

// Format "index": record i is the number i, as its only id, with label 1.
class NumbersReader final : public RecordReader {
 public:
  explicit NumbersReader(std::uint64_t records) : records_(records) {
    shape_.id_width = 1;
    shape_.id_rows = records;
    shape_.classes = 1;
  }
  const DataShape& shape() const override { return shape_; }
  std::uint64_t records() const override { return records_; }
  Status read(std::span<const std::uint64_t> record_numbers, Examples& out) override {
    out.clear();
    for (const std::uint64_t record : record_numbers) {
      if (record >= records_) {
        return fail(ErrorKind::kCorrupt, "there is no record {}: data.records is {}", record,
                    records_);
      }
    }
    out.count = record_numbers.size();
    out.ids.assign(record_numbers.begin(), record_numbers.end());
    out.labels.assign(out.count, 1.0F);
    return {};
  }

 private:
  std::uint64_t records_;
  DataShape shape_;
};

bool has_files(const DataConfig& config) {
  return config.format != "index" && config.format != "none" && !config.paths.empty();
}

// The index of a split, and that of the training data if the split depends on it.
struct Indexes {
  std::optional<Index> train;  // set for the split kEval, if there is one
  std::optional<Index> own;    // empty for a split without files
};

// `pins`: the training data may be elsewhere in part, so each split stands by itself.
Result<Indexes> open_indexes(const std::string& config_json, const DataConfig& config, Split split,
                             const std::string& cache_dir, const PinnedData& pins,
                             Opening& opening) {
  Indexes indexes;
  if (!has_files(config)) return indexes;
  std::string directory = cache_dir;
  if (directory.empty()) {
    ANTDT_TRY(directory, default_cache_dir());
  }
  if (config.format != "criteo" && config.format != "csv" && config.format != "idx") {
    return fail(ErrorKind::kUsage,
                "data.format is '{}'; it must be \"criteo\", \"csv\", \"idx\", \"index\" or "
                "\"none\"",
                config.format);
  }
  if (split == Split::kEval && pins.empty()) {
    ANTDT_TRY(const DataConfig train, parse_data_config(config_json, Split::kTrain));
    if (has_files(train)) {
      ANTDT_TRY(indexes.train, ensure_index(train, directory, nullptr, opening));
    }
  }
  ANTDT_TRY(indexes.own,
            ensure_index(config, directory, indexes.train ? &*indexes.train : nullptr, opening));
  return indexes;
}

// A reader over the files that `config` names.
Result<std::unique_ptr<RecordReader>> open_own(const std::string& config_json,
                                               const DataConfig& config, Split split,
                                               const std::string& cache_dir, const PinnedData& pins,
                                               Opening& opening) {
  ANTDT_TRY(Indexes indexes, open_indexes(config_json, config, split, cache_dir, pins, opening));
  if (!indexes.own) return std::make_unique<NumbersReader>(0);
  const IndexMeta& learnt = (indexes.train ? *indexes.train : *indexes.own).meta();
  const std::uint32_t classes = pins.empty() ? learnt.classes : pins.classes;
  if (config.format == "idx") return open_idx(*indexes.own, classes);
  std::unique_ptr<RowFormat> format = make_row_format(config);
  Labels labels(learnt.class_names, classes);
  IdMap ids = config.vocabulary
                  ? IdMap::vocabulary((indexes.train ? *indexes.train : *indexes.own).vocabulary())
                  : IdMap::hashing(format->fields(), config.hash_buckets);
  return TextReader::open(std::move(*indexes.own), std::move(format), std::move(labels),
                          std::move(ids));
}

}  // namespace

void Examples::clear() {
  count = 0;
  dense.clear();
  ids.clear();
  labels.clear();
  weights.clear();
  for (auto& column : columns) column.clear();
}

void Examples::append(const Examples& other, std::size_t from, std::size_t to) {
  const auto copy = [&](auto& mine, const auto& theirs) {
    if (other.count == 0 || theirs.empty()) return;
    const auto width = static_cast<std::ptrdiff_t>(theirs.size() / other.count);
    mine.insert(mine.end(), theirs.begin() + static_cast<std::ptrdiff_t>(from) * width,
                theirs.begin() + static_cast<std::ptrdiff_t>(to) * width);
  };
  copy(dense, other.dense);
  copy(ids, other.ids);
  copy(labels, other.labels);
  copy(weights, other.weights);
  columns.resize(std::max(columns.size(), other.columns.size()));
  for (std::size_t i = 0; i < other.columns.size(); ++i) copy(columns[i], other.columns[i]);
  count += to - from;
}

Result<std::string> default_cache_dir() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/antdt/index";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/antdt/index";
  // Its name can be guessed, so another user may have made it first.
  std::string path = fmt::format("/tmp/antdt-index-{}", ::geteuid());
  ANTDT_RETURN_IF_ERROR(ensure_private_directory(path, "HOME or XDG_CACHE_HOME"));
  return path;
}

Result<DataSummary> build_index(const std::string& config_json, Split split,
                                const std::string& cache_dir, const std::string& domain) {
  Opening opening;
  return build_index(config_json, split, opening, cache_dir, domain);
}

Result<DataSummary> build_index(const std::string& config_json, Split split, Opening& opening,
                                const std::string& cache_dir, const std::string& domain) {
  ANTDT_TRY(DataConfig config, parse_data_config(config_json, split));
  ANTDT_TRY(const PinnedData pins, parse_pinned_data(config_json));
  DataSummary summary;
  if (config.format == "index" && config.records > 0) {
    summary.records = config.records;
    summary.fingerprint = fingerprint_of(fmt::format("numbers below {}", config.records));
    summary.detail = fmt::format("the numbers below {}", config.records);
    return summary;
  }
  if (pins.has(name_of(split))) keep_files_of(domain, name_of(split), pins, config);
  ANTDT_TRY(const Indexes indexes,
            open_indexes(config_json, config, split, cache_dir, pins, opening));
  if (!indexes.own) return summary;
  const IndexMeta& meta = indexes.own->meta();
  summary.records = meta.records;
  summary.fingerprint = fingerprint_of(meta);
  summary.built_by = meta.built_by;
  summary.classes = meta.classes;
  summary.named_classes = !meta.class_names.empty();
  summary.quarantined = meta.quarantined;
  summary.quarantine_file = meta.quarantine_file;
  for (const IndexedFile& file : meta.files) {
    summary.detail += fmt::format("{}{}: {} bytes, xxh3 {}", summary.detail.empty() ? "" : "; ",
                                  file.path, file.bytes, file.fingerprint);
    summary.files.push_back(
        {name_of(split), file.path, file.bytes, file.records, file.fingerprint});
  }
  return summary;
}

wire::DataIdentity identity_of(const DataSummary& train, const DataSummary& eval) {
  wire::DataIdentity identity;
  identity.train_records = train.records;
  identity.eval_records = eval.records;
  identity.fingerprint = train.fingerprint + eval.fingerprint;
  identity.detail = train.detail;
  if (!eval.detail.empty()) identity.detail += (train.detail.empty() ? "" : "; ") + eval.detail;
  identity.files = train.files;
  identity.files.insert(identity.files.end(), eval.files.begin(), eval.files.end());
  identity.built_by = train.built_by.empty() ? eval.built_by : train.built_by;
  return identity;
}

Result<std::unique_ptr<RecordReader>> open_reader(const std::string& config_json, Split split,
                                                  const std::string& cache_dir,
                                                  const std::string& domain) {
  Opening opening;
  return open_reader(config_json, split, opening, cache_dir, domain);
}

Result<std::unique_ptr<RecordReader>> open_reader(const std::string& config_json, Split split,
                                                  Opening& opening, const std::string& cache_dir,
                                                  const std::string& domain) {
  ANTDT_TRY(DataConfig config, parse_data_config(config_json, split));
  ANTDT_TRY(const PinnedData pins, parse_pinned_data(config_json));
  if (config.format == "index") {
    auto numbers = std::make_unique<NumbersReader>(config.records);
    if (!pins.has(name_of(split))) return numbers;
    return std::make_unique<PinnedReader>(std::move(numbers), pins, name_of(split), domain,
                                          PinnedReader::Numbers::kOfAll);
  }
  if (!pins.has(name_of(split))) {
    return open_own(config_json, config, split, cache_dir, pins, opening);
  }
  keep_files_of(domain, name_of(split), pins, config);
  ANTDT_TRY(auto own, open_own(config_json, config, split, cache_dir, pins, opening));
  return std::make_unique<PinnedReader>(std::move(own), pins, name_of(split), domain,
                                        PinnedReader::Numbers::kOfDomain);
}

}  // namespace antdt::data
