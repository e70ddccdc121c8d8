#include "launcher/config/rules/drill_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/drill/trace.h"
#include "core/ids.h"
#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

class DrillChecker {
 public:
  DrillChecker(const JobConfig& config, Problems& problems) : c_(config), problems_(problems) {}

  void run() {
    domains();
    for (std::size_t i = 0; i < c_.inject.size(); ++i) {
      injection(fmt::format("inject[{}]", i), c_.inject[i]);
    }
    real_devices();
    devices();
  }

 private:
  [[nodiscard]] bool is_worker(const std::string& name) const {
    const auto id = parse_worker_id(name);
    return id && id->role == 'w' && id->index < c_.roles.worker.max;
  }
  // The servers' processes: a server that is moved or has a replica has two, at once or in turn.
  [[nodiscard]] std::uint32_t servers() const { return 2 * c_.roles.server.count; }
  [[nodiscard]] bool is_server(const std::string& name) const {
    const auto id = parse_worker_id(name);
    return id && id->role == 's' && id->index < servers();
  }
  void workers(const std::string& key, const std::vector<std::string>& names, bool drill,
               bool receivers = false) {
    const bool all = drill || receivers;
    std::string others;
    if (drill && servers() > 0) others = fmt::format(", s0 to s{}", servers() - 1);
    if (all) others += ", or \"*\"";
    for (const std::string& name : names) {
      if (is_worker(name) || (all && name == "*") || (drill && is_server(name))) continue;
      problems_.add(key, fmt::format("'{}' is no worker of this job: w0 to w{}{}", name,
                                     c_.roles.worker.max - 1, others));
    }
  }

  void domains() {
    std::set<std::string> names, hosts, ids;
    for (std::size_t i = 0; i < c_.domain.size(); ++i) {
      const Domain& domain = c_.domain[i];
      const std::string key = fmt::format("domain[{}]", i);
      if (!is_plain_name(domain.name)) {
        problems_.add(key + ".name",
                      fmt::format("'{}' is no name of a domain: use 1 to 64 letters, digits, '-', "
                                  "'_' and '.'",
                                  domain.name));
      }
      if (!names.insert(domain.name).second) {
        problems_.add(key + ".name", fmt::format("'{}' is another domain's name", domain.name));
      }
      if (domain.hosts.empty() && domain.workers.empty()) {
        problems_.add(key, "is empty: write hosts, as in hosts = [\"a\"], or workers");
      }
      for (const std::string& host : domain.hosts) {
        if (hosts.insert(host).second) continue;
        problems_.add(key + ".hosts", fmt::format("'{}' is in a domain already", host));
      }
      for (const std::string& id : domain.workers) {
        if (!is_worker(id) && !is_server(id)) workers(key + ".workers", {id}, false);
        if (ids.insert(id).second) continue;
        problems_.add(key + ".workers", fmt::format("'{}' is in a domain already", id));
      }
    }
  }
  void domain_exists(const std::string& key, const std::string& name) {
    if (name.empty() || std::ranges::find(c_.domain, name, &Domain::name) != c_.domain.end()) {
      return;
    }
    std::vector<std::string> known;
    for (const Domain& domain : c_.domain) known.push_back(domain.name);
    problems_.add(key, fmt::format("'{}' is no domain of this job: {}", name,
                                   known.empty() ? "it has no [[domain]]"
                                                 : fmt::format("{}", fmt::join(known, ", "))));
  }

