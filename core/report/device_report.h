// The part of a status report about the accelerators of a host, which `antdtd --show-devices`
// writes, too (core/report/json.h; docs/reports.md explains the fields).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/device/device_messages.h"

namespace antdt::report {

struct DeviceHolder {
  std::string job = {};  // empty: the job of another user
  std::string user = {};
  std::string worker = {};
  std::uint64_t attempt = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("job", m.job);
    v("user", m.user);
    v("worker", m.worker);
    v("attempt", m.attempt);
  }
};

struct HostDevice {
  std::string name = {};  // "GPU 3", "GPU 3 MIG 1"
  std::string uuid = {};
  std::string model = {};
  std::uint64_t memory_bytes = 0;
  std::string pci = {};
  std::int64_t numa_node = -1;
  std::string cpus = {};
  std::string problem = {};
  bool elsewhere = false;
  bool shared = false;
  std::vector<DeviceHolder> holders = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("name", m.name);
    v("uuid", m.uuid);
    v("model", m.model);
    v("memory_bytes", m.memory_bytes);
    v("pci", m.pci);
    v("numa_node", m.numa_node);
    v("cpus", m.cpus);
    v("problem", m.problem);
    v.later("elsewhere", m.elsewhere);
    v("shared", m.shared);
    v("holders", m.holders);
  }
};

struct HostDevices {
  std::uint64_t free = 0;
  std::uint64_t sharable = 0;
  std::string trouble = {};
  std::vector<HostDevice> list = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("free", m.free);
    v("sharable", m.sharable);
    v("trouble", m.trouble);
    v("list", m.list);
  }
};

[[nodiscard]] inline HostDevices report_of(const wire::HostDevices& told) {
  HostDevices out{told.free, told.sharable, told.trouble, {}};
  for (const wire::HostDevice& d : told.devices) {
    HostDevice& device = out.list.emplace_back(HostDevice{short_name(d),
                                                          d.uuid,
                                                          d.name,
                                                          d.memory_bytes,
                                                          d.pci,
                                                          d.numa_node,
                                                          d.cpus,
                                                          d.problem,
                                                          d.elsewhere,
                                                          d.shared,
                                                          {}});
    for (const wire::DeviceHolder& h : d.holders) {
      device.holders.push_back({h.job, h.user, to_string(h.worker), h.attempt.value});
    }
  }
  return out;
}

}  // namespace antdt::report
