// Messages about the accelerators of a host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/device/device.h"
#include "core/wire/message.h"

namespace antdt::wire {

// Agent to the daemons of all jobs that are attached, when devices, their health or their holders
// change; also a part of its welcome. The jobs of other users are not named.
struct HostDevices {
  std::string host;
  std::vector<HostDevice> devices;
  std::string trouble;         // why none is leased now; "": nothing is wrong
  bool pending = false;        // the devices are looked at for the first time, and that may take
  std::uint32_t free = 0;      // how many more can be leased by one process alone
  std::uint32_t sharable = 0;  // how many can be leased by a process that shares them
  bool operator==(const HostDevices&) const = default;
  ANTDT_MESSAGE("host-devices") {
    v("host", m.host);
    v("devices", m.devices);
    v("trouble", m.trouble);
    v("pending", m.pending);
    v("free", m.free);
    v("sharable", m.sharable);
  }
};

// Agent to the daemon of the job of a process: a device that the process has under lease is not
// healthy any more. (The envelope does not name the process, because an older job daemon would take
// the message for one of the process.)
struct DeviceTrouble {
  WorkerId worker;
  Attempt attempt;
  std::string problem;  // "GPU 3 (GPU-8f2c…): it has fallen off the bus"
  ANTDT_MESSAGE("device-trouble") {
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("problem", m.problem);
  }
};

}  // namespace antdt::wire
