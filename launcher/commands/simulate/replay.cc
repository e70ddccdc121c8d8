// antdt replay: simulates a recorded run in virtual time under another solution.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "core/os/fs.h"
#include "core/schema/units.h"
#include "core/wire/codec.h"
#include "ctl/job/job_image.h"
#include "jobd/disk/run_journal.h"
#include "jobd/programs/job_spec.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/simulate/fleet_job.h"
#include "launcher/start/run_directory.h"
#include "launcher/view/summary_view.h"
#include "shard_server/history/series.h"
#include "sim/fleet/recorded_speeds.h"

namespace antdt::cli {
namespace {

struct ReplayOptions {
  std::string run;
  std::vector<std::string> solutions;
  bool json = false;
};

// The devices that the workers reported, as entries of [[device]] after those of the job file,
// which take precedence as they did in the run. Empty if the journal does not exist any more.
Result<std::vector<launcher::DeviceEntry>> said_devices(const jobd::RunJournal& journal) {
  std::vector<launcher::DeviceEntry> devices;
  if (!journal.may_exist()) return devices;
  ANTDT_TRY(auto content, journal.read());
  std::string image_bytes;
  for (auto* entries : {&content.snapshot, &content.records}) {
    for (shard_server::JournalEntry& entry : *entries) {
      if (entry.kind == ctl::kImageRecord) image_bytes = std::move(entry.bytes);
    }
  }
  if (image_bytes.empty()) return devices;
  ANTDT_TRY(const auto image, wire::decode<ctl::JobImage>(image_bytes));
  for (const ctl::Devices::Said& said : image.devices) {
    devices.push_back(
        {{to_string(said.member.worker)}, "", said.device.name, said.device.max_micro_batch});
  }
  return devices;
}

void tell_of_devices(const std::vector<launcher::DeviceEntry>& devices) {
  std::map<std::string, std::vector<std::string>> workers_of;
  for (const launcher::DeviceEntry& device : devices) {
    workers_of[device.name].push_back(device.workers.front());
  }
  for (const auto& [name, workers] : workers_of) {
    if (!name.empty()) fmt::print("{} said: {}\n", fmt::join(workers, ", "), name);
  }
}

// Prints how the run itself went, if it has ended.
void tell_of_run(const std::string& run_dir, const launcher::JobConfig& config,
                 const fleet::RecordedSpeeds& speeds) {
  fmt::print("recorded: {:.1f} s of training under {}", speeds.seconds(), config.control.solution);
  if (const auto summary = launcher::read_summary(run_dir)) {
    fmt::print(", {:.1f} s in the summary, {:.0f} samples/s", summary->training_seconds,
               summary->samples_per_second);
  }
  fmt::print("\n");
}

Result<int> replay(const ReplayOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  FleetJob job;
  ANTDT_TRY(job.config, launcher::load_effective(run_dir));
  ANTDT_RETURN_IF_ERROR(can_be_played(job.config));
  ANTDT_TRY(const jobd::DataFound data, jobd::load_data_found(run_dir));
  job.train_records = data.train_records;
  job.hosts = job.config.cluster.hosts;
  if (job.hosts.empty()) job.hosts.emplace_back("simulated");
  const auto control = launcher::read_control(run_dir);
  const std::string state_dir = control ? control->state_dir : run_dir;
  ANTDT_TRY(const auto devices, said_devices(jobd::RunJournal(job.config, run_dir, state_dir)));
  job.config.device.insert(job.config.device.end(), devices.begin(), devices.end());
  const std::string history = state_dir + "/history.db";
  ANTDT_TRY(const shard_server::Series series, shard_server::read_series(history));
  const std::uint32_t workers = job.config.roles.worker.count;
  auto speeds = fleet::RecordedSpeeds::make(series, workers);
  if (!speeds) {
    return fail(speeds.error().kind, "{} cannot be replayed: {} ({})", run_dir,
                speeds.error().message, history);
  }
  job.costs.collective_s = speeds->step_cost_s();
  job.costs.collective_round_s = 0;
  std::vector<std::string> solutions = options.solutions;
  if (solutions.empty()) solutions = {"none", "nd"};
  ANTDT_TRY(const auto lines, play_each(job, *speeds, solutions));
  if (!options.json) {
    tell_of_run(run_dir, job.config, *speeds);
    tell_of_devices(devices);
  }
  print_comparison(lines, options.json);
  return 0;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Play a run again in virtual time, with its workers' speeds and another solution");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command
      ->add_option("--solution", options->solutions,
                   "which solution (default: none and nd), as often as wanted")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = replay(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
