#include "trainer/data/index/index_writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace antdt::data {

static_assert(std::endian::native == std::endian::little, "the index is little-endian");

Result<IndexWriter> IndexWriter::create(const std::string& path) {
  ANTDT_TRY(FileWriter file, FileWriter::create(path, 0600));
  IndexWriter writer(path, std::move(file));
  writer.write(kIndexMagic.data(), kIndexMagic.size());
  return writer;
}

void IndexWriter::write(const void* data, std::size_t bytes) {
  if (bytes > 0) file_.write({static_cast<const char*>(data), bytes});
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
  const std::string text = encode_meta(meta);
  write(text.data(), text.size());
  std::array<std::uint64_t, 4> footer{records_, keys, text.size(),
                                      XXH3_64bits(text.data(), text.size())};
  write(footer.data(), sizeof footer);
  write(kIndexMagic.data(), kIndexMagic.size());
  if (Status status = file_.finish(); !status) {
    status.error().message =
        fmt::format("cannot write index {} (8 bytes a record; XDG_CACHE_HOME says where): {}",
                    path_, status.error().message);
    return status;
  }
  return {};
}

}  // namespace antdt::data
