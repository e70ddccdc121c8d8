#include "launcher/commands/plan/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "launcher/commands/doctor/examine.h"
#include "launcher/config/placement.h"
#include "trainer/data/dataset.h"

namespace antdt::cli {
namespace {

namespace plan = launcher::plan;

constexpr std::uint32_t kUsualServers = 2;
constexpr std::uint64_t kMostRecords = 16'384;  // of a batch whose rows are counted

double seconds(double us) { return us / 1e6; }

}  // namespace

PlannedHosts hosts_of(const Prepared& prepared) {
  std::vector<std::uint32_t> workers(prepared.hosts.size(), 0);
  for (const std::size_t host : prepared.places.workers) ++workers[host];
  const auto with_workers = static_cast<std::uint32_t>(
      std::ranges::count_if(workers, [](std::uint32_t n) { return n > 0; }));
  const std::uint32_t wanted = prepared.config.roles.server.count;
  std::set<std::uint32_t> counts = {wanted > 0 ? wanted : kUsualServers};
  if (with_workers > 1) counts.insert(with_workers);

  PlannedHosts planned;
  std::vector<std::vector<std::uint32_t>> servers;  // by candidate and host
  for (const std::uint32_t count : counts) {
    launcher::RolesSection roles = prepared.config.roles;
    roles.server.count = roles.server.min = roles.server.max = count;
    auto placed = launcher::place(prepared.hosts, roles);
    if (!placed) continue;  // there is no room for so many
    servers.emplace_back(prepared.hosts.size(), 0);
    for (const std::size_t host : placed->servers) ++servers.back()[host];
    planned.servers.push_back({count, {}});
  }
  for (std::size_t h = 0; h < prepared.hosts.size(); ++h) {
    const bool used = workers[h] > 0 || std::ranges::any_of(servers, [&](const auto& by_host) {
                        return by_host[h] > 0;
                      });
    if (!used) continue;
    planned.hosts.push_back({prepared.hosts[h].name, prepared.hosts[h].cpus, workers[h]});
    for (std::size_t i = 0; i < servers.size(); ++i) {
      planned.servers[i].by_host.push_back(servers[i][h]);
    }
  }
  return planned;
}

Result<std::vector<HostPair>> measured_links(transport::Context& context,
                                             const launcher::JobConfig& config,
                                             const std::vector<plan::HostLoad>& hosts) {
  Examination wanted = examination_of(config);
  wanted.hosts.clear();
  for (const plan::HostLoad& host : hosts) wanted.hosts.push_back(host.name);
  wanted.store = {};
  const launcher::Facts facts = examine(context, wanted);
  std::vector<HostPair> found;
  for (const launcher::LinkFacts& link : facts.links) {
    const std::string name =
        fmt::format("{} to {}", facts.hosts[link.from].name, facts.hosts[link.to].name);
    if (!link.listen_error.empty() || !link.connect_error.empty() || link.told.took_us == 0) {
      return fail(ErrorKind::kUnreachable,
                  "the link from {} could not be measured: {}{}; antdt doctor says more", name,
                  link.listen_error, link.connect_error);
    }
    const auto at = [&](std::size_t host) {
      const auto same = std::ranges::find(hosts, facts.hosts[host].name, &plan::HostLoad::name);
      return static_cast<std::size_t>(same - hosts.begin());
    };
    plan::Link measured;
    measured.latency_s = seconds(link.told.round_trip_us) / 2;
    measured.bytes_per_s =
        static_cast<double>(link.told.bytes) / seconds(static_cast<double>(link.told.took_us));
    measured.name = name;
    found.push_back({at(link.from), at(link.to), measured});
  }
  if (found.size() < hosts.size() * (hosts.size() - 1)) {
    return fail(ErrorKind::kUnreachable,
                "not all links between the {} hosts could be measured; antdt doctor says why",
                hosts.size());
  }
  return found;
}

std::optional<plan::Link> slowest_of(const std::vector<HostPair>& links, Which which,
                                     const std::vector<std::uint32_t>& domains) {
  std::optional<plan::Link> slowest;
  for (const HostPair& pair : links) {
    const bool within = which != Which::kAll && domains[pair.from] == domains[pair.to];
    if (which != Which::kAll && within != (which == Which::kWithin)) continue;
    if (!slowest) slowest = plan::Link{};
    slowest->latency_s = std::max(slowest->latency_s, pair.link.latency_s);
    if (slowest->bytes_per_s == 0 || pair.link.bytes_per_s < slowest->bytes_per_s) {
      slowest->bytes_per_s = pair.link.bytes_per_s;
      slowest->name = pair.link.name;
    }
  }
  return slowest;
}

std::vector<std::string> domains_on(const Prepared& prepared, const std::string& host) {
  const Domains domains(prepared.config.domain);
  std::vector<std::string> found;
  for (std::uint32_t i = 0; i < prepared.places.workers.size(); ++i) {
    const launcher::HostResources& at = prepared.hosts[prepared.places.workers[i]];
    if (at.name != host) continue;
    found.push_back(domains.of({'w', i}, at.name_in_domains()));
  }
  return found;
}

std::optional<plan::DomainLinks> domains_of(const Prepared& prepared,
                                            const std::vector<plan::HostLoad>& hosts) {
  const Domains domains(prepared.config.domain);
  plan::DomainLinks found;
  const auto index_of = [&](const std::string& name) {
    const auto at = std::ranges::find(found.names, name);
    const auto index = static_cast<std::uint32_t>(at - found.names.begin());
    if (at == found.names.end()) found.names.push_back(name);
    return index;
  };
  const launcher::HostResources* before = nullptr;
  for (std::uint32_t i = 0; i < prepared.places.workers.size(); ++i) {
    const launcher::HostResources& host = prepared.hosts[prepared.places.workers[i]];
    const std::uint32_t domain = index_of(domains.of({'w', i}, host.name_in_domains()));
    const bool same = before == &host && found.groups.back().domain == domain;
    if (!same) found.groups.push_back({domain, 0});
    ++found.groups.back().workers;
    before = &host;
  }
  if (found.names.size() < 2) return std::nullopt;
  for (const plan::HostLoad& load : hosts) {
    const auto host = std::ranges::find(prepared.hosts, load.name, &launcher::HostResources::name);
    const std::vector<std::string> of_workers = domains_on(prepared, load.name);
    // A host without workers has servers. The worker that nobody is stands for none.
    const std::string of_host = domains.of({'w', UINT32_MAX}, host->name_in_domains());
    found.of_hosts.push_back(index_of(of_workers.empty() ? of_host : of_workers.front()));
  }
  return found;
}

Result<plan::Curve> rows_of_batches(const launcher::JobConfig& config,
                                    const std::vector<std::uint64_t>& sizes) {
  ANTDT_TRY(const auto reader, data::open_reader(launcher::to_json(config), data::Split::kTrain));
  plan::Curve curve;
  if (reader->shape().id_width == 0 || reader->records() == 0) return curve;
  std::mt19937_64 random(config.job.seed);
  for (const std::uint64_t size : std::set(sizes.begin(), sizes.end())) {
    const std::uint64_t count = std::min({size, kMostRecords, reader->records()});
    std::vector<std::uint64_t> numbers(count);
    for (std::uint64_t& number : numbers) number = random() % reader->records();
    data::Examples examples;
    ANTDT_RETURN_IF_ERROR(reader->read(numbers, examples));
    const std::set<std::int64_t> rows(examples.ids.begin(), examples.ids.end());
    if (!curve.empty() && curve.back().samples == static_cast<double>(count)) continue;
    curve.push_back({static_cast<double>(count), static_cast<double>(rows.size())});
  }
  return curve;
}

}  // namespace antdt::cli
