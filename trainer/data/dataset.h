// Data sets as numbered records.
//
// The records of a data set are numbered 0..N-1, files in the order given. An
// index, built in one pass and kept in a cache, says where each begins, so that
// any records are read in any order. docs/data.md has the formats, how fields
// become features, and what happens to malformed rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire/membership_messages.h"

namespace antdt::data {

// Decoded records, row by row.
struct Examples {
  std::size_t count = 0;
  std::vector<float> dense;       // count x dense_width
  std::vector<std::int64_t> ids;  // count x id_width, each below id_rows
  std::vector<float> labels;      // count; a class number for classification
  std::vector<float> weights;     // count, or empty: all 1

  void clear();
  // Adds rows [from, to) of `other`, which must have the same shape.
  void append(const Examples& other, std::size_t from, std::size_t to);
};

struct DataShape {
  std::size_t dense_width = 0;
  std::size_t id_width = 0;
  std::uint64_t id_rows = 0;   // embedding rows over all fields together
  std::uint32_t classes = 0;   // 2: binary label 0 or 1; 1: a number to predict
  std::uint32_t channels = 0;  // images: dense is channels x height x width in [0, 1]
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

// Reads any records in any order without scanning. One thread at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  [[nodiscard]] virtual const DataShape& shape() const = 0;
  [[nodiscard]] virtual std::uint64_t records() const = 0;
  // Replaces `out` by these records, in this order. An error (kCorrupt) names
  // file and record when the file is not what was indexed.
  [[nodiscard]] virtual Status read(std::span<const std::uint64_t> record_numbers,
                                    Examples& out) = 0;
};

enum class Split { kTrain, kEval };

struct DataSummary {
  std::uint64_t records = 0;
  std::string fingerprint;  // of the contents, in order: the same on every host
  std::string detail;       // which file has which size and fingerprint
  std::vector<wire::DataFile> files;
  std::string built_by;  // what decides how the files become records; empty: there are none
  std::uint64_t quarantined = 0;
  std::string quarantine_file;  // where these rows are, with file:line and reason
};

// Where indexes are kept unless told otherwise: $XDG_CACHE_HOME/antdt/index, or
// ~/.cache/antdt/index.
[[nodiscard]] std::string default_cache_dir();

// `config_json` is the job's effective configuration; its "data" part is read.
// Builds the index unless a valid one is in `cache_dir` (empty: the default);
// whoever comes while it is built waits for it. A data set that is not there or
// malformed is an error (kUsage) with file, line and how to mend it. A split
// without paths has no records.
[[nodiscard]] Result<DataSummary> build_index(const std::string& config_json, Split split,
                                              const std::string& cache_dir = "");
// Both splits as one identity: what the launcher writes as RUN/data.json, and what a worker
// says when it joins.
[[nodiscard]] wire::DataIdentity identity_of(const DataSummary& train, const DataSummary& eval);
// The reader over that index (which is built first where it is missing).
// Vocabulary and classes of the evaluation data are those of the training data.
[[nodiscard]] Result<std::unique_ptr<RecordReader>> open_reader(const std::string& config_json,
                                                                Split split,
                                                                const std::string& cache_dir = "");

}  // namespace antdt::data
