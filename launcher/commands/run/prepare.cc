#include "launcher/commands/run/prepare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "antdtd/host/host.h"
#include "core/domain/domains.h"
#include "core/ids.h"
#include "core/metrics/metrics_server.h"
#include "core/os/fs.h"
#include "core/sync_strategy.h"
#include "jobd/disk/run_journal.h"
#include "jobd/programs/job_spec.h"
#include "launcher/commands/run/ask_program.h"
#include "launcher/commands/run/free_paths.h"
#include "launcher/commands/run/index_pinned.h"
#include "launcher/config/cluster.h"
#include "launcher/config/rules/pin_checks.h"
#include "launcher/start/own_devices.h"
#include "launcher/start/own_program.h"
#include "launcher/start/paths.h"
#include "trainer/data/dataset.h"

namespace antdt::cli {

namespace {

constexpr Duration kClusterAnswers = std::chrono::seconds(3);
// An agent says after 11 s of silence that NVML does not answer.
constexpr Duration kFirstLooks = std::chrono::seconds(15);

bool uses_gpus(const launcher::RolesSection& roles) {
  return roles.worker.resources.gpus > 0 || roles.server.resources.gpus > 0;
}

// What this machine's private agent will report as its resources.
launcher::HostResources this_machine(const launcher::JobConfig& config) {
  const antdtd::Capacity capacity = antdtd::probe_capacity();
  launcher::HostResources here{antdtd::host_name(), capacity.cpus, capacity.memory_bytes,
                               capacity.devices, capacity.devices};
  if (!uses_gpus(config.roles)) return here;
  const auto devices = launcher::devices_of_this_machine();
  if (!devices) return here;  // the agent will say why
  here.gpus = static_cast<std::uint32_t>(devices->free);
  here.sharable_gpus = static_cast<std::uint32_t>(devices->sharable);
  here.gpu_troubles = launcher::gpu_troubles(*devices);
  return here;
}

Result<std::vector<launcher::HostResources>> find_hosts(transport::Context& context,
                                                        const launcher::JobConfig& config) {
  if (config.cluster.hosts.empty()) return std::vector{this_machine(config)};
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  const Duration for_devices = uses_gpus(config.roles) ? kFirstLooks : Duration::zero();
  return launcher::ask_agents(context, config.cluster, keys, {kClusterAnswers, for_devices});
}

Status find_program_of(const char* role, launcher::RoleSection& section,
                       const std::string& directory) {
  std::string& program = section.command.front();
  auto found = launcher::find_program(program, launcher::program_directory(), directory);
  if (!found) {
    return fail(ErrorKind::kUsage, "roles.{}.command: {}", role, found.error().message);
  }
  program = std::move(*found);
  return {};
}

// Programs on other hosts can only be found by their agents.
Status find_programs_of(launcher::JobConfig& config) {
  ANTDT_RETURN_IF_ERROR(find_own_programs(config));
  launcher::choose_built_in(config);
  if (!config.cluster.hosts.empty()) return {};
  ANTDT_RETURN_IF_ERROR(find_program_of("worker", config.roles.worker, config.job.directory));
  if (config.roles.server.count == 0) return {};
  return find_program_of("server", config.roles.server, config.job.directory);
}

// Adds "w0 .. w3 on vm (...)", one line for each host in `places`.
void add_lines(const Prepared& prepared, char role, const std::vector<std::size_t>& places,
               std::vector<std::string>& lines) {
  for (std::size_t first = 0; first < places.size();) {
    std::size_t last = first;
    while (last + 1 < places.size() && places[last + 1] == places[first]) ++last;
    const launcher::HostResources& host = prepared.hosts[places[first]];
    const std::string range = first == last ? fmt::format("{}{}", role, first)
                                            : fmt::format("{}{} .. {}{}", role, first, role, last);
    lines.push_back(fmt::format("{} on {} ({:g} cpus, {:.1f}GiB of memory, {} GPUs free)", range,
                                host.name, host.cpus,
                                static_cast<double>(host.memory_bytes) / (1ULL << 30), host.gpus));
    first = last + 1;
  }
}

// By worker: the name of its host as [[domain]] names it.
std::vector<std::string> hosts_of_workers(const Prepared& prepared) {
  std::vector<std::string> hosts;
  for (const std::size_t place : prepared.places.workers) {
    hosts.push_back(prepared.hosts[place].name_in_domains());
  }
  return hosts;
}

// Workers in no domain would hold a replica among themselves, wherever they are.
Status check_replicas_of_domains(const Prepared& prepared) {
  const launcher::JobConfig& config = prepared.config;
  if (by_name<SyncStrategy>(config.trainer.sync) != SyncStrategy::kGaia) return {};
  const Domains domains(config.domain);
  const std::vector<std::string> hosts = hosts_of_workers(prepared);
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    const WorkerId worker{'w', i};
    if (!domains.of(worker, hosts[i]).empty()) continue;
    return fail(ErrorKind::kUsage,
                "trainer.sync = \"gaia\": {} would run on host {}, which is in no [[domain]]: add "
                "\"{}\" to the hosts of one, or \"{}\" to its workers",
                worker, hosts[i], hosts[i], worker);
  }
  return {};
}

// Whether each domain's data have workers where these were placed.
Status check_data_of_domains(const Prepared& prepared) {
  const std::vector<std::string> hosts = hosts_of_workers(prepared);
  const std::string unfit = launcher::unfit_for_pins(prepared.config, hosts);
  if (unfit.empty() || hosts.empty()) return {};  // without hosts, workers come by themselves
  return fail(ErrorKind::kUsage, "{}", unfit);
}

// Programs, hosts and places.
Result<Prepared> complete(transport::Context& context, Prepared prepared,
                          const launcher::RunOptions& options) {
  prepared.config.job.id = prepared.config.job.name + "-" + new_ulid();
  ANTDT_RETURN_IF_ERROR(find_programs_of(prepared.config));
  if (prepared.config.cluster.hosts.empty()) ANTDT_RETURN_IF_ERROR(ask_program(prepared.config));
  ANTDT_RETURN_IF_ERROR(launcher::check_run_directory(options));
  ANTDT_RETURN_IF_ERROR(check_metrics_address(prepared.config));
  ANTDT_RETURN_IF_ERROR(jobd::RunJournal(prepared.config, "", "").check());
  ANTDT_TRY(prepared.hosts, find_hosts(context, prepared.config));
  ANTDT_RETURN_IF_ERROR(check_paths_are_free(context, prepared.config, options));
  ANTDT_TRY(prepared.places, launcher::place(prepared.hosts, prepared.config.roles));
  prepared.config.roles.worker.count = static_cast<std::uint32_t>(prepared.places.workers.size());
  ANTDT_RETURN_IF_ERROR(check_replicas_of_domains(prepared));
  ANTDT_RETURN_IF_ERROR(check_data_of_domains(prepared));
  return prepared;
}

}  // namespace