  // A rule about messages to some processes alone.
  void pair(const std::string& key, const Injection& rule) {
    const bool has_receivers =
        !rule.to_workers.empty() || !rule.to_host.empty() || !rule.to_domain.empty();
    if (rule.both_ways && !has_receivers) {
      problems_.add(key + ".both_ways",
                    "is for messages between some: write to_workers, to_host or to_domain");
    }
    if (!has_receivers) return;
    workers(key + ".to_workers", rule.to_workers, false, true);
    domain_exists(key + ".to_domain", rule.to_domain);
    const bool others = rule.slowdown != 1 || rule.throttle != 1 || rule.kill ||
                        rule.delay.count() != 0 || rule.delay_per_sample.count() != 0 ||
                        rule.data_delay.count() != 0 || !rule.trace.empty();
    if (others || (rule.latency.count() == 0 && rule.bandwidth == 0)) {
      problems_.add(key,
                    "names to whom messages go, which is for latency and bandwidth: write these, "
                    "and another [[inject]] for what has nothing to do with messages");
    }
    if (c_.roles.server.count > 0) {
      problems_.add(key,
                    "names to whom messages go, which the links of parameter servers cannot tell "
                    "apart yet: remove to_workers, to_host and to_domain, so that it slows all "
                    "messages");
    }
  }

  void injection(const std::string& key, const Injection& rule) {
    workers(key + ".workers", rule.workers, true);
    domain_exists(key + ".domain", rule.domain);
    pair(key, rule);
    if (rule.workers.empty() && rule.host.empty() && rule.domain.empty()) {
      problems_.add(key, "names nobody: write workers, as in workers = [\"w1\"], host or domain");
    }
    if (rule.until.count() != 0 && rule.until <= rule.from) {
      problems_.add(key + ".until", "must be later than from, or 0 for never");
    }
    if (rule.lasts > rule.every) {
      problems_.add(key + ".for", "must be no longer than every, whose windows it is a part of");
    }
    if (rule.trace_every.count() != 0 && rule.trace.empty()) {
      problems_.add(key + ".trace_every", "is for a trace: remove it, or name one with trace");
    }
    if (rule.trace.empty() || problems_.has(key + ".trace")) return;
    const auto text = read_file(rule.trace);
    const auto trace = text ? drill::Trace::parse(*text) : tl::unexpected(text.error());
    if (!trace) {
      problems_.add(key + ".trace", fmt::format("'{}': {}", rule.trace, trace.error().message));
    }
  }

  void real_devices() {
    for (std::size_t i = 0; i < c_.device.size(); ++i) {
      const DeviceEntry& device = c_.device[i];
      const std::string key = fmt::format("device[{}]", i);
      workers(key + ".workers", device.workers, false);
      if (device.name.empty() && device.max_micro_batch == 0) {
        problems_.add(key, "says nothing: write class, max_micro_batch or both");
      }
    }
  }

  void devices() {
    const std::vector<EmulatedDevice>& devices = c_.emulated.device;
    const bool emulated = c_.trainer.model == "emulated";
    if (!devices.empty() && !emulated && !problems_.has("trainer.model")) {
      problems_.add("emulated.device",
                    fmt::format("is for trainer.model = \"emulated\", not \"{}\": remove it",
                                c_.trainer.model));
    }
    std::set<std::string> names;
    std::set<std::string> with_device;
    std::size_t for_the_rest = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const EmulatedDevice& device = devices[i];
      const std::string key = fmt::format("emulated.device[{}]", i);
      workers(key + ".workers", device.workers, false);
      if (!names.insert(device.name).second) {
        problems_.add(key + ".class", fmt::format("'{}' is another class's name", device.name));
      }
      for (const std::string& worker : device.workers) {
        if (with_device.insert(worker).second) continue;
        problems_.add(key + ".workers", fmt::format("'{}' has a device already", worker));
      }
      if (device.workers.empty() && ++for_the_rest == 2) {
        problems_.add(key + ".workers", "is missing: another class has all that none names");
      }
    }
    if (!emulated || for_the_rest > 0 || with_device.size() >= c_.roles.worker.max) return;
    problems_.add("emulated.device",
                  fmt::format("names devices for {} of {} workers: add one without workers for the "
                              "others, as in [[emulated.device]] class = \"any\" flat = \"10ms\"",
                              with_device.size(), c_.roles.worker.max));
  }

  const JobConfig& c_;
  Problems& problems_;
};

}  // namespace

void check_drills(const JobConfig& config, Problems& problems) {
  DrillChecker(config, problems).run();
}

}  // namespace antdt::launcher
