// The claim of a device, which all agents of a machine respect: a lock of an empty file.
//
// The lock is of the open file (fcntl(2), "Open file description locks"). So it lasts as long as
// anybody has that open, and ends with the last process that has, however that ends. Agents and
// shims of different users use the same files.
#pragma once

#include <string>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::antdtd {

class ClaimFile {
 public:
  // Claims it if nobody has. Others may join afterwards. kRefused: somebody has; kIo: it cannot be
  // opened, or made.
  [[nodiscard]] static Result<ClaimFile> take(const std::string& path);
  // Has the claim, too: with those who joined, until the last of them has left. kRefused: somebody
  // is taking it; kIo: it cannot be opened.
  [[nodiscard]] static Result<ClaimFile> join(const std::string& path);
  // Whether somebody has it; false if that cannot be found out.
  [[nodiscard]] static bool is_taken(const std::string& path);

 private:
  explicit ClaimFile(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
};

}  // namespace antdt::antdtd