Status check_metrics_address(const launcher::JobConfig& config) {
  if (config.metrics.listen.empty()) return {};
  const Status free = metrics::MetricsServer::check(config.metrics.listen);
  if (free) return {};
  return fail(ErrorKind::kUsage, "metrics.listen: {}; or remove the line", free.error().message);
}

Result<std::vector<std::string>> absent_hosts(const launcher::JobConfig& config) {
  if (config.cluster.hosts.empty()) return std::vector<std::string>{};
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  transport::Context context;
  return launcher::absent_agents(context, config.cluster, keys, kClusterAnswers);
}

Status find_own_programs(launcher::JobConfig& config) {
  const auto find = [&](const char* key, std::string& program) -> Status {
    auto found =
        launcher::find_program(program, launcher::program_directory(), config.job.directory);
    if (!found) return fail(ErrorKind::kUsage, "{}: {}", key, found.error().message);
    program = std::move(*found);
    return {};
  };
  if (!config.hooks.event.empty()) {
    ANTDT_RETURN_IF_ERROR(find("hooks.event", config.hooks.event.front()));
  }
  if (config.control.solution != "command") return {};
  return find("control.command", config.control.command.front());
}

Result<Prepared> prepare(transport::Context& context, const std::string& job_file,
                         const std::vector<std::string>& overrides,
                         const launcher::RunOptions& options) {
  Prepared prepared;
  ANTDT_TRY(prepared.config, launcher::load(job_file, overrides));
  ANTDT_TRY(prepared.job_toml, read_file(job_file));
  return complete(context, std::move(prepared), options);
}

Result<Prepared> prepare_text(transport::Context& context, const std::string& text,
                              const std::string& job_file,
                              const std::vector<std::string>& overrides,
                              const launcher::RunOptions& options) {
  Prepared prepared;
  ANTDT_TRY(prepared.config, launcher::load_text(text, job_file, overrides));
  prepared.job_toml = text;
  return complete(context, std::move(prepared), options);
}

std::vector<std::string> placement_lines(const Prepared& prepared) {
  std::vector<std::string> lines;
  add_lines(prepared, 'w', prepared.places.workers, lines);
  add_lines(prepared, 's', prepared.places.servers, lines);
  return lines;
}

Result<std::string> index_data(const launcher::JobConfig& config) {
  data::DataSummary train, eval;
  PinnedData pins;
  if (config.data.pin == "domain") {
    ANTDT_TRY(PinnedIndex found, index_pinned(config));
    train = std::move(found.train);
    eval = std::move(found.eval);
    pins = std::move(found.pins);
  } else if (config.data.format != "none") {
    const std::string json = launcher::to_json(config);
    ANTDT_TRY(train, data::build_index(json, data::Split::kTrain));
    ANTDT_TRY(eval, data::build_index(json, data::Split::kEval));
  }
  // Computed with the function that workers use, because the two results must be equal.
  nlohmann::ordered_json found = jobd::to_json(data::identity_of(train, eval));
  found["quarantined"] = train.quarantined + eval.quarantined;
  found["quarantine_files"] = {train.quarantine_file, eval.quarantine_file};
  found["classes"] = train.classes;
  found["named_classes"] = train.named_classes;
  if (!pins.empty()) found["pins"] = to_json(pins);
  return found.dump(2) + "\n";
}

}  // namespace antdt::cli
