// Reads the accelerators of this host from NVIDIA's management library (NVML). Every call may block
// for long if a device fails, so only the thread of accelerators.h makes them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "antdtd/devices/nvml_calls.h"
#include "core/result.h"
#include "core/wire/device/device.h"

namespace antdt::antdtd {

class Nvml {
 public:
  // An error if the library is missing or too old.
  [[nodiscard]] static Result<std::unique_ptr<Nvml>> open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // An error if the library cannot be initialised, or finds no device. To try again, open it again.
  [[nodiscard]] Status begin();

  struct Seen {
    std::vector<wire::HostDevice> devices;  // without holders
    // The processes on devices whose clocks are held down.
    std::set<std::uint32_t> held_down;
  };
  [[nodiscard]] Seen look();

 private:
  explicit Nvml(nvml::Calls calls) : calls_(std::move(calls)) {}
  [[nodiscard]] std::string words_of(int error) const;
  void look_at(unsigned index, Seen& seen);
  // Facts that do not change while the driver runs.
  [[nodiscard]] wire::HostDevice read_facts(nvml::Handle handle, unsigned index) const;
  [[nodiscard]] std::string read_problem(nvml::Handle handle) const;
  void read_state(nvml::Handle handle, wire::HostDevice& device, Seen& seen) const;
  void add_instances(nvml::Handle handle, const wire::HostDevice& gpu, Seen& seen) const;
  void add_processes(nvml::Handle handle, std::set<std::uint32_t>& pids) const;
  [[nodiscard]] std::string cpus_near(nvml::Handle handle) const;
  [[nodiscard]] std::int32_t node_near(nvml::Handle handle, const std::string& pci) const;

  nvml::Calls calls_;
  bool began_ = false;
  std::map<unsigned, wire::HostDevice> facts_;  // by index; a lost device is known by them
};

}  // namespace antdt::antdtd
