// The index of a data set: where each record begins, and what the pass over the data learnt.
//
// A file in the cache directory, written once and never changed:
//
//   "ANTDTIX2"                               8 bytes
//   offset of each record in the content of its file   u64 each, files in order
//   vocabulary keys, field by field          u64 each
//   access points of each packed file        content/points.h; meta says how many bytes
//   meta: JSON (IndexMeta)                   meta_bytes
//   records, vocabulary keys, bytes of all points, meta_bytes,
//   XXH3 of all between the magic words but this line, "ANTDTIX2"   6 x 8 bytes
//
// all little-endian. It is written beside its place and renamed, so an existing file is complete;
// sizes and the checksum are checked all the same, once by each process that opens it. It is valid
// as long as every data file has the size, times and sample fingerprint that it had, and this
// release would build the same index from it. Data sets without text (IDX) have no offsets. A
// file's content is what it holds unpacked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/data/formats/features.h"
#include "trainer/data/index/mapped_file.h"
#include "trainer/data/index/opening.h"

namespace antdt::data {

struct IndexedFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  std::string sample;       // fingerprint of a few blocks
  std::string fingerprint;  // of the whole content
  std::uint64_t first_record = 0;
  std::uint64_t records = 0;
  std::int64_t ctime_ns = 0;
  std::uint64_t points_bytes = 0;  // 0: the file is not packed
};

struct IndexMeta {
  std::vector<IndexedFile> files;
  std::uint64_t records = 0;
  std::uint64_t quarantined = 0;
  std::string quarantine_file;
  std::vector<std::string> class_names;
  std::uint32_t classes = 0;
  std::vector<std::uint64_t> vocabulary_sizes;  // empty: no vocabulary was made
  std::string built_by;                         // see built_by() in index_build.h
};

inline constexpr std::string_view kIndexMagic = "ANTDTIX2";

[[nodiscard]] std::string encode_meta(const IndexMeta& meta);
[[nodiscard]] Result<IndexMeta> decode_meta(std::string_view json);

// XXH3 as 16 hex digits.
[[nodiscard]] std::string hex_of(std::uint64_t hash);
[[nodiscard]] std::string fingerprint_of(std::string_view bytes);
[[nodiscard]] std::string sample_fingerprint(std::string_view bytes);
// Of the files' sizes and fingerprints, in order; paths do not count.
[[nodiscard]] std::string fingerprint_of(const IndexMeta& meta);

class Index {
 public:
  // kCorrupt if the file is not a complete index, kUsage if there is none.
  [[nodiscard]] static Result<Index> open(const std::string& path, Opening& opening);
  [[nodiscard]] static Result<Index> open(const std::string& path) {
    Opening opening;
    return open(path, opening);
  }

  [[nodiscard]] const IndexMeta& meta() const { return meta_; }
  [[nodiscard]] std::span<const std::uint64_t> offsets() const { return offsets_; }
  [[nodiscard]] Vocabulary vocabulary() const;
  // The encoded access points of file i, which refer to the mapped index.
  [[nodiscard]] std::string_view points(std::size_t i) const;
  // Hosts that share the index may have the data files elsewhere: `paths` in the order of
  // meta().files. Changes nothing where their number differs.
  void set_paths(const std::vector<std::string>& paths);
  void set_quarantine_file(std::string path) { meta_.quarantine_file = std::move(path); }
  // Whether the data files are still those that were indexed, judged by size, times and sample.
  [[nodiscard]] bool matches_files(Opening& opening) const;

 private:
  explicit Index(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  IndexMeta meta_;
  std::span<const std::uint64_t> offsets_;
  std::span<const std::uint64_t> vocabulary_;
  std::string_view points_;
};

}  // namespace antdt::data
