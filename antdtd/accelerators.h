// Which processes compute on an accelerator whose clocks are held down, by heat, by a bound
// on its power or by the hardware: what NVIDIA's management library (NVML) says, where the
// host has it. It is opened while the program runs: nothing is linked, and a host without it
// has nothing to tell.
//
// A thread of its own begins and asks once a second, because drivers may take seconds to wake
// and a device that fails may hold a call up for long, and the agent has to answer meanwhile.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/clock.h"

namespace antdt::antdtd {

class Nvml;

class Accelerators {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  // Nothing is told where `library` cannot be opened, or has no device.
  explicit Accelerators(const std::string& library = kLibrary);
  ~Accelerators();
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  // Process ids, as they were at most 3 s ago; older news is none.
  [[nodiscard]] std::set<std::uint32_t> held_down() const;
  // Blocks until the devices were asked once more than so far; false: there are none.
  bool await_look();

 private:
  void watch();

  std::unique_ptr<Nvml> nvml_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  bool at_once_ = false;
  bool tells_nothing_ = false;
  std::uint64_t looks_ = 0;
  MonoTime looked_{};
  std::set<std::uint32_t> held_down_;
  std::thread thread_;
};

}  // namespace antdt::antdtd
