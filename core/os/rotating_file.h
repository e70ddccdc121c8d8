// A file that lines are appended to and that does not grow for ever: when it has its size it is
// renamed to PATH.1, what was PATH.1 goes, and a new one is begun. So at least half of
// `most_bytes` of the newest lines are there, in PATH.1 and PATH.
//
// It is opened when something is written and kept open; where that fails it is tried again with
// the next line, and the line is lost. Whoever reads both files reads PATH.1 first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt {

class RotatingFile {
 public:
  // `most_bytes`: of both files together.
  RotatingFile(std::string path, std::uint64_t most_bytes);

  // All of `text`, which should end with a newline, in one file.
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

// PATH.1 and PATH, as one text; what is not there is empty.
[[nodiscard]] std::string read_rotated(const std::string& path);

}  // namespace antdt
