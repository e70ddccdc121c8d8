// An accelerator of a host as its agent sees it, and a lease of such devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// A process that has a device under lease.
struct DeviceHolder {
  std::string job;  // "": the job of another user, which whoever asks may not see
  std::string user;
  WorkerId worker;
  Attempt attempt;
  bool operator==(const DeviceHolder&) const = default;
  ANTDT_PART {
    v("job", m.job);
    v("user", m.user);
    v("worker", m.worker);
    v("attempt", m.attempt);
  }
};

// A GPU, or one instance of a GPU that is divided by MIG.
struct HostDevice {
  std::uint32_t index = 0;      // NVML's index of the GPU, in the order of PCI bus ids
  bool mig = false;             // a MIG instance of that GPU
  std::uint32_t mig_index = 0;  // its index on the GPU
  // "GPU-…" or "MIG-…". "" if the host only counts its devices (/dev/nvidia<n>) because it has no
  // NVML, or if the device does not tell it any more.
  std::string uuid;
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::string pci;               // "00000000:3B:00.0"
  std::int32_t numa_node = -1;   // the nearest one; -1: unknown
  std::string cpus;              // the nearest ones, as "0-15,32-47"; "": unknown
  std::string problem;           // why it is not leased; "": it is healthy
  bool elsewhere = false;        // another agent of the machine has leased it
  std::string clocks_held_down;  // by what ("heat", "a power limit"); "": by nothing
  std::uint32_t utilisation_percent = 0;
  std::uint32_t clock_mhz = 0;  // of its processors, now and at most; 0: unknown
  std::uint32_t most_clock_mhz = 0;
  bool shared = false;  // its holders agreed to share it
  std::vector<DeviceHolder> holders;
  bool operator==(const HostDevice&) const = default;
  ANTDT_PART {
    v("index", m.index);
    v("mig", m.mig);
    v("mig_index", m.mig_index);
    v("uuid", m.uuid);
    v("name", m.name);
    v("memory_bytes", m.memory_bytes);
    v("pci", m.pci);
    v("numa_node", m.numa_node);
    v("cpus", m.cpus);
    v("problem", m.problem);
    v("elsewhere", m.elsewhere);
    v("clocks_held_down", m.clocks_held_down);
    v("utilisation_percent", m.utilisation_percent);
    v("clock_mhz", m.clock_mhz);
    v("most_clock_mhz", m.most_clock_mhz);
    v("shared", m.shared);
    v("holders", m.holders);
  }
};

// "GPU 3", "GPU 3 MIG 1"
[[nodiscard]] inline std::string short_name(const HostDevice& device) {
  std::string name = "GPU " + std::to_string(device.index);
  if (device.mig) name += " MIG " + std::to_string(device.mig_index);
  return name;
}

struct LeasedDevice {
  std::string uuid;  // as in HostDevice
  std::uint32_t index = 0;
  bool mig = false;
  std::uint32_t mig_index = 0;
  bool operator==(const LeasedDevice&) const = default;
  ANTDT_PART {
    v("uuid", m.uuid);
    v("index", m.index);
    v("mig", m.mig);
    v("mig_index", m.mig_index);
  }
};

// The devices of one process. The processes of a script under torchrun's protocol lease theirs on a
// host together; any other process is the only one of its lease.
struct DeviceLease {
  std::vector<LeasedDevice> devices;  // of all processes of the lease, in the order of local ranks
  std::uint32_t each = 0;             // how many of them each process has
  std::uint32_t place = 0;            // the process's local rank: its devices begin at place * each
  bool shared = false;                // other leases that are shared may have the same devices
  bool isolated = true;  // the process sees its own devices only, else all of `devices`
  // The CPUs ("0-15") and the NUMA node to which the process is bound; "" and -1: it is not.
  std::string cpus;
  std::int32_t numa_node = -1;
  bool operator==(const DeviceLease&) const = default;
  ANTDT_PART {
    v("devices", m.devices);
    v("each", m.each);
    v("place", m.place);
    v("shared", m.shared);
    v("isolated", m.isolated);
    v("cpus", m.cpus);
    v("numa_node", m.numa_node);
  }
};

// The devices of the process with this local rank.
[[nodiscard]] inline std::vector<LeasedDevice> devices_at(const std::vector<LeasedDevice>& devices,
                                                          std::uint32_t each, std::uint32_t place) {
  const std::size_t first = std::size_t{place} * each;
  std::vector<LeasedDevice> own;
  for (std::size_t i = first; i < first + each && i < devices.size(); ++i) {
    own.push_back(devices[i]);
  }
  return own;
}
[[nodiscard]] inline std::vector<LeasedDevice> own_devices(const DeviceLease& lease) {
  return devices_at(lease.devices, lease.each, lease.place);
}

}  // namespace antdt::wire
