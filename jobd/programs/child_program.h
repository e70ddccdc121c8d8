// A program that is spoken to over its standard streams, none of which ever blocks
// us. It runs as we do, in a session of its own, with less priority, as the first to
// go where memory is short, and ends with us.
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
  // The first of `command` is a path.
  [[nodiscard]] static Result<ChildProgram> start(const std::vector<std::string>& command,
                                                  const std::string& directory);
  ChildProgram(ChildProgram&& other) noexcept;
  ChildProgram& operator=(ChildProgram&&) = delete;
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;
  ~ChildProgram();  // ends it and what it has started; see reaped()

  // How many bytes it took now; an error if it takes no more ever.
  [[nodiscard]] Result<std::size_t> write(std::string_view bytes);
  // What it has written, `most` bytes of it; an error at the end.
  [[nodiscard]] Result<std::string> read_output(std::size_t most);
  [[nodiscard]] std::string read_errors(std::size_t most);
  [[nodiscard]] int output() const { return out_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // How it ended, in words: "ended with code 3"; nothing while it runs.
  [[nodiscard]] std::optional<std::string> ended();

 private:
  ChildProgram(pid_t pid, OwnedFd in, OwnedFd out, OwnedFd err)
      : pid_(pid), in_(std::move(in)), out_(std::move(out)), err_(std::move(err)) {}

  pid_t pid_ = -1;
  OwnedFd in_, out_, err_;
  std::optional<std::string> ended_;
};

// Whether nothing is left of a child: asked until it is so, since one that was killed
// is there for a moment more.
[[nodiscard]] bool reaped(pid_t pid);

}  // namespace antdt::jobd
