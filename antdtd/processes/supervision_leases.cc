// What live processes lease, and whether one more fits.
#include <algorithm>
#include <cmath>

#include "antdtd/processes/supervision.h"

namespace antdt::antdtd::supervision {
namespace {

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

// Leases are sums of decimal fractions of a CPU.
constexpr double kCpuTolerance = 1e-6;

// More processes of one role than any host has CPUs. A lease lists the devices of each.
constexpr std::uint32_t kMaxLocalSize = 4096;

}  // namespace

Capacity Supervision::free_without(const ProcessKey* except) const {
  Capacity left = capacity_;
  for (const auto& [name, job] : jobs_) {
    for (const auto& [member, process] : job.processes) {
      const bool same =
          except != nullptr && name == except->job && member.worker == except->member.worker;
      if (!process.live() || same) continue;
      left.cpus -= process.start->cpus;
      left.memory_bytes -= std::min(left.memory_bytes, process.start->memory_bytes);
    }
  }
  left.cpus = std::max(left.cpus, 0.0);
  left.devices = devices_.free();
  return left;
}

Capacity Supervision::free() const { return free_without(nullptr); }

std::string Supervision::misfit(const wire::StartProcess& start, const ProcessKey& key) const {
  const Capacity left = free_without(&key);
  if (start.cpus <= left.cpus + kCpuTolerance && start.memory_bytes <= left.memory_bytes) {
    return {};
  }
  return fmt::format(
      "no room for {}: it asks for {:.6g} cpus and {:.2f} GiB of memory; free here are {:.6g} of "
      "{:.6g} cpus and {:.2f} of {:.2f} GiB",
      describe(key), start.cpus, gib(start.memory_bytes), left.cpus, capacity_.cpus,
      gib(left.memory_bytes), gib(capacity_.memory_bytes));
}

// Leases are added up, so one number that is no amount would make those of all jobs wrong.
std::string Supervision::unsound(const wire::StartProcess& start) {
  if (!std::isfinite(start.cpus) || start.cpus < 0) {
    return fmt::format("it asks for {} cpus, and an amount is a finite number from 0", start.cpus);
  }
  if (start.local_size > kMaxLocalSize) {
    return fmt::format("it says that its role has {} processes on this host, and {} are the most",
                       start.local_size, kMaxLocalSize);
  }
  if (start.local_rank >= std::max(1U, start.local_size)) {
    return fmt::format("it says that it has local rank {} of {}; local ranks count from 0",
                       start.local_rank, start.local_size);
  }
  return {};
}

StartRequest Supervision::lease_devices(const StartWanted& e, Turn& turn) {
  const wire::StartProcess& start = *e.start;
  if (start.devices == 0) return e.start;
  leases::Effects effects;
  devices_.step(
      leases::LeaseWanted{e.key, start.devices, start.share_devices, start.bind_to_devices,
                          start.local_rank, std::max(1U, start.local_size)},
      effects);
  if (const auto* refused = std::get_if<leases::RefuseLease>(&effects.front())) {
    turn.add(RefuseStart{e.key, e.seq, wire::RefusalCode::kFull,
                         fmt::format("no room for {}: {}", describe(e.key), refused->reason)});
    return nullptr;
  }
  auto leased = std::make_shared<wire::StartProcess>(start);
  leased->lease = std::get<leases::GrantLease>(effects.front()).lease;
  return leased;
}

// An agent of an earlier release counted devices, so a process of it may have any of them.
void Supervision::find_lease(const ProcessKey& key, Process& process, Turn& turn) {
  leases::Effects effects;
  if (process.start->lease) {
    devices_.step(leases::LeaseFound{key, *process.start->lease}, effects);
    tell_trouble(effects, turn);
  } else if (process.start->devices > 0) {
    devices_.step(leases::LeaseWanted{key, process.start->devices}, effects);
  }
}

void Supervision::on(const leases::DevicesSeen& e, Turn& turn) {
  leases::Effects effects;
  devices_.step(e, effects);
  tell_trouble(effects, turn);
}

void Supervision::tell_trouble(const leases::Effects& effects, Turn& turn) {
  for (const leases::Effect& effect : effects) {
    const auto* trouble = std::get_if<leases::TellDeviceTrouble>(&effect);
    if (trouble != nullptr) turn.add(ReportDeviceTrouble{trouble->key, trouble->problem});
  }
}

// A process that did its work, or that its host ended for want of a daemon, did not fail by a
// device.
std::string Supervision::evidence_of_devices(const StartRequest& start,
                                             const ExitStatus& status) const {
  const bool failed = status.error.empty() && !status.orphaned && status.code != 0;
  return failed && start->lease ? devices_.problem_of(*start->lease) : "";
}

}  // namespace antdt::antdtd::supervision
