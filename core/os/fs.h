// File operations for programs that must not lose files or leave them half-written.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt {

// Replaces the file `path` as a whole: it is written beside it, synced and renamed, and the
// directory is synced. After a power failure either the old or the new content is there. The mode
// is that of the new file.
[[nodiscard]] Status write_file_atomic(const std::string& path, std::string_view bytes,
                                       mode_t mode = 0644);

// The same for content that arrives in pieces.
class FileWriter {
 public:
  // kIo if nothing can be written beside `path`.
  [[nodiscard]] static Result<FileWriter> create(const std::string& path, mode_t mode = 0644);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // removes the file, unless it is finished

  // finish() returns the error, if any.
  void write(std::string_view bytes);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // how much was written so far
  // Syncs what was written so far. finish() returns the error, if any.
  void sync();
  // Shows by the time of the unfinished file that it is still being written, though nothing is
  // written to it for long: afterwards that time is at most kFreshFor ago.
  void keep_fresh();
  static constexpr std::chrono::seconds kFreshFor{60};
  // Syncs the file and renames it into place.
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

// Makes `path` and its missing parents, each with `mode`. An existing directory is left as it is;
// anything else in its place is an error.
[[nodiscard]] Status make_directories(const std::string& path, mode_t mode = 0755);

// Makes everything that was created, renamed or removed in `directory` durable.
[[nodiscard]] Status sync_directory(const std::string& directory);

// The kind of network filesystem that holds `path` ("nfs", "lustre", ...), or empty if it is local.
// SQLite's locks and mmap cannot be trusted on a network filesystem.
[[nodiscard]] Result<std::optional<std::string>> network_filesystem(const std::string& path);
[[nodiscard]] Result<bool> on_network_filesystem(const std::string& path);

// An exclusive lock that ends with its process, on a file that contains the owner's pid for
// messages, and what the owner says to those that wait. Not inherited through exec.
class FileLock {
 public:
  // Takes the lock without waiting. kRefused, naming the owner's pid, if another process has it;
  // kIo if the file cannot be made.
  [[nodiscard]] static Result<FileLock> acquire(const std::string& path);
  // The pid in the lock file of the present owner; empty if there is none.
  [[nodiscard]] static std::optional<pid_t> owner(const std::string& path);

  // Says something to those that wait for the lock, in place of what was said before. It may be
  // lost, and one that looks meanwhile may see a mixture of both if they differ in length.
  void say(std::string_view text);
  // What the owner of the lock file says; empty: nothing. Nobody may own it any more.
  [[nodiscard]] static std::string said(const std::string& path);

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

// A temporary directory in $TMPDIR or /tmp, which is removed with its content.
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
