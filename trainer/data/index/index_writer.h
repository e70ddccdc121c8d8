// Writes an index file (index.h has the format) as its records are found. The windows of access
// points come behind all records in it, so they wait in a file of their own, not in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/fs.h"
#include "core/result.h"
#include "trainer/data/content/points.h"
#include "trainer/data/index/index.h"
#include "trainer/data/index/spool.h"

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
  // Shows that the file is still being written (FileWriter).
  void keep_fresh() { file_.keep_fresh(); }
  // A window of the next packed file, and then the rest of its access points.
  void keep_window(std::string_view packed);
  void add_points(PointsFound points) { points_.push_back(std::move(points)); }
  // Syncs the file and renames it into place. Returns errors of earlier writes, too.
  [[nodiscard]] Status finish(const IndexMeta& meta, const Vocabulary& vocabulary,
                              Opening& opening);

 private:
  static constexpr std::size_t kPending = 8192;
  struct Hash;
  IndexWriter(std::string path, FileWriter file);
  void flush();
  void write(const void* data, std::size_t bytes);
  // How many bytes of points were written.
  [[nodiscard]] Result<std::uint64_t> write_points(Opening& opening);
  [[nodiscard]] Status write_windows(std::uint64_t bytes, Opening& opening);
  [[nodiscard]] Status with_hint(Status status) const;

  std::string path_;
  FileWriter file_;             // removes the file, unless it is finished
  std::unique_ptr<Hash> hash_;  // of what was written behind the magic
  std::vector<std::uint64_t> pending_;
  std::vector<PointsFound> points_;  // of each packed file
  std::optional<Spool> windows_;     // if there are any
  Status windows_made_;
  std::uint64_t synced_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace antdt::data
