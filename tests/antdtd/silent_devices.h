// Devices of the fake library (fake_nvml.cc) that block their callers.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt::antdtd {

class SilentDevices {
 public:
  // `path` is the file that FAKE_NVML names.
  explicit SilentDevices(std::string path) : path_(std::move(path)) { mkfifo(path_.c_str(), 0600); }
  // Waits for a call, which stays unanswered. Returns false if none comes for a long time.
  [[nodiscard]] bool await_call() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!asked_.is_open() && std::chrono::steady_clock::now() < until) {
      asked_ = OwnedFd(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      if (!asked_.is_open()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return asked_.is_open();
  }
  // From now on every call is answered, with an empty result.
  void answer() {
    static_cast<void>(write_file_atomic(path_, ""));
    asked_.close();
  }

 private:
  std::string path_;
  OwnedFd asked_;
};

}  // namespace antdt::antdtd
