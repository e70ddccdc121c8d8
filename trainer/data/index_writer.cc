#include "trainer/data/index_writer.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace antdt::data {

static_assert(std::endian::native == std::endian::little, "the index is little-endian");

Result<IndexWriter> IndexWriter::create(const std::string& path) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wbe");
  if (file == nullptr) return fail_errno(ErrorKind::kIo, errno, "cannot write index " + temporary);
  IndexWriter writer(path, std::move(temporary), file);
  writer.write(kIndexMagic.data(), kIndexMagic.size());
  return writer;
}

IndexWriter::IndexWriter(IndexWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)),
      error_(other.error_),
      pending_(std::move(other.pending_)),
      records_(other.records_) {}

IndexWriter::~IndexWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(temporary_.c_str());
}

void IndexWriter::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && error_ == 0 && std::fwrite(data, 1, bytes, file_) != bytes) error_ = errno;
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
  if (error_ == 0 && (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0)) error_ = errno;
  if (error_ == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) {
    return fail_errno(
        ErrorKind::kIo, error_,
        "cannot write index " + path_ + " (8 bytes a record; XDG_CACHE_HOME says where)");
  }
  std::fclose(std::exchange(file_, nullptr));
  return {};
}

}  // namespace antdt::data
