// The accelerators of the agent's host: it looks at them, tells the job daemons of them and of what
// is wrong with them, and keeps the end of a process back until its devices were looked at.
#include <algorithm>

#include "antdtd/agent/agent.h"
#include "antdtd/devices/visible_devices.h"
#include "antdtd/host/host.h"
#include "core/log/log.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

// A device that fails ends its process within milliseconds, before the next look at it. The end is
// reported when the device was looked at, so that it can say why.
constexpr Duration kLookPatience = std::chrono::seconds(3);
constexpr Duration kLookPeriod = std::chrono::milliseconds(20);

// Numbers that change all the time are no news.
wire::HostDevices without_numbers(wire::HostDevices told) {
  for (wire::HostDevice& device : told.devices) {
    device.utilisation_percent = device.clock_mhz = 0;
    device.clocks_held_down.clear();
  }
  return told;
}

}  // namespace

void Agent::look_at_devices() {
  claims_.keep_only(supervision_.devices().leased_uuids());
  const Accelerators::Look look = accelerators_.look();
  if (look.watched) {
    const auto pointer_to = [](const std::optional<std::string>& text) {
      return text ? text->c_str() : nullptr;
    };
    const char* const visible = pointer_to(options_.visible_devices);
    const std::string doubt =
        doubt_about_visible(look.devices, visible, pointer_to(options_.device_order));
    if (!doubt.empty() && doubt != told_doubt_) log_warn("{}", doubt);
    told_doubt_ = doubt;
    std::vector<wire::HostDevice> devices = visible_devices(look.devices, visible);
    for (wire::HostDevice& device : devices) {
      device.elsewhere = claims_.is_taken_elsewhere(device.uuid);
    }
    apply(leases::DevicesSeen{std::move(devices), look.trouble});
  } else {
    // A driver that begins late makes its devices late, too.
    const std::uint32_t counted = look.loaded ? count_devices() : options_.capacity.devices;
    apply(leases::seen_without_nvml(look.missing, look.loaded, counted));
  }
}

void Agent::see_devices() {
  look_at_devices();
  tell_devices();
}

// A process that was started is of a lease whose devices nobody else has, or the start fails. A
// machine without a directory for claims has agents that do not know of each other's leases.
Status Agent::claim_devices(const wire::StartProcess& start) {
  if (!start.lease) return {};
  for (const wire::LeasedDevice& device : start.lease->devices) {
    const Status claimed = claims_.take(device.uuid);
    if (claimed) continue;
    if (claimed.error().kind == ErrorKind::kRefused) {
      return fail(ErrorKind::kRefused, "another agent of this machine has just leased {}: {}",
                  device.uuid, claimed.error().message);
    }
    log_warn("other agents of this machine may lease {}, too: {}", device.uuid,
             claimed.error().message);
  }
  return {};
}

// The jobs of other users are not named.
wire::HostDevices Agent::devices_for(const UserIdentity& user) const {
  const DeviceLeases& leases = supervision_.devices();
  wire::HostDevices told{options_.host,    leases.devices(),
                         leases.trouble(), accelerators_.look().pending,
                         leases.free(),    leases.sharable()};
  for (wire::HostDevice& device : told.devices) {
    for (wire::DeviceHolder& holder : device.holders) {
      const UserIdentity& owner = sockets_->owner_of(holder.job);
      holder.user = owner.name;
      if (owner.uid != user.uid) holder.job.clear();
    }
  }
  return told;
}

void Agent::tell_devices() {
  wire::HostDevices now = without_numbers(devices_for(sockets_->own()));
  if (now == told_devices_) return;
  if (now.trouble.empty() && !told_devices_.trouble.empty()) {
    log_info("the state of the GPUs is known again, and they are leased again");
  } else if (now.trouble != told_devices_.trouble) {
    log_warn("no further GPU is leased: {}", now.trouble);
  }
  for (const wire::HostDevice& device : now.devices) {
    const auto before =
        std::ranges::find(told_devices_.devices, device.uuid, &wire::HostDevice::uuid);
    const bool is_new = before == told_devices_.devices.end();
    if (device.elsewhere && (is_new || !before->elsewhere)) {
      log_info(
          "{} ({}) is leased by another agent of this machine, or another process locks its claim "
          "file: as root, 'fuser -v {}' names the processes",
          short_name(device), device.uuid, claims_.path_of(device.uuid));
    }
    const std::string was = is_new ? "" : before->problem;
    if (device.problem == was) continue;
    log_warn("{} ({}) {}", short_name(device), device.uuid,
             device.problem.empty() ? "is healthy again" : "is not leased: " + device.problem);
  }
  told_devices_ = std::move(now);
  for (const auto& [job, record] : records_) {
    if (!daemons_->links().attached(job)) continue;
    wire::Envelope to;
    to.job = job;
    daemons_->send_or_drop(job, wire::make_packet(to, devices_for(sockets_->owner_of(job))));
  }
}

// A job that asks for no devices of a host that several jobs share is to use none: they are, or may
// be, leased to others. The one job of a private agent sees what its user sees.
void Agent::hide_devices(wire::StartProcess& start) const {
  start.lease.reset();
  const bool any = accelerators_.look().watched || !supervision_.devices().trouble().empty();
  if (start.devices == 0 && any && !options_.is_private) start.lease.emplace();
}

void Agent::run(const supervision::ReportDeviceTrouble& effect) {
  log_warn("{} has a device that is not healthy: {}", describe(effect.key), effect.problem);
  wire::Envelope to;
  to.job = effect.key.job;
  const Member member = effect.key.member;
  daemons_->send(
      effect.key.job,
      wire::make_packet(to, wire::DeviceTrouble{member.worker, member.attempt, effect.problem}));
}

bool Agent::may_be_of_a_device(const ProcessKey& key, const ExitStatus& status) const {
  const Supervision::Process* const process = supervision_.find(key);
  const bool failed = status.code != 0 && status.error.empty() && !status.orphaned;
  if (process == nullptr || process->phase != supervision::Phase::kRunning || !failed) return false;
  const auto& lease = process->start->lease;
  if (!lease || lease->devices.empty()) return false;
  const Accelerators::Look look = accelerators_.look();
  return look.watched && look.trouble.empty();
}

// The look that is in progress may have begun before the process ended.
void Agent::hold_end(const ProcessKey& key, const ExitStatus& status) {
  held_ends_.push_back({key, status, accelerators_.look().looks + 2, loop_.now() + kLookPatience});
  look_at_held_ends();
}

void Agent::look_at_held_ends() {
  if (look_timer_) loop_.cancel(*look_timer_);
  look_timer_.reset();
  const std::uint64_t looks = accelerators_.look().looks;
  const auto is_due = [&](const HeldEnd& held) {
    return looks >= held.looks || loop_.now() >= held.until;
  };
  const auto rest = std::stable_partition(held_ends_.begin(), held_ends_.end(), is_due);
  const std::vector<HeldEnd> due(held_ends_.begin(), rest);
  held_ends_.erase(held_ends_.begin(), rest);
  if (!due.empty()) see_devices();
  for (const HeldEnd& held : due) apply(supervision::ProcessEnded{held.key, held.status});
  if (held_ends_.empty()) return;
  accelerators_.look_soon();
  look_timer_ = loop_.call_after(kLookPeriod, [this] { look_at_held_ends(); });
}

}  // namespace antdt::antdtd
