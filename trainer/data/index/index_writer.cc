#include "trainer/data/index/index_writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace antdt::data {

static_assert(std::endian::native == std::endian::little, "the index is little-endian");

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
}

void IndexWriter::flush() {
  write(pending_.data(), pending_.size() * sizeof(std::uint64_t));
  pending_.clear();
}

Status IndexWriter::finish(const IndexMeta& meta, const Vocabulary& vocabulary) {
  flush();
  std::uint64_t keys = 0;
  for (const std::vector<std::uint64_t>& field : vocabulary) {
    write(field.data(), field.size() * sizeof(std::uint64_t));
    keys += field.size();
  }
  write(points_.data(), points_.size());
  const std::string text = encode_meta(meta);
  write(text.data(), text.size());
  const std::array<std::uint64_t, 5> footer{records_, keys, points_.size(), text.size(),
                                            XXH3_64bits_digest(&hash_->state)};
  file_.write({reinterpret_cast<const char*>(footer.data()), sizeof footer});
  file_.write(kIndexMagic);
  if (Status status = file_.finish(); !status) {
    status.error().message =
        fmt::format("cannot write index {} (8 bytes a record; XDG_CACHE_HOME says where): {}",
                    path_, status.error().message);
    return status;
  }
  return {};
}

}  // namespace antdt::data
