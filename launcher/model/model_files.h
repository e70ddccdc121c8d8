// The files of a checkpoint, held open, because the job daemon may remove a checkpoint while it is
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt::cli {

// Bytes [first, first + bytes) of one of the files.
struct Extent {
  std::uint32_t file = 0;  // index in CheckpointFiles
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

class CheckpointFiles {
 public:
  // kIo names the file that cannot be opened.
  [[nodiscard]] static Result<CheckpointFiles> open(const std::string& directory,
                                                    const std::vector<std::string>& names);
  CheckpointFiles(CheckpointFiles&& other) noexcept = default;
  CheckpointFiles& operator=(CheckpointFiles&&) = delete;
  ~CheckpointFiles();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(files_.size()); }
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  [[nodiscard]] const std::string& name(std::uint32_t file) const { return files_[file].name; }
  [[nodiscard]] std::string path(std::uint32_t file) const;
  [[nodiscard]] int descriptor(std::uint32_t file) const { return files_[file].fd; }
  [[nodiscard]] std::uint64_t bytes(std::uint32_t file) const { return files_[file].bytes; }

  // Fills `to`; kCorrupt if the file ends before that.
  [[nodiscard]] Status read(std::uint32_t file, std::uint64_t first, std::span<char> to) const;
  [[nodiscard]] Result<std::string> read_all(std::uint32_t file) const;

 private:
  struct File {
    std::string name;
    int fd = -1;
    std::uint64_t bytes = 0;
  };
  explicit CheckpointFiles(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Status add(const std::string& name);
  std::string directory_;
  std::vector<File> files_;
};

}  // namespace antdt::cli
