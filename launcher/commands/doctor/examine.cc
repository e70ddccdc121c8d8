#include "launcher/commands/doctor/examine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>

#include "antdtd/inspect/disk_facts.h"
#include "antdtd/inspect/host_facts.h"
#include "core/ids.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/os/user.h"
#include "core/transport/keys.h"
#include "core/wire/packet.h"
#include "jobd/disk/host_files.h"
#include "jobd/disk/store_members.h"
#include "launcher/commands/doctor/pairs.h"
#include "launcher/start/own_devices.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

using launcher::HostFacts;
using launcher::KeyFacts;

constexpr Duration kDiskAnswers = std::chrono::seconds(15);
constexpr int kClockLooks = 5;
constexpr const char* kRunDirectory = "run directory";

struct Look {
  const Examination& wanted;
  std::string job;    // names the connections: no job has this id
  std::string probe;  // the name of the link that shows who shares a directory
};

// An agent, as far as the keys for it are there.
struct Asked {
  std::string endpoint;
  std::optional<jobd::HostAddress> address;
};

void resolve(const std::string& name, launcher::ReachFacts& reach) {
  const SteadyClock clock;
  const MonoTime begin = clock.now();
  auto addresses = addresses_of(name);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock.now() - begin);
  reach.resolve_us = static_cast<std::uint64_t>(took.count());
  if (addresses) {
    reach.addresses = std::move(*addresses);
  } else {
    reach.resolve_error = addresses.error().message;
  }
}

// Whether any of the addresses accepts a connection; otherwise the first error.
void connect_once(const std::string& host_port, Duration timeout, launcher::ReachFacts& reach) {
  const int port = std::atoi(host_port.c_str() + host_port.rfind(':') + 1);
  std::string first;
  for (const std::string& address : reach.addresses) {
    const Status connected =
        try_to_connect(with_port(address, static_cast<std::uint16_t>(port)), timeout);
    if (connected) return;
    if (first.empty()) first = connected.error().message;
  }
  reach.connect_error = first;
}

void say_hello(transport::Context& context, const jobd::HostAddress& address, Duration timeout,
               HostFacts& host) {
  auto socket = transport::Socket::connect_tcp(context, address.endpoint, address.own_keys,
                                               address.agent_z85);
  if (!socket) {
    host.reach.connect_error = socket.error().message;
    return;
  }
  wire::Hello hello;
  hello.software = "antdt doctor";
  const auto packet = transport::request(*socket, wire::make_packet(hello), timeout);
  if (!packet) {
    host.reach.silent = true;
    return;
  }
  auto welcome = wire::open_reply<wire::AgentWelcome>(*packet);
  if (welcome) {
    host.devices = report::report_of(welcome->host_devices);
    host.welcome = std::move(*welcome);
  } else {
    host.reach.refused = welcome.error().message;
  }
}

std::int64_t unix_us() { return antdtd::clock_now().unix_us; }

// The look with the shortest round trip says most: the answer was given somewhere within it.
void compare_clocks(jobd::HostFiles& link, int looks, HostFacts& host) {
  for (int i = 0; i < looks; ++i) {
    const std::int64_t before = unix_us();
    const auto told = link.ask<wire::FileClockTold>(wire::FileClock{});
    const std::int64_t after = unix_us();
    if (!told || after < before) return;
    const auto uncertain = static_cast<std::uint64_t>(after - before) / 2;
    if (host.clock && host.clock->uncertain_us <= uncertain) continue;
    host.clock = {told->unix_us - (before + after) / 2, uncertain};
  }
}

using Link = std::optional<jobd::HostFiles>;
struct Found {
  HostFacts host;
  Link link;  // for more questions
};

// False: it cannot be asked more.
bool reaches_host(transport::Context& context, const Asked& asked, Duration answers,
                  HostFacts& host) {
  resolve(host_of(host.name), host.reach);
  if (!host.reach.resolve_error.empty()) return false;
  connect_once(host.name, answers, host.reach);
  if (!host.reach.connect_error.empty() || !asked.address) return false;
  say_hello(context, *asked.address, answers, host);
  return host.welcome.has_value();
}

Found ask_agent(transport::Context& context, const Asked& asked, const Look& look) {
  Found found;
  HostFacts& host = found.host;
  host.name = asked.endpoint;
  const Examination& wanted = look.wanted;
  if (wanted.whole && !reaches_host(context, asked, wanted.answers, host)) return found;
  if (!asked.address) return found;

  jobd::HostFiles::Watch watch;
  watch.silence = watch.answers = wanted.answers;
  // A directory of the examination's own, which nobody makes: its service is shared with no job.
  auto link = jobd::HostFiles::open(context, *asked.address, look.job,
                                    wanted.run_dir + "/" + look.job, std::move(watch));
  if (!link) {
    host.reach.not_told = link.error().message;
    return found;
  }
  auto told = link->ask<wire::FileHostTold>(wire::FileHost{wanted.files});
  if (!told) {
    host.reach.not_told = told.error().message;
    return found;
  }
  host.told = std::move(*told);
  auto disk =
      link->ask<wire::FileDiskTold>(wire::FileDisk{wanted.whole ? look.probe : "", wanted.whole},
                                    wanted.whole ? kDiskAnswers : wanted.answers);
  if (disk || wanted.whole) {
    host.directories.push_back({kRunDirectory, wanted.run_dir, false,
                                disk ? "" : disk.error().message,
                                disk ? std::move(*disk) : wire::FileDiskTold{}});
  }
  if (disk) compare_clocks(*link, wanted.whole ? kClockLooks : 1, host);
  found.link.emplace(std::move(*link));
  return found;
}

