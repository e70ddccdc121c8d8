#include "trainer/data/index/index_writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace antdt::data {

static_assert(std::endian::native == std::endian::little, "the index is little-endian");

namespace {

// A disk that is slower than the pass is waited for on the way, and not at the end, where the time
// of one sync would look like that of a disk that stands still.
constexpr std::uint64_t kSyncEvery = std::uint64_t{64} << 20;
constexpr std::size_t kCopied = 1 << 20;

}  // namespace

struct IndexWriter::Hash {
  Hash() { XXH3_64bits_reset(&state); }
  XXH3_state_t state;
};

IndexWriter::IndexWriter(std::string path, FileWriter file)
    : path_(std::move(path)), file_(std::move(file)), hash_(std::make_unique<Hash>()) {}
IndexWriter::IndexWriter(IndexWriter&&) noexcept = default;
IndexWriter::~IndexWriter() = default;

Result<IndexWriter> IndexWriter::create(const std::string& path, mode_t mode) {
  ANTDT_TRY(FileWriter file, FileWriter::create(path, mode));
  file.write(kIndexMagic);
  return IndexWriter(path, std::move(file));
}

void IndexWriter::write(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  file_.write({static_cast<const char*>(data), bytes});
  XXH3_64bits_update(&hash_->state, data, bytes);
  if (file_.bytes() - synced_ < kSyncEvery) return;
  file_.sync();
  synced_ = file_.bytes();
}

void IndexWriter::flush() {
  write(pending_.data(), pending_.size() * sizeof(std::uint64_t));
  pending_.clear();
}

void IndexWriter::keep_window(std::string_view packed) {
  if (!windows_made_) return;
  if (!windows_) {
    auto made = Spool::beside(path_);
    if (!made) {
      windows_made_ = tl::unexpected(std::move(made.error()));
      return;
    }
    windows_ = std::move(*made);
  }
  windows_->write(packed);
}

Status IndexWriter::write_windows(std::uint64_t bytes, Opening& opening) {
  std::string some;
  for (std::uint64_t left = bytes; left > 0; left -= some.size()) {
    some.resize(std::min<std::uint64_t>(left, kCopied));
    ANTDT_RETURN_IF_ERROR(windows_->read(some));
    write(some.data(), some.size());
    opening.tell(kIndexesData, path_, file_.bytes(), 0);
  }
  return {};
}

Result<std::uint64_t> IndexWriter::write_points(Opening& opening) {
  ANTDT_RETURN_IF_ERROR(windows_made_);
  if (windows_) ANTDT_RETURN_IF_ERROR(windows_->rewind());
  std::uint64_t bytes = 0;
  for (const PointsFound& of_file : points_) {
    write(of_file.front.data(), of_file.front.size());
    ANTDT_RETURN_IF_ERROR(write_windows(of_file.windows_bytes, opening));
    const std::string zeros(of_file.zeros(), '\0');
    write(zeros.data(), zeros.size());
    bytes += of_file.bytes();
  }
  return bytes;
}

Status IndexWriter::finish(const IndexMeta& meta, const Vocabulary& vocabulary, Opening& opening) {
  flush();
  std::uint64_t keys = 0;
  for (const std::vector<std::uint64_t>& field : vocabulary) {
    write(field.data(), field.size() * sizeof(std::uint64_t));
    keys += field.size();
  }
  const auto points_bytes = write_points(opening);
  if (!points_bytes) return with_hint(tl::unexpected(points_bytes.error()));
  const std::string text = encode_meta(meta);
  write(text.data(), text.size());
  const std::array<std::uint64_t, 5> footer{records_, keys, *points_bytes, text.size(),
                                            XXH3_64bits_digest(&hash_->state)};
  file_.write({reinterpret_cast<const char*>(footer.data()), sizeof footer});
  file_.write(kIndexMagic);
  return with_hint(file_.finish());
}

Status IndexWriter::with_hint(Status status) const {
  if (status) return status;
  status.error().message =
      fmt::format("cannot write index {} (8 bytes a record; XDG_CACHE_HOME says where): {}", path_,
                  status.error().message);
  return status;
}

}  // namespace antdt::data
