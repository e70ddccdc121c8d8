// Writes an index file (index.h has the format) as its records are found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/fs.h"
#include "core/result.h"
#include "trainer/data/index/index.h"

namespace antdt::data {

class IndexWriter {
 public:
  [[nodiscard]] static Result<IndexWriter> create(const std::string& path, mode_t mode = 0600);
  IndexWriter(IndexWriter&&) noexcept;
  ~IndexWriter();

  void add_record(std::uint64_t offset) {
    pending_.push_back(offset);
    ++records_;
    if (pending_.size() == kPending) flush();
  }
  [[nodiscard]] std::uint64_t records() const { return records_; }
  // The encoded access points of the next packed file.
  void add_points(std::string_view encoded) { points_ += encoded; }
  // Syncs the file and renames it into place. Returns errors of earlier writes, too.
  [[nodiscard]] Status finish(const IndexMeta& meta, const Vocabulary& vocabulary);

 private:
  static constexpr std::size_t kPending = 8192;
  struct Hash;
  IndexWriter(std::string path, FileWriter file);
  void flush();
  void write(const void* data, std::size_t bytes);

  std::string path_;
  FileWriter file_;             // removes the file, unless it is finished
  std::unique_ptr<Hash> hash_;  // of what was written behind the magic
  std::vector<std::uint64_t> pending_;
  std::string points_;
  std::uint64_t records_ = 0;
};

}  // namespace antdt::data
