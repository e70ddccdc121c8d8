// Which process of which job has which accelerators of this host. docs/machines.md describes the
// shape of a machine; supervision (antdtd/processes/supervision.h) drives this one.
//
// A lease is of one process, or of all processes of a script under torchrun's protocol on this
// host, which see one another's devices (docs/operations/devices.md):
//
//   (none) ──LeaseWanted, enough healthy devices are free──> held     (GrantLease)
//   (none) ──LeaseWanted, they are not──> (none)                      (RefuseLease)
//   (none) ──LeaseFound──> held        an earlier agent granted it
//   held ──LeaseWanted by another process of the lease, or by a later attempt──> held  (GrantLease)
//   held ──LeaseEnded, of its last process──> (none)
//
// Each device:
//
//   healthy ──DevicesSeen with a problem, or without the device──> unhealthy
//       ^                     (TellDeviceTrouble to each process that holds it)     │
//       └────────────────────────DevicesSeen without a problem──────────────────────┘
//
// An unhealthy device stays with the processes that hold it and is given to no other. While NVML
// does not answer (DevicesSeen with `trouble`) nothing is granted, because nobody knows the
// devices' health. Nor is anything while devices are only counted and a lease is of one that NVML
// named, because nobody knows which of those counted it is.
//
// Nothing is durable here: the agent stores each lease with its process, before the process starts.
//
// Invariants:
//  - a device is in one lease, unless all leases that have it are shared;
//  - no two processes of a lease have the same place, unless they are attempts of one worker;
//  - a lease has a process, and a process is in one lease.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/wire/device/device.h"

namespace antdt::antdtd {

namespace leases {

// What the host has now. `trouble`: why nobody knows; then `devices` has no meaning.
struct DevicesSeen {
  std::vector<wire::HostDevice> devices;
  std::string trouble;
  std::string only_counted = {};  // why they are counted only; "": NVML tells of them
};
struct LeaseWanted {
  ProcessKey key;
  std::uint32_t each = 0;  // devices for each process of the lease; at least 1
  bool shared = false;
  // Whether CPUs and memory of the process are to be those nearest to its devices.
  bool bound = true;
  // The process's place among the `size` processes of the lease.
  std::uint32_t place = 0;
  std::uint32_t size = 1;
};
// An earlier agent granted this lease to a process that lives.
struct LeaseFound {
  ProcessKey key;
  wire::DeviceLease lease;
};
struct LeaseEnded {
  ProcessKey key;
};
using Input = std::variant<DevicesSeen, LeaseWanted, LeaseFound, LeaseEnded>;

struct GrantLease {
  ProcessKey key;
  wire::DeviceLease lease;
};
struct RefuseLease {
  ProcessKey key;
  std::string reason;  // the end of a sentence about the process
};
struct TellDeviceTrouble {
  ProcessKey key;
  std::string problem;
};
using Effect = std::variant<GrantLease, RefuseLease, TellDeviceTrouble>;
using Effects = std::vector<Effect>;

// The devices of a host of which only their number is known (/dev/nvidia<n>). A lease of such a
// device has no UUID, and its process sees all devices of the host.
[[nodiscard]] std::vector<wire::HostDevice> counted_devices(std::uint32_t count);

// What is seen of a host of which NVML tells nothing (`why`) and that counts so many devices. If
// the library is there (`loaded`) they are not leased: NVML may name them yet, and a process with
// devices that are only counted sees all of them.
[[nodiscard]] DevicesSeen seen_without_nvml(const std::string& why, bool loaded,
                                            std::uint32_t counted);

class DeviceLeases {
 public:
  // `counted`: so many devices, until DevicesSeen says more of them.
  explicit DeviceLeases(std::uint32_t counted = 0);

  void step(const Input& input, Effects& out);

  // ---- queries
  // How many devices can be leased now, by processes that do not share them, and by one that does.
  [[nodiscard]] std::uint32_t free() const;
  [[nodiscard]] std::uint32_t sharable() const;
  // All devices with the jobs and workers that hold them; the holders' users are left empty.
  [[nodiscard]] std::vector<wire::HostDevice> devices() const;
  // The UUIDs of the devices in leases, those of processes that have yet to begin included.
  [[nodiscard]] std::set<std::string> leased_uuids() const;
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] bool holds(const ProcessKey& key) const;
  // What is wrong with the devices of a process; "": nothing.
  [[nodiscard]] std::string problem_of(const wire::DeviceLease& lease) const;

 private:
  struct Lease {
    std::string job;
    std::string party;  // who may be in it: a role's letter, or one worker
    std::uint32_t each = 0;
    bool shared = false;
    std::vector<wire::LeasedDevice> devices;
    std::map<Member, std::uint32_t> places;
  };

  void on(const DevicesSeen& e, Effects& out);
  void on(const LeaseWanted& e, Effects& out);
  void on(const LeaseFound& e, Effects& out);
  void on(const LeaseEnded& e, Effects& out);

  [[nodiscard]] const wire::HostDevice* known(const wire::LeasedDevice& leased) const;
  [[nodiscard]] bool is_healthy(const wire::LeasedDevice& leased) const;
  [[nodiscard]] std::string problem_of(const wire::LeasedDevice& leased) const;
  // Why nothing is known of the devices, as follows from the last DevicesSeen and the leases.
  [[nodiscard]] std::string trouble_now() const;
  // How many places of leases a device is in.
  [[nodiscard]] std::size_t uses(const wire::HostDevice& device) const;
  [[nodiscard]] bool may_take(const wire::HostDevice& device, bool shared) const;
  // The newest lease that the process may join, or null.
  [[nodiscard]] Lease* joinable(const LeaseWanted& e);
  // Devices for all places of a new lease; too few if there are not enough.
  [[nodiscard]] std::vector<wire::LeasedDevice> choose(const LeaseWanted& e) const;
  [[nodiscard]] std::string shortage(const LeaseWanted& e) const;
  [[nodiscard]] wire::DeviceLease granted(const Lease& lease, const LeaseWanted& e) const;
  [[nodiscard]] bool contradicts(const LeaseFound& e) const;
  [[nodiscard]] std::vector<std::string> problems()
      const;  // of leased devices, each with its holder
  void check_invariants() const;

  std::vector<wire::HostDevice> devices_;
  std::string seen_trouble_;
  std::string only_counted_;
  std::string trouble_;        // trouble_now()
  std::vector<Lease> leases_;  // the newest last
};

}  // namespace leases

using leases::DeviceLeases;

}  // namespace antdt::antdtd
