// A file to which lines are appended and whose size is bounded: when it is full, it is renamed to
// PATH.1, replacing the previous PATH.1, and a new file is begun. So at least half of `most_bytes`
// of the newest lines exist in PATH.1 and PATH.
//
// The file is opened at the first write and kept open. If that fails, the line is lost, and opening
// is tried again with the next line. A reader of both files reads PATH.1 first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt {

class RotatingFile {
 public:
  // `most_bytes`: size of both files together.
  RotatingFile(std::string path, std::uint64_t most_bytes);

  // Writes `text`, which should end with a newline, into one file.
  [[nodiscard]] Status append(std::string_view text);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] Status open();
  [[nodiscard]] Status rotate();

  std::string path_;
  std::uint64_t most_bytes_;
  OwnedFd file_;
  std::uint64_t bytes_ = 0;
};

// PATH.1 and PATH as one text; a missing file counts as empty.
[[nodiscard]] std::string read_rotated(const std::string& path);

}  // namespace antdt
