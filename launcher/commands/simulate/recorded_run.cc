#include "launcher/commands/simulate/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/sync_strategy.h"
#include "ctl/job/newest_image.h"
#include "jobd/disk/run_journal.h"
#include "jobd/programs/job_spec.h"
#include "launcher/commands/show/runs.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/summary_view.h"
#include "shard_server/history/series.h"

namespace antdt::cli {
namespace {

// The newest state of the job in its journal; empty if the journal does not exist any more.
Result<std::optional<ctl::JobImage>> image_of(const jobd::RunJournal& journal) {
  if (!journal.may_exist()) return std::nullopt;
  ANTDT_TRY(const shard_server::JournalContent content, journal.read());
  return ctl::newest_image(content);
}

std::map<std::string, std::string> hosts_of(const ctl::JobImage& image) {
  std::map<std::string, std::string> name_of, hosts;
  for (const ctl::HostState& host : image.lifecycle.hosts) name_of[host.host] = host.name;
  for (const ctl::WorkerProcessImage& w : image.lifecycle.workers) {
    const std::string& name = name_of[w.place.host];
    hosts[to_string(w.place.worker)] = name.empty() ? w.place.host : name;
  }
  return hosts;
}

// Entries for named workers as entries for the workers that are like them. An entry that names none
// is for all.
template <class Entry>
void rename_workers(std::vector<Entry>& entries, const std::vector<std::uint32_t>& which) {
  std::vector<Entry> renamed;
  for (Entry& entry : entries) {
    const std::vector<std::string> was = std::move(entry.workers);
    entry.workers.clear();
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (std::ranges::find(was, fmt::format("w{}", which[i])) == was.end()) continue;
      entry.workers.push_back(fmt::format("w{}", i));
    }
    if (was.empty() || !entry.workers.empty()) renamed.push_back(std::move(entry));
  }
  entries = std::move(renamed);
}

// Whether what a step costs under one of them is what it costs under the other: they differ in who
// waits for whom, which is simulated.
bool cost_alike(SyncStrategy one, SyncStrategy other) {
  if (one == other || (is_shadow(one) && is_shadow(other))) return true;
  const auto pulls_all = [](SyncStrategy sync) { return !in_collective(sync) && !is_shadow(sync); };
  return pulls_all(one) && pulls_all(other);
}

Status check_sync(const launcher::JobConfig& was, const launcher::JobConfig& config) {
  const auto measured = by_name<SyncStrategy>(was.trainer.sync);
  const auto wanted = by_name<SyncStrategy>(config.trainer.sync);
  if (measured && wanted && cost_alike(*measured, *wanted)) return {};
  return fail(ErrorKind::kUsage,
              "the run measured what a step costs with sync = \"{}\", which says nothing of "
              "\"{}\": name a run with --from that trained so, be it a short one",
              was.trainer.sync, config.trainer.sync);
}

Result<launcher::JobConfig> with_overrides(const launcher::JobConfig& config,
                                           const std::vector<std::string>& overrides) {
  if (overrides.empty()) return config;
  ANTDT_TRY(auto changed, launcher::load_text(launcher::to_toml(config),
                                              config.job.directory + "/effective.toml", overrides));
  ANTDT_RETURN_IF_ERROR(check_sync(config, changed));
  return changed;
}

}  // namespace

Result<RecordedRun> load_recorded(const std::string& name,
                                  const std::vector<std::string>& overrides,
                                  fleet::Afterwards afterwards) {
  ANTDT_TRY(const std::string run_dir, find_job(name));
  ANTDT_TRY(const launcher::JobConfig was, launcher::load_effective(run_dir));
  const auto control = launcher::read_control(run_dir);
  const std::string state_dir = control ? control->state_dir : run_dir;
  const std::string history = state_dir + "/history.db";
  const std::uint32_t recorded = was.roles.worker.count;
  ANTDT_TRY(const shard_server::Series series, shard_server::read_series(history));
  auto speeds = fleet::RecordedSpeeds::make(series, recorded, afterwards);
  if (!speeds) {
    return fail(speeds.error().kind, "{} cannot be replayed: {} ({})", run_dir,
                speeds.error().message, history);
  }
  RecordedRun run{run_dir, {}, std::move(*speeds), {}, {}, {}};
  FleetJob& job = run.job;
  ANTDT_TRY(job.config, with_overrides(was, overrides));
  ANTDT_RETURN_IF_ERROR(can_be_played(job.config));
  ANTDT_TRY(const jobd::DataFound data, jobd::load_data_found(run_dir));
  const bool counted = job.config.data.format == "index";
  job.train_records = counted ? job.config.data.records : data.train_records;
  ANTDT_TRY(const auto image, image_of(jobd::RunJournal(was, run_dir, state_dir)));
  std::map<std::string, std::string> hosts;
  if (image) {
    hosts = hosts_of(*image);
    for (const ctl::Devices::Said& said : image->devices) {
      run.devices.push_back(
          {{to_string(said.member.worker)}, "", said.device.name, said.device.max_micro_batch});
    }
  }
  if (const auto summary = launcher::read_summary(run_dir)) {
    run.summary = *summary;
    for (const report::WorkerSummary& w : summary->workers) hosts[w.id] = w.host;
  }
  for (std::uint32_t i = 0; i < recorded; ++i) {
    const std::string id = fmt::format("w{}", i);
    run.workers.push_back({id, hosts[id], run.speeds.seconds_per_sample(i)});
  }
  const double step_cost_s = run.speeds.usual_step_cost_s();
  job.costs.collective_s = step_cost_s;
  job.costs.collective_round_s = 0;
  job.costs.round_trip_s = step_cost_s / 2;
  job.costs.measured_members = recorded;
  return run;
}

FleetJob with_workers(const RecordedRun& run, const std::vector<std::uint32_t>& which) {
  FleetJob job = run.job;
  launcher::JobConfig& config = job.config;
  config.roles.worker.count = static_cast<std::uint32_t>(which.size());
  // Those of the job file take precedence over what the workers reported, as in the run.
  config.device.insert(config.device.end(), run.devices.begin(), run.devices.end());
  rename_workers(config.device, which);
  rename_workers(config.emulated.device, which);
  std::set<std::string> seen;
  for (const std::uint32_t i : which) {
    const std::string& host = run.workers[i].host;
    if (!host.empty() && seen.insert(host).second) job.hosts.push_back(host);
  }
  if (job.hosts.empty()) job.hosts.emplace_back("simulated");
  return job;
}

std::vector<std::uint32_t> repeated(std::uint32_t count, std::uint32_t recorded) {
  std::vector<std::uint32_t> which(count);
  for (std::uint32_t i = 0; i < count; ++i) which[i] = i % recorded;
  return which;
}

}  // namespace antdt::cli
