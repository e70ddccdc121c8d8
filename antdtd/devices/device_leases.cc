#include "antdtd/devices/device_leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "core/check.h"

namespace antdt::antdtd::leases {
namespace {

constexpr std::string_view kGone = "the driver does not list it any more";

bool is(const wire::LeasedDevice& leased, const wire::HostDevice& device) {
  if (leased.uuid.empty()) return device.uuid.empty() && leased.index == device.index;
  return leased.uuid == device.uuid;
}

wire::LeasedDevice leased(const wire::HostDevice& device) {
  return {device.uuid, device.index, device.mig, device.mig_index};
}

std::string described(const wire::LeasedDevice& device) {
  wire::HostDevice named;
  named.index = device.index;
  named.mig = device.mig;
  named.mig_index = device.mig_index;
  return device.uuid.empty() ? short_name(named)
                             : fmt::format("{} ({})", short_name(named), device.uuid);
}

std::string gpus(std::uint64_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

// A role's letter if all its processes on this host are one lease, else the worker.
std::string party_of(const LeaseWanted& e) {
  const WorkerId worker = e.key.member.worker;
  return e.size > 1 ? std::string(1, worker.role) : to_string(worker);
}
std::string party_of(const LeaseFound& e) {
  const WorkerId worker = e.key.member.worker;
  return e.lease.devices.size() > e.lease.each ? std::string(1, worker.role) : to_string(worker);
}

// A process can use only one MIG instance, so it could not count its devices from its local rank.
// Nor could it if others of its lease had the same device.
bool must_be_isolated(const std::vector<wire::LeasedDevice>& devices, std::uint32_t each) {
  if (each > 1) return true;
  std::set<std::string> different;
  for (const wire::LeasedDevice& device : devices) {
    if (device.mig) return true;
    different.insert(device.uuid);
  }
  return devices.size() == 1 || different.size() < devices.size();
}

}  // namespace

std::vector<wire::HostDevice> counted_devices(std::uint32_t count) {
  std::vector<wire::HostDevice> devices(count);
  for (std::uint32_t i = 0; i < count; ++i) devices[i].index = i;
  return devices;
}

DevicesSeen seen_without_nvml(const std::string& why, bool loaded, std::uint32_t counted) {
  if (loaded && counted > 0) return {{}, why, ""};
  return {counted_devices(counted), "", why};
}

DeviceLeases::DeviceLeases(std::uint32_t counted) : devices_(counted_devices(counted)) {}

void DeviceLeases::step(const Input& input, Effects& out) {
  std::visit([&](const auto& i) { on(i, out); }, input);
  trouble_ = trouble_now();
  check_invariants();
}

void DeviceLeases::check_invariants() const {
  std::set<std::pair<std::string, Member>> holders;
  for (const Lease& lease : leases_) {
    ANTDT_CHECK(!lease.places.empty(), "a lease of job {} has no process", lease.job);
    std::map<std::uint32_t, WorkerId> at;
    for (const auto& [member, place] : lease.places) {
      ANTDT_CHECK(holders.emplace(lease.job, member).second, "{} is in two leases",
                  describe({lease.job, member}));
      const auto other = at.emplace(place, member.worker).first;
      ANTDT_CHECK(other->second == member.worker, "{} and {} of job {} have place {} of one lease",
                  other->second, member.worker, lease.job, place);
    }
    for (const Lease& other : leases_) {
      if (&other == &lease || (lease.shared && other.shared)) continue;
      for (const wire::LeasedDevice& device : lease.devices) {
        ANTDT_CHECK(std::ranges::find(other.devices, device) == other.devices.end(),
                    "{} is leased to jobs {} and {}, which do not both share it", described(device),
                    lease.job, other.job);
      }
    }
  }
}

// ------------------------------------------------------------------- devices

// from: healthy or unhealthy, to: either. A leased device that is not listed any more stays known
// until its last lease ends. One that does not tell its UUID any more is recognised by its index.
void DeviceLeases::on(const DevicesSeen& e, Effects& out) {
  const std::vector<std::string> before = problems();
  seen_trouble_ = e.trouble;
  only_counted_ = e.only_counted;
  trouble_ = trouble_now();
  if (!trouble_.empty()) return;
  std::vector<wire::HostDevice> now = e.devices;
  for (const Lease& lease : leases_) {
    for (const wire::LeasedDevice& device : lease.devices) {
      if (std::ranges::any_of(now, [&](const auto& d) { return is(device, d); })) continue;
      const auto nameless = std::ranges::find_if(now, [&](const wire::HostDevice& d) {
        return d.uuid.empty() && !d.problem.empty() && d.index == device.index;
      });
      if (nameless != now.end()) {
        nameless->uuid = device.uuid;
        continue;
      }
      const wire::HostDevice* const known_before = known(device);
      wire::HostDevice& kept =
          now.emplace_back(known_before == nullptr ? wire::HostDevice{} : *known_before);
      kept.uuid = device.uuid;
      kept.index = device.index;
      kept.mig = device.mig;
      kept.mig_index = device.mig_index;
      kept.problem = kGone;
    }
  }
  devices_ = std::move(now);
  std::ranges::sort(devices_, {}, [](const wire::HostDevice& d) {
    return std::tuple(d.index, d.mig, d.mig_index, d.uuid);
  });
  for (const Lease& lease : leases_) {
    for (const auto& [member, place] : lease.places) {
      const ProcessKey key{lease.job, member};
      for (const wire::LeasedDevice& device : devices_at(lease.devices, lease.each, place)) {
        const std::string problem = problem_of(device);
        const std::string mark = described(device) + describe(key);
        if (problem.empty() || std::ranges::find(before, mark) != before.end()) continue;
        out.emplace_back(TellDeviceTrouble{key, problem});
      }
    }
  }
}

std::string DeviceLeases::trouble_now() const {
  if (!seen_trouble_.empty() || only_counted_.empty()) return seen_trouble_;
  const std::set<std::string> uuids = leased_uuids();
  const bool named = std::ranges::any_of(uuids, [](const auto& uuid) { return !uuid.empty(); });
  if (!named) return "";
  return fmt::format(
      "processes here have GPUs that were leased by UUID, and without NVML this agent cannot tell "
      "which of the counted GPUs those are. {}",
      only_counted_);
}

std::vector<std::string> DeviceLeases::problems() const {
  std::vector<std::string> all;
  for (const Lease& lease : leases_) {
    for (const auto& [member, place] : lease.places) {
      for (const wire::LeasedDevice& device : devices_at(lease.devices, lease.each, place)) {
        if (!is_healthy(device)) all.push_back(described(device) + describe({lease.job, member}));
      }
    }
  }
  return all;
}

const wire::HostDevice* DeviceLeases::known(const wire::LeasedDevice& leased) const {
  const auto found = std::ranges::find_if(devices_, [&](const auto& d) { return is(leased, d); });
  return found == devices_.end() ? nullptr : &*found;
}

std::string DeviceLeases::problem_of(const wire::LeasedDevice& leased) const {
  const wire::HostDevice* const device = known(leased);
  if (device == nullptr && !trouble_.empty()) return "";  // an earlier agent leased it
  if (device == nullptr) return fmt::format("{}: {}", described(leased), kGone);
  return device->problem.empty() ? "" : fmt::format("{}: {}", described(leased), device->problem);
}

std::string DeviceLeases::problem_of(const wire::DeviceLease& lease) const {
  std::string all;
  for (const wire::LeasedDevice& device : own_devices(lease)) {
    const std::string problem = problem_of(device);
    if (!problem.empty()) all += (all.empty() ? "" : "; ") + problem;
  }
  return all;
}

bool DeviceLeases::is_healthy(const wire::LeasedDevice& leased) const {
  return problem_of(leased).empty();
}

// -------------------------------------------------------------------- leases

// from: (none), to: held, if there are enough devices. Or from: held, to: held.
void DeviceLeases::on(const LeaseWanted& e, Effects& out) {
  if (!trouble_.empty()) {
    out.emplace_back(RefuseLease{
        e.key,
        fmt::format("it asks for {}, and this host leases none now: {}", gpus(e.each), trouble_)});
    return;
  }
  Lease* lease = joinable(e);
  if (lease == nullptr) {
    std::vector<wire::LeasedDevice> devices = choose(e);
    if (devices.size() < std::size_t{e.each} * e.size) {
      out.emplace_back(RefuseLease{e.key, shortage(e)});
      return;
    }
    lease = &leases_.emplace_back(
        Lease{e.key.job, party_of(e), e.each, e.shared, std::move(devices), {}});
  }
  lease->places[e.key.member] = e.place;
  out.emplace_back(GrantLease{e.key, granted(*lease, e)});
}

DeviceLeases::Lease* DeviceLeases::joinable(const LeaseWanted& e) {
  const auto may_join = [&](const Lease& lease) {
    if (lease.job != e.key.job || lease.party != party_of(e) || lease.each != e.each ||
        lease.shared != e.shared || lease.devices.size() != std::size_t{e.each} * e.size) {
      return false;
    }
    const bool taken = std::ranges::any_of(lease.places, [&](const auto& entry) {
      return entry.second == e.place && entry.first.worker != e.key.member.worker;
    });
    return !taken &&
           std::ranges::all_of(lease.devices, [this](const auto& d) { return is_healthy(d); });
  };
  const auto found = std::find_if(leases_.rbegin(), leases_.rend(), may_join);
  return found == leases_.rend() ? nullptr : &*found;
}

std::size_t DeviceLeases::uses(const wire::HostDevice& device) const {
  std::size_t count = 0;
  for (const Lease& lease : leases_) {
    count += static_cast<std::size_t>(
        std::ranges::count_if(lease.devices, [&](const auto& d) { return is(d, device); }));
  }
  return count;
}

bool DeviceLeases::may_take(const wire::HostDevice& device, bool shared) const {
  if (!device.problem.empty() || device.elsewhere) return false;
  return std::ranges::none_of(leases_, [&](const Lease& lease) {
    return !(shared && lease.shared) &&
           std::ranges::any_of(lease.devices, [&](const auto& d) { return is(d, device); });
  });
}

// Whole GPUs, or else MIG instances if one is enough for each process. Shared devices are the least
// used ones, each for as many places as it takes.
std::vector<wire::LeasedDevice> DeviceLeases::choose(const LeaseWanted& e) const {
  std::vector<wire::LeasedDevice> chosen;
  for (const bool mig : {false, true}) {
    if (mig && e.each > 1) break;
    std::vector<std::pair<std::size_t, const wire::HostDevice*>> usable;  // with the uses of each
    for (const wire::HostDevice& device : devices_) {
      if (device.mig == mig && may_take(device, e.shared))
        usable.emplace_back(uses(device), &device);
    }
    const std::size_t needed = e.shared ? e.each : std::size_t{e.each} * e.size;
    if (usable.size() < needed) continue;
    for (std::uint32_t place = 0; place < e.size; ++place) {
      std::ranges::stable_sort(usable, {}, [](const auto& entry) { return entry.first; });
      std::vector<const wire::HostDevice*> own;
      for (std::uint32_t i = 0; i < e.each; ++i) {
        own.push_back(usable[i].second);
        ++usable[i].first;
      }
      std::ranges::sort(own);  // the order of devices_
      for (const wire::HostDevice* device : own) chosen.push_back(leased(*device));
    }
    return chosen;
  }
  return chosen;
}

std::string DeviceLeases::shortage(const LeaseWanted& e) const {
  std::string text = fmt::format("it asks for {}", gpus(e.each));
  if (e.shared) text += " that others may share";
  if (e.size > 1) {
    text += fmt::format(", {} with the {} processes of its role here",
                        gpus(std::uint64_t{e.each} * e.size), e.size);
  }
  std::size_t taken = 0;
  std::size_t elsewhere = 0;
  std::size_t instances = 0;
  std::string others;
  for (const wire::HostDevice& device : devices_) {
    if (device.mig) ++instances;
    if (!device.problem.empty()) {
      others += fmt::format("; {} is not healthy: {}", short_name(device), device.problem);
    } else if (device.elsewhere) {
      ++elsewhere;
      others += fmt::format("; {} is leased by another agent of this machine", short_name(device));
    } else if (!may_take(device, e.shared)) {
      ++taken;
    }
  }
  text += fmt::format(", and of the {} here {} {} leased", devices_.size(), taken,
                      taken == 1 ? "is" : "are");
  if (instances > 0 && e.each > 1) {
    text += fmt::format("; {} of them are MIG instances, of which a process can use only one",
                        instances);
  }
  if (elsewhere > 0) {
    others += "; the log of this agent says how to find the process that claims a GPU elsewhere";
  }
  return text + others;
}

wire::DeviceLease DeviceLeases::granted(const Lease& lease, const LeaseWanted& e) const {
  wire::DeviceLease given{lease.devices, lease.each, e.place, lease.shared, true, {}, -1};
  given.isolated = must_be_isolated(lease.devices, lease.each);
  if (!e.bound) return given;
  std::set<std::string> cpus;
  std::set<std::int32_t> nodes;
  for (const wire::LeasedDevice& own : own_devices(given)) {
    const wire::HostDevice* const device = known(own);
    cpus.insert(device->cpus);
    nodes.insert(device->numa_node);
  }
  if (!cpus.contains("")) given.cpus = fmt::format("{}", fmt::join(cpus, ","));
  if (nodes.size() == 1) given.numa_node = *nodes.begin();
  return given;
}

// from: (none), to: held. The device's present health is told again, because the earlier agent may
// not have come to that.
void DeviceLeases::on(const LeaseFound& e, Effects& out) {
  if (e.lease.devices.empty() || contradicts(e)) return;
  const std::string party = party_of(e);
  const auto same = std::ranges::find_if(leases_, [&](const Lease& lease) {
    return lease.job == e.key.job && lease.party == party && lease.each == e.lease.each &&
           lease.shared == e.lease.shared && lease.devices == e.lease.devices;
  });
  Lease& lease = same != leases_.end()
                     ? *same
                     : leases_.emplace_back(Lease{
                           e.key.job, party, e.lease.each, e.lease.shared, e.lease.devices, {}});
  lease.places[e.key.member] = e.lease.place;
  trouble_ = trouble_now();
  const std::string problem = trouble_.empty() ? problem_of(e.lease) : "";
  if (!problem.empty()) out.emplace_back(TellDeviceTrouble{e.key, problem});
}

// Only a damaged state directory contradicts itself. Its process runs on without a lease.
bool DeviceLeases::contradicts(const LeaseFound& e) const {
  return std::ranges::any_of(leases_, [&](const Lease& lease) {
    const bool same = lease.job == e.key.job && lease.party == party_of(e) &&
                      lease.each == e.lease.each && lease.shared == e.lease.shared &&
                      lease.devices == e.lease.devices;
    if (same) {
      return std::ranges::any_of(lease.places, [&](const auto& entry) {
        return entry.second == e.lease.place && entry.first.worker != e.key.member.worker;
      });
    }
    const bool meets = std::ranges::any_of(e.lease.devices, [&](const auto& device) {
      return std::ranges::find(lease.devices, device) != lease.devices.end();
    });
    return (meets && !(lease.shared && e.lease.shared)) ||
           (lease.job == e.key.job && lease.places.contains(e.key.member));
  });
}

// from: held, to: held or (none)
void DeviceLeases::on(const LeaseEnded& e, Effects&) {
  for (auto lease = leases_.begin(); lease != leases_.end(); ++lease) {
    if (lease->job != e.key.job || lease->places.erase(e.key.member) == 0) continue;
    if (lease->places.empty()) leases_.erase(lease);
    return;
  }
}

// ------------------------------------------------------------------- queries

std::uint32_t DeviceLeases::free() const {
  if (!trouble_.empty()) return 0;
  return static_cast<std::uint32_t>(
      std::ranges::count_if(devices_, [this](const auto& d) { return may_take(d, false); }));
}

std::uint32_t DeviceLeases::sharable() const {
  if (!trouble_.empty()) return 0;
  return static_cast<std::uint32_t>(
      std::ranges::count_if(devices_, [this](const auto& d) { return may_take(d, true); }));
}

std::set<std::string> DeviceLeases::leased_uuids() const {
  std::set<std::string> uuids;
  for (const Lease& lease : leases_) {
    for (const wire::LeasedDevice& device : lease.devices) uuids.insert(device.uuid);
  }
  return uuids;
}

bool DeviceLeases::holds(const ProcessKey& key) const {
  return std::ranges::any_of(leases_, [&](const Lease& lease) {
    return lease.job == key.job && lease.places.contains(key.member);
  });
}

std::vector<wire::HostDevice> DeviceLeases::devices() const {
  std::vector<wire::HostDevice> all = devices_;
  for (wire::HostDevice& device : all) {
    for (const Lease& lease : leases_) {
      for (const auto& [member, place] : lease.places) {
        const auto own = devices_at(lease.devices, lease.each, place);
        if (std::ranges::none_of(own, [&](const auto& d) { return is(d, device); })) continue;
        device.holders.push_back({lease.job, "", member.worker, member.attempt});
        device.shared = lease.shared;
      }
    }
  }
  return all;
}

}  // namespace antdt::antdtd::leases
