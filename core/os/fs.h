// Files, for programs that must not lose or half-write them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt {

// Replaces the file `path` as a whole: written beside it, synced, renamed,
// directory synced. After a power failure either the old or the new content is
// there. The mode is that of the new file.
[[nodiscard]] Status write_file_atomic(const std::string& path, std::string_view bytes,
                                       mode_t mode = 0644);

// The same for content that comes piece by piece.
class FileWriter {
 public:
  // kIo when nothing can be written beside `path`.
  [[nodiscard]] static Result<FileWriter> create(const std::string& path, mode_t mode = 0644);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // unless finished, nothing stays

  // An error is kept for finish().
  void write(std::string_view bytes);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // written so far
  // So much is on the disk then. An error is kept for finish().
  void sync();
  // Synced and renamed into place.
  [[nodiscard]] Status finish();

 private:
  FileWriter(std::string path, std::string temporary, std::FILE* file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
  int error_ = 0;  // errno of the first write that failed
  std::uint64_t bytes_ = 0;
};

[[nodiscard]] Result<std::string> read_file(const std::string& path);

// Makes `path` and what is missing above it, each with `mode`. A directory that
// is there already is left as it is; anything else there is an error.
[[nodiscard]] Status make_directories(const std::string& path, mode_t mode = 0755);

// Makes what was created, renamed or removed in `directory` durable.
[[nodiscard]] Status sync_directory(const std::string& directory);

// The kind of network filesystem that holds `path` ("nfs", "lustre", ...), or
// nothing if it is a local one. SQLite's locks and mmap cannot be trusted there.
[[nodiscard]] Result<std::optional<std::string>> network_filesystem(const std::string& path);
[[nodiscard]] Result<bool> on_network_filesystem(const std::string& path);

// An exclusive lock that ends with its process, on a file that holds the
// owner's pid for messages. Not inherited through exec.
class FileLock {
 public:
  // Takes the lock at once or fails: kRefused, naming the owner's pid, when
  // somebody has it; kIo when the file cannot be made.
  [[nodiscard]] static Result<FileLock> acquire(const std::string& path);
  // The pid written in the lock file by who holds it now; nothing when nobody does.
  [[nodiscard]] static std::optional<pid_t> owner(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();  // removes the file

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  void release();
  std::string path_;
  int fd_ = -1;
};

// A directory of its own under $TMPDIR or /tmp, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace antdt
