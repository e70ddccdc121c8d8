// A file descriptor that is closed by its owner's destructor.
#pragma once

#include <unistd.h>

#include <utility>

namespace antdt {

class OwnedFd {
 public:
  OwnedFd() = default;  // no descriptor
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    other.close();
    return *this;
  }
  ~OwnedFd() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  // The caller must close the descriptor.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace antdt
