// Data sets as numbered records.
//
// The records of a data set are numbered 0..N-1, with the files in the given order. An index, which
// is built in one pass and cached, says where each record begins, so that any records can be read
// in any order. docs/data.md describes the formats, how fields become features, and what happens to
// malformed rows.
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
  std::vector<float> labels;      // count; class numbers for classification
  std::vector<float> weights;     // count, or empty: all are 1
  // Of a reader of the program's own: each column of the shape, count x its bytes a record.
  std::vector<std::vector<std::byte>> columns;

  void clear();
  // Appends rows [from, to) of `other`, which must have the same shape.
  void append(const Examples& other, std::size_t from, std::size_t to);
};

// A column of a reader that a program made with the C++ kit has of its own.
enum class ElementType { kFloat32, kFloat64, kInt64, kInt32, kUint8, kBool };
struct ColumnShape {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> sizes;  // of one record
  std::size_t bytes = 0;            // of one record
};

struct DataShape {
  std::size_t dense_width = 0;
  std::size_t id_width = 0;
  std::uint64_t id_rows = 0;   // embedding rows of all fields together
  std::uint32_t classes = 0;   // 2: binary label 0 or 1; 1: a number to predict
  std::uint32_t channels = 0;  // images: dense is channels x height x width in [0, 1]
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<ColumnShape> columns = {};
};

// Reads any records in any order without scanning. Used by one thread at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  [[nodiscard]] virtual const DataShape& shape() const = 0;
  [[nodiscard]] virtual std::uint64_t records() const = 0;
  // Replaces `out` by these records, in this order. The error (kCorrupt) names file and record if
  // the file is not the one that was indexed.
  [[nodiscard]] virtual Status read(std::span<const std::uint64_t> record_numbers,
                                    Examples& out) = 0;
};

enum class Split { kTrain, kEval };
class Opening;  // index/opening.h

struct DataSummary {
  std::uint64_t records = 0;
  std::string fingerprint;  // of the contents, in order: the same on every host
  std::string detail;       // size and fingerprint of each file
  std::vector<wire::DataFile> files;
  // what determines how the files are split into records; empty: there are no files
  std::string built_by;
  std::uint32_t classes = 0;   // of the labels; 0: there are no files
  bool named_classes = false;  // the labels are names, numbered in the order of the files
  std::uint64_t quarantined = 0;
  std::string quarantine_file;  // the file with these rows, each with file:line and reason
};

// The default directory of indexes: $XDG_CACHE_HOME/antdt/index, or ~/.cache/antdt/index; without
// either variable, a private one in /tmp, or an error if that is somebody else's.
[[nodiscard]] Result<std::string> default_cache_dir();

// `config_json` is the job's effective configuration, of which "data" is used. Builds the index
// unless a valid one is in `cache_dir` (empty: the default); processes that come while it is built
// wait for it. If the data are missing or malformed, the error (kUsage) has file, line and how to
// mend it. A split without paths has no records. If the configuration says which files are pinned
// to which domains ("pins"), only those of `domain` are read, and the summary is of them.
[[nodiscard]] Result<DataSummary> build_index(const std::string& config_json, Split split,
                                              const std::string& cache_dir = "",
                                              const std::string& domain = "");
// The same, for a process that tells how far it is, or opens the same data several times.
[[nodiscard]] Result<DataSummary> build_index(const std::string& config_json, Split split,
                                              Opening& opening, const std::string& cache_dir = "",
                                              const std::string& domain = "");
// Both splits as one identity, which the launcher writes to RUN/data.json and a worker sends when
// it joins.
[[nodiscard]] wire::DataIdentity identity_of(const DataSummary& train, const DataSummary& eval);
// A reader over that index, which is built first if it is missing. The evaluation data use the
// vocabulary and the classes of the training data. If files are pinned, records have the numbers
// that they have among the records of all domains, and those of others cannot be read.
[[nodiscard]] Result<std::unique_ptr<RecordReader>> open_reader(const std::string& config_json,
                                                                Split split,
                                                                const std::string& cache_dir = "",
                                                                const std::string& domain = "");
[[nodiscard]] Result<std::unique_ptr<RecordReader>> open_reader(const std::string& config_json,
                                                                Split split, Opening& opening,
                                                                const std::string& cache_dir = "",
                                                                const std::string& domain = "");

}  // namespace antdt::data
