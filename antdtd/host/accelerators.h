// Which processes compute on an accelerator whose clocks are held down, by heat, by a bound
// on its power or by the hardware: what NVIDIA's management library (NVML) says, where the
// host has it. It is opened while the program runs: nothing is linked, and a host without it
// has nothing to tell.
//
// A thread of its own begins and asks once a second, because drivers may take seconds to wake
// and a device that fails may hold a call up for long, and the agent has to answer meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "core/clock.h"

namespace antdt::antdtd {

class Accelerators {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  // Nothing is told where `library` cannot be opened, or has no device.
  explicit Accelerators(const std::string& library = kLibrary);
  ~Accelerators();  // as end(), for a second
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  // Process ids, as they were at most 3 s ago; older news is none.
  [[nodiscard]] std::set<std::uint32_t> held_down() const;
  // Blocks until the devices were asked once more than so far; false: there are none.
  bool await_look();
  // Asks no more. False: a call is held up for longer than `patience`. Its thread is left to
  // itself with what it needs; the process ends by _exit() then, because what the library does
  // at a process's end may wait for that call.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // null: no library, or ended
  std::thread thread_;
};

}  // namespace antdt::antdtd
