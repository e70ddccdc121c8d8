// A child process that has the server as it was when the child was made, and tells of it
// through a pipe. The server stands still for one fork.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "core/owned_fd.h"
#include "core/result.h"

namespace antdt::ps {

class ChildCopy {
 public:
  // All of the bytes; ends the child where nobody reads them any more.
  using Tell = std::function<void(std::string_view)>;

  ChildCopy() = default;
  ~ChildCopy() { end(); }
  ChildCopy(const ChildCopy&) = delete;
  ChildCopy& operator=(const ChildCopy&) = delete;

  // There is none yet. `run` runs in the child, which ends after it, and with this process. An
  // error (kIo) says that there is no child `to` do this.
  [[nodiscard]] Status begin(const char* to, const std::function<void(const Tell&)>& run);
  [[nodiscard]] bool is_there() const { return child_ != 0; }
  // Where its bytes come from; their end is its end.
  [[nodiscard]] int fd() const { return from_child_.get(); }
  // Kills it, and waits for it.
  void end();

 private:
  pid_t child_ = 0;  // 0: none
  OwnedFd from_child_;
};

}  // namespace antdt::ps
