// A host whose devices are leased in a test, and what a process then finds in its environment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "antdtd/devices/device_leases.h"
#include "antdtd/devices/visible_devices.h"

namespace antdt::antdtd {

inline wire::HostDevice gpu(std::uint32_t index, std::string problem = "") {
  wire::HostDevice device;
  device.index = index;
  device.uuid = "GPU-" + std::string(1, static_cast<char>('a' + index));
  device.cpus = index < 2 ? "0-15" : "16-31";
  device.numa_node = index < 2 ? 0 : 1;
  device.problem = std::move(problem);
  return device;
}
inline wire::HostDevice instance(std::uint32_t index, std::uint32_t mig) {
  wire::HostDevice device = gpu(index);
  device.mig = true;
  device.mig_index = mig;
  device.uuid = "MIG-" + std::to_string(index) + std::to_string(mig);
  return device;
}
inline ProcessKey worker(const std::string& job, std::uint32_t index, std::uint32_t attempt = 1) {
  return {job, {WorkerId{'w', index}, Attempt{attempt}}};
}
inline leases::LeaseWanted want(const ProcessKey& key, std::uint32_t each = 1) {
  leases::LeaseWanted wanted;
  wanted.key = key;
  wanted.each = each;
  return wanted;
}
inline leases::LeaseWanted share(const ProcessKey& key, std::uint32_t each = 1) {
  leases::LeaseWanted wanted = want(key, each);
  wanted.shared = true;
  return wanted;
}
// One of `size` processes that see one another's devices.
inline leases::LeaseWanted rank(const ProcessKey& key, std::uint32_t place, std::uint32_t size) {
  leases::LeaseWanted wanted = want(key);
  wanted.place = place;
  wanted.size = size;
  return wanted;
}

// The machine with its effects.
class Host {
 public:
  explicit Host(std::vector<wire::HostDevice> devices, std::string trouble = "") {
    see(std::move(devices), std::move(trouble));
  }
  void see(std::vector<wire::HostDevice> devices, std::string trouble = "") {
    told_.clear();
    leases_.step(leases::DevicesSeen{std::move(devices), std::move(trouble)}, told_);
  }
  // The UUIDs of the process's own devices; the reason of a refusal.
  std::vector<std::string> take(const leases::LeaseWanted& wanted) {
    leases::Effects effects;
    leases_.step(wanted, effects);
    if (const auto* refused = std::get_if<leases::RefuseLease>(&effects.front())) {
      return {"refused: " + refused->reason};
    }
    last_ = std::get<leases::GrantLease>(effects.front()).lease;
    std::vector<std::string> uuids;
    for (const auto& device : own_devices(last_)) uuids.push_back(device.uuid);
    return uuids;
  }
  void end(const ProcessKey& key) {
    leases::Effects none;
    leases_.step(leases::LeaseEnded{key}, none);
  }
  [[nodiscard]] std::vector<std::string> troubles() const {
    std::vector<std::string> all;
    for (const leases::Effect& effect : told_) {
      const auto& trouble = std::get<leases::TellDeviceTrouble>(effect);
      all.push_back(describe(trouble.key) + ": " + trouble.problem);
    }
    return all;
  }
  [[nodiscard]] const wire::DeviceLease& last() const { return last_; }
  [[nodiscard]] DeviceLeases& machine() { return leases_; }

 private:
  DeviceLeases leases_;
  leases::Effects told_;
  wire::DeviceLease last_;
};

inline std::string value(const std::vector<wire::EnvVar>& env, const std::string& name) {
  const auto found =
      std::find_if(env.rbegin(), env.rend(), [&](const wire::EnvVar& v) { return v.name == name; });
  return found == env.rend() ? "(unset)" : found->value;
}
inline std::vector<wire::EnvVar> environment(const wire::DeviceLease& lease,
                                             std::vector<wire::EnvVar> of_job = {}) {
  wire::StartProcess start;
  start.env = std::move(of_job);
  start.lease = lease;
  return environment_with_devices(start);
}

}  // namespace antdt::antdtd
