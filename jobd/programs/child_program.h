// A child program with which this process talks over its standard streams without ever blocking. It
// runs as this process's user, in a session of its own, with lower priority, is the first to be
// killed when memory runs out, and ends with this process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::jobd {

class ChildProgram {
 public:
  // The first word of `command` is a path.
  [[nodiscard]] static Result<ChildProgram> start(const std::vector<std::string>& command,
                                                  const std::string& directory);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;
  ~ChildProgram();  // ends the program and the processes that it started; see reaped()

  // Returns how many bytes it accepted; an error if it will never accept more.
  [[nodiscard]] Result<std::size_t> write(std::string_view bytes);
  // It reads the end of its input from now on.
  void close_input() { in_.close(); }
  // Up to `most` bytes of its output; an error at the end.
  [[nodiscard]] Result<std::string> read_output(std::size_t most);
  [[nodiscard]] std::string read_errors(std::size_t most);
  [[nodiscard]] int output() const { return out_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // How it ended, in words: "ended with code 3"; empty while it runs.
  [[nodiscard]] std::optional<std::string> ended();

 private:
  ChildProgram(pid_t pid, OwnedFd in, OwnedFd out, OwnedFd err)
      : pid_(pid), in_(std::move(in)), out_(std::move(out)), err_(std::move(err)) {}

  pid_t pid_ = -1;
  OwnedFd in_, out_, err_;
  std::optional<std::string> ended_;
};

// Whether nothing is left of a child. To be called until it is true, because a killed child remains
// for a moment.
[[nodiscard]] bool reaped(pid_t pid);

}  // namespace antdt::jobd
