// A pipe whose ends are closed with this object, and when a program is executed.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "core/os/owned_fd.h"

namespace antdt {

struct Pipe {
  OwnedFd read;
  OwnedFd write;

  // False on failure, with the reason in errno.
  [[nodiscard]] bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = OwnedFd(ends[0]);
    write = OwnedFd(ends[1]);
    return true;
  }
};

}  // namespace antdt
