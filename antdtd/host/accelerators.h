// Which processes compute on an accelerator whose clocks are held down by heat, by a power limit or
// by the hardware, according to NVIDIA's management library (NVML), if the host has it. The library
// is opened at run time: nothing is linked, and on a host without it this reports nothing.
//
// A thread of its own makes the calls, once a second, because drivers may take seconds to wake, a
// failing device may block a call for long, and the agent must answer meanwhile.
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

  // Reports nothing if `library` cannot be opened, or finds no device.
  explicit Accelerators(const std::string& library = kLibrary);
  ~Accelerators();  // calls end() with a patience of one second
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  // Ids of the processes, at most 3 s old; empty if the last look is older.
  [[nodiscard]] std::set<std::uint32_t> held_down() const;
  // Blocks until the devices were asked once more. False if there are none.
  bool await_look();
  // Makes no more calls. False if a call blocks for longer than `patience`. Then its thread is left
  // alone with its data, and the process must end by _exit(), because what the library does at the
  // end of a process may wait for that call.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // null: no library, or ended
  std::thread thread_;
};

}  // namespace antdt::antdtd