HostFacts ask_this_host(const Look& look, antdtd::DiskFacts& disks) {
  const Examination& wanted = look.wanted;
  HostFacts host;
  host.name = "this host";
  host.here = true;
  // Of files that are missing here, the job's own checks say more.
  if (auto told = antdtd::host_facts({})) {
    host.told = std::move(*told);
    host.told->agent_replaced = false;  // the parent is a shell
  }
  if (auto devices = launcher::devices_of_this_machine(); wanted.whole && devices) {
    host.devices = std::move(*devices);
  }
  auto disk = disks.look(wanted.run_dir, {wanted.whole ? look.probe : "", wanted.whole});
  host.directories.push_back({kRunDirectory, wanted.run_dir, wanted.journal,
                              disk ? "" : disk.error().message,
                              disk ? std::move(*disk) : wire::FileDiskTold{}});
  return host;
}

KeyFacts look_at_key(const std::string& path, bool secret) {
  KeyFacts key{path, secret, false, false, 0, {}};
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    key.missing = errno == ENOENT;
    if (!key.missing) key.error = std::strerror(errno);
    return key;
  }
  key.mode = found.st_mode & 07777U;
  key.other_owner = found.st_uid != ::geteuid() && found.st_uid != 0;
  if (::access(path.c_str(), R_OK) != 0) key.error = std::strerror(errno);
  return key;
}

// The public key of an agent: the first that exists, as antdt run takes it.
std::string agent_key(const std::string& keys, const std::string& host) {
  for (const std::string& name : {host, host_of(host), std::string("cluster")}) {
    std::string path = fmt::format("{}/agents/{}.pub", keys, name);
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return fmt::format("{}/agents/{}.pub", keys, host_of(host));
}

std::vector<KeyFacts> look_at_keys(const Examination& wanted) {
  std::vector<KeyFacts> keys;
  if (wanted.hosts.empty()) return keys;
  keys.push_back(look_at_key(wanted.keys + "/job.key", true));
  for (const std::string& host : wanted.hosts) {
    const std::string path = agent_key(wanted.keys, host);
    const auto is_same = [&](const KeyFacts& key) { return key.path == path; };
    if (std::ranges::none_of(keys, is_same)) keys.push_back(look_at_key(path, false));
  }
  return keys;
}

// A key that cannot be used has a finding of its own, and costs only what needs it.
std::vector<Asked> agents_of(const Examination& wanted) {
  const auto job = transport::load_key_pair(wanted.keys + "/job.key");
  std::vector<Asked> agents;
  for (const std::string& host : wanted.hosts) {
    const auto agent = transport::load_public_key(agent_key(wanted.keys, host));
    agents.push_back({host, std::nullopt});
    if (job && agent) agents.back().address = jobd::HostAddress{host, *job, agent->z85};
  }
  return agents;
}

}  // namespace

Examination examination_of(const launcher::JobConfig& config) {
  Examination wanted;
  wanted.hosts = config.cluster.hosts;
  wanted.keys = config.cluster.keys;
  wanted.ports = config.cluster.ports;
  wanted.store = config.cluster;
  wanted.run_dir = launcher::absolute_path("runs", ".");
  wanted.copies = config.checkpoint.copies;
  for (const auto* paths : {&config.data.paths, &config.data.eval_paths, &config.data.labels,
                            &config.data.eval_labels}) {
    for (const std::string& path : *paths) {
      if (wanted.files.size() < wire::kMostFilesAsked) wanted.files.push_back(path);
    }
  }
  return wanted;
}

launcher::Facts examine(transport::Context& context, const Examination& wanted) {
  const std::string job = "antdt-doctor-" + new_ulid();
  const Look look{wanted, job, "." + job};
  launcher::Facts facts;
  facts.user = own_user().name;
  facts.ports = wanted.ports;
  facts.copies = wanted.copies;
  facts.keys = look_at_keys(wanted);
  std::vector<std::future<Found>> running;
  for (Asked& asked : agents_of(wanted)) {
    running.push_back(std::async(std::launch::async, [&context, &look, asked = std::move(asked)] {
      return ask_agent(context, asked, look);
    }));
  }
  antdtd::DiskFacts disks;
  facts.hosts.push_back(ask_this_host(look, disks));
  std::vector<Link> links(1);
  for (std::future<Found>& one : running) {
    Found found = one.get();
    facts.hosts.push_back(std::move(found.host));
    links.push_back(std::move(found.link));
  }
  if (wanted.whole) {
    measure_pairs(links, facts);
    for (const jobd::StoreMember& m : jobd::ask_store_members(wanted.store)) {
      const auto us = std::chrono::duration_cast<std::chrono::microseconds>(m.answers_in);
      facts.store.push_back({m.member, m.error, static_cast<std::uint64_t>(us.count())});
    }
  }
  return facts;
}

}  // namespace antdt::cli
