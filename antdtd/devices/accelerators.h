// What NVIDIA's management library (NVML) says of this host's accelerators, if the host has it:
// which there are, whether they are healthy, and which processes compute on one whose clocks are
// held down by heat, by a power limit or by the hardware. The library is opened at run time:
// nothing is linked, and on a host without it this reports nothing. A library that is there and
// does not begin is tried again and again, because an agent may start before the driver does.
//
// A thread of its own makes the calls, once a second, because drivers may take seconds to wake, a
// failing device may block a call for long, and the agent must answer meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/wire/device/device.h"

namespace antdt::antdtd {

class Accelerators {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";
  static constexpr Duration kPatience = std::chrono::seconds(10);

  // Reports nothing if `library` cannot be opened. NVML that has not answered for `patience` counts
  // as one that does not answer.
  explicit Accelerators(std::string library = kLibrary, Duration patience = kPatience);
  ~Accelerators();  // calls end() with a patience of one second
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  struct Look {
    // Whether NVML tells of devices, or has yet to say whether it will.
    bool watched = false;
    std::string missing;                    // why it does not; "": it is watched
    bool loaded = false;                    // the library is there, so NVML may begin yet
    std::vector<wire::HostDevice> devices;  // of the last look, without holders
    std::string trouble;      // why nobody knows how they are now; "": the last look is new
    bool pending = false;     // the first look has not ended, and may yet
    std::uint64_t looks = 0;  // so many so far
  };
  [[nodiscard]] Look look() const;
  // Blocks until the devices were looked at for the first time, or NVML did not begin, for
  // `patience` at most.
  void await_first_look(Duration patience) const;
  // The next look, or the next attempt to begin, comes at once, and not after the usual time.
  void look_soon() const;

  // Ids of the processes, at most 3 s old; empty if the last look is older.
  [[nodiscard]] std::set<std::uint32_t> held_down() const;
  // Blocks until the devices were asked once more. False if NVML does not begin.
  bool await_look();
  // Makes no more calls. False if a call blocks for longer than `patience`. Then its thread is left
  // alone with its data, and the process must end by _exit(), because what the library does at the
  // end of a process may wait for that call.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Shared;

  std::string library_;
  Duration patience_;
  std::string not_loaded_;          // why the library cannot be opened
  std::shared_ptr<Shared> shared_;  // null: no library, or ended
  std::thread thread_;
};

}  // namespace antdt::antdtd
