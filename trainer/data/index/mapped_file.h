// A file mapped into memory, read-only. A page that cannot be read is a SIGBUS: see lost_files.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt::data {

struct Mapping;  // lost_files.h

class MappedFile {
 public:
  // An empty file maps to no bytes.
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }
  // The times when the file was opened. Overwriting a file may leave its mtime as it was (cp -p,
  // rsync -t), but never its ctime.
  [[nodiscard]] std::int64_t mtime_ns() const { return mtime_ns_; }
  [[nodiscard]] std::int64_t ctime_ns() const { return ctime_ns_; }
  void expect_sequential() const;  // it will be read from front to back

 private:
  MappedFile() = default;
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t mtime_ns_ = 0;
  std::int64_t ctime_ns_ = 0;
  Mapping* mapping_ = nullptr;
};

// Opens a file of a data set; it may be packed (content/). If it is empty, the error (kUsage) says
// what to do.
[[nodiscard]] Result<MappedFile> open_text_file(const std::string& path);
// The same for what is read where it is mapped: if it is packed, the error says what to do.
[[nodiscard]] Result<MappedFile> open_unpacked_file(const std::string& path);

}  // namespace antdt::data
