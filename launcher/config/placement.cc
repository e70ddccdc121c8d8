#include "launcher/config/placement.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/schema/units.h"

namespace antdt::launcher {

namespace {

constexpr std::uint64_t kUnbounded = 1ULL << 40;

std::string resources_text(const HostResources& host, const Resources& each) {
  std::string text = fmt::format("{:g} cpus, {:.1f}GiB of memory, {} GPUs", host.cpus,
                                 static_cast<double>(host.memory_bytes) / (1ULL << 30), host.gpus);
  if (each.shared_gpus) text += fmt::format(" ({} if they are shared)", host.sharable_gpus);
  return text;
}

std::string asked_text(const Resources& each) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (each.cpus > 0) add(fmt::format("{:g} cpus", each.cpus));
  if (each.memory_bytes > 0) add(schema::format_size(each.memory_bytes) + " of memory");
  if (each.gpus > 0)
    add(fmt::format("{}{} GPU{}", each.gpus, each.shared_gpus ? " shared" : "",
                    each.gpus == 1 ? "" : "s"));
  return text.empty() ? "nothing" : text;
}

tl::unexpected<Error> too_many(const std::vector<HostResources>& hosts, std::string_view role,
                               std::uint32_t count, const Resources& each, std::uint64_t fit) {
  std::string text = fmt::format("{} {}s with {} each are {} more than the hosts can take:", count,
                                 role, asked_text(each), count - fit);
  for (const HostResources& host : hosts) {
    text += fmt::format("\n  {} has {} free: room for {}", host.name, resources_text(host, each),
                        fits(host, each));
    if (each.gpus > 0) text += host.gpu_troubles;
  }
  return fail(ErrorKind::kUnreachable,
              "{}\nlower roles.{}.count or roles.{}.resources, or add hosts to cluster.hosts", text,
              role, role);
}

// The host that would be least used after one more worker; the first of equals.
std::size_t next_host(const std::vector<std::uint64_t>& room, const std::vector<double>& weight,
                      const std::vector<std::uint64_t>& used) {
  std::size_t best = room.size();
  double best_load = 0;
  for (std::size_t i = 0; i < room.size(); ++i) {
    if (used[i] >= room[i]) continue;
    const double load = static_cast<double>(used[i] + 1) / weight[i];
    if (best == room.size() || load < best_load) {
      best = i;
      best_load = load;
    }
  }
  return best;
}

Result<std::vector<std::size_t>> place_role(const std::vector<HostResources>& hosts,
                                            std::string_view role, std::uint32_t count,
                                            const Resources& each) {
  if (hosts.empty()) return fail(ErrorKind::kUnreachable, "there is no host to run {}s on", role);
  std::vector<std::uint64_t> room;
  std::vector<double> weight;
  for (const HostResources& host : hosts) {
    room.push_back(fits(host, each));
    const bool bounded = room.back() < kUnbounded;
    weight.push_back(bounded ? static_cast<double>(room.back()) : std::max(host.cpus, 1.0));
  }
  const std::uint64_t fit = std::accumulate(room.begin(), room.end(), std::uint64_t{0});
  if (fit < count) return too_many(hosts, role, count, each, fit);

  std::vector<std::uint64_t> used(hosts.size(), 0);
  for (std::uint32_t i = 0; i < count; ++i) ++used[next_host(room, weight, used)];
  std::vector<std::size_t> places;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    places.insert(places.end(), used[host], host);
  }
  return places;
}

}  // namespace

HostResources resources_of(std::string name, const wire::AgentWelcome& welcome) {
  // An agent of an earlier release shares no devices.
  const std::uint32_t sharable = std::max(welcome.devices, welcome.host_devices.sharable);
  return {std::move(name), welcome.cpus, welcome.memory_bytes,
          welcome.devices, sharable,     gpu_troubles(report::report_of(welcome.host_devices)),
          welcome.host};
}

std::string gpu_troubles(const report::HostDevices& devices) {
  std::string lines;
  if (!devices.trouble.empty()) lines += fmt::format("\n    no GPU is leased: {}", devices.trouble);
  for (const report::HostDevice& device : devices.list) {
    if (!device.problem.empty()) {
      lines += fmt::format("\n    {} is not leased: {}", device.name, device.problem);
    } else if (device.elsewhere) {
      lines += fmt::format("\n    {} is leased by another agent of that machine", device.name);
    }
  }
  return lines;
}

std::uint64_t fits(const HostResources& host, const Resources& each) {
  std::uint64_t fit = kUnbounded;
  // A deviation of a tenth of a percent of a CPU is tolerated, because 0.1 * 3 is not exactly 0.3.
  if (each.cpus > 0) fit = static_cast<std::uint64_t>((host.cpus + 1e-3) / each.cpus);
  if (each.memory_bytes > 0) fit = std::min(fit, host.memory_bytes / each.memory_bytes);
  if (each.gpus > 0 && each.shared_gpus && host.sharable_gpus < each.gpus) fit = 0;
  if (each.gpus > 0 && !each.shared_gpus) fit = std::min<std::uint64_t>(fit, host.gpus / each.gpus);
  return fit;
}

HostResources without(HostResources host, std::uint64_t count, const Resources& each) {
  host.cpus = std::max(0.0, host.cpus - static_cast<double>(count) * each.cpus);
  host.memory_bytes -= std::min(host.memory_bytes, count * each.memory_bytes);
  const auto taken =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(host.gpus, count * each.gpus));
  host.gpus -= taken;
  if (!each.shared_gpus) host.sharable_gpus -= std::min(host.sharable_gpus, taken);
  return host;
}

Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts, std::uint32_t count,
                                       const Resources& each) {
  return place_role(hosts, "worker", count, each);
}

Result<std::vector<std::size_t>> place(const std::vector<HostResources>& hosts,
                                       const RoleSection& role) {
  std::uint64_t fit = 0;
  for (const HostResources& host : hosts) fit += fits(host, role.resources);
  const std::uint64_t count = std::clamp<std::uint64_t>(fit, role.min, role.count);
  return place(hosts, static_cast<std::uint32_t>(count), role.resources);
}

Result<Placement> place(const std::vector<HostResources>& hosts, const RolesSection& roles) {
  const RoleSection& server = roles.server;
  Placement placement;
  std::vector<HostResources> left = hosts;
  if (server.count > 0) {
    // s0 and s2 are the two processes of one server. Processes are placed host by host, so the two
    // are on different hosts unless one host takes more than half of all.
    ANTDT_TRY(placement.servers, place_role(hosts, "server", server.processes(), server.resources));
  }
  for (const std::size_t host : placement.servers) {
    left[host] = without(left[host], 1, server.resources);
  }
  auto workers = place(left, roles.worker);
  if (!workers && server.count > 0 && !hosts.empty()) {
    return fail(workers.error().kind, "{}\n({} servers with {} each are counted as taken)",
                workers.error().message, server.processes(), asked_text(server.resources));
  }
  ANTDT_TRY(placement.workers, std::move(workers));
  return placement;
}

}  // namespace antdt::launcher
