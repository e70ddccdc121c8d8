// What wakes a member that sleeps: another member, or an abort from another thread.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::trainer::shm {

// A builder and the collective that it makes have it in common, so an abort reaches either.
struct Bell {
  OwnedFd fd;  // an eventfd, which is readable when it rings
  std::atomic<bool> aborted = false;

  [[nodiscard]] static Result<std::shared_ptr<Bell>> make() {
    auto bell = std::make_shared<Bell>();
    bell->fd = OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (bell->fd.is_open()) return bell;
    return fail_errno(ErrorKind::kIo, errno, "making an eventfd");
  }
  static void ring(const OwnedFd& fd) {
    const std::uint64_t one = 1;
    // It fails only when it rings already.
    static_cast<void>(!::write(fd.get(), &one, sizeof(one)));
  }
  void hush() const {
    std::uint64_t rings = 0;
    static_cast<void>(!::read(fd.get(), &rings, sizeof(rings)));
  }
  void abort() {
    aborted = true;
    ring(fd);
  }
};

}  // namespace antdt::trainer::shm
