// A pipe whose ends are closed with it, and in a program that is executed.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "core/os/owned_fd.h"

namespace antdt {

struct Pipe {
  OwnedFd read;
  OwnedFd write;

  // False: errno says why there is none.
  [[nodiscard]] bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = OwnedFd(ends[0]);
    write = OwnedFd(ends[1]);
    return true;
  }
};

}  // namespace antdt
