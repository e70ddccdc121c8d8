// antdt data skip: lets the job go on without some records, for a stated reason.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/os/fs.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/config/job_config.h"
#include "launcher/start/skips.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {

namespace {

struct DataSkipOptions {
  std::string run;
  std::string range;
  std::string reason;
  std::optional<std::uint32_t> epoch;  // from 1
};

Status check_epoch(std::uint32_t epoch, std::uint64_t epochs) {
  if (epoch >= 1 && epoch <= epochs) return {};
  return fail(ErrorKind::kUsage, "the job has no epoch {}: it has {}, and the first is epoch 1",
              epoch, epochs);
}

Status skip_now(const DataSkipOptions& options, const launcher::SkipRange& range) {
  ANTDT_TRY(RunningJob job, reach(options.run));
  if (options.epoch) {
    ANTDT_TRY(const report::Status status, await_status(job));
    ANTDT_RETURN_IF_ERROR(check_epoch(*options.epoch, status.epochs));
    if (status.epoch + 1 != *options.epoch) {
      return fail(ErrorKind::kUsage,
                  "the job is in epoch {}: records of another one can be skipped while it does not "
                  "run (antdt stop, data skip, run --resume)",
                  status.epoch + 1);
    }
  }
  ANTDT_RETURN_IF_ERROR(
      give(job, wire::SkipRecords{range.from, range.to, options.reason, operator_name()}));
  fmt::print("skipped: positions {}:{} of the present epoch, but for what is trained already\n",
             range.from, range.to);
  return {};
}

// The epoch that was open when the run ended, from 1.
Result<std::uint32_t> last_epoch(const std::string& run_dir) {
  const auto summary = launcher::read_summary(run_dir);
  if (!summary || summary->epochs.empty()) {
    return fail(ErrorKind::kUsage,
                "it is not known in which epoch the run in {} ended: name it with --epoch",
                run_dir);
  }
  return static_cast<std::uint32_t>(summary->epochs.size());
}

Status skip_later(const DataSkipOptions& options, const std::string& run_dir,
                  const launcher::SkipRange& range) {
  ANTDT_TRY(const std::string data_text, read_file(run_dir + "/data.json"));
  const auto data = nlohmann::json::parse(data_text, nullptr, false);
  const std::uint64_t records =
      data.is_object() ? data.value("train_records", std::uint64_t{0}) : std::uint64_t{0};
  if (range.to > records) {
    return fail(ErrorKind::kUsage, "an epoch of this run has {} records: TO is at most that",
                records);
  }
  std::uint32_t epoch = options.epoch.value_or(0);
  if (options.epoch) {
    ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
    ANTDT_RETURN_IF_ERROR(check_epoch(epoch, config.job.epochs));
  } else {
    ANTDT_TRY(epoch, last_epoch(run_dir));
  }
  ANTDT_TRY(std::vector<launcher::Skip> skips, launcher::read_skips(run_dir));
  skips.push_back({epoch - 1, range.from, range.to, options.reason, operator_name(), 0});
  ANTDT_RETURN_IF_ERROR(launcher::write_skips(run_dir, skips));
  fmt::print(
      "positions {}:{} of epoch {} will be skipped when the run goes on: antdt run --resume {}\n",
      range.from, range.to, epoch, run_dir);
  return {};
}

Status skip(const DataSkipOptions& options) {
  ANTDT_TRY(const launcher::SkipRange range, launcher::parse_skip_range(options.range));
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  if (present_state(run_dir) == RunState::kRunning) return skip_now(options, range);
  // Its job daemon would train the records, and may write over what is noted here.
  ANTDT_RETURN_IF_ERROR(check_seen(run_dir));
  return skip_later(options, run_dir, range);
}

}  // namespace

void add_data_skip(CLI::App& data, int& exit_code) {
  const auto options = std::make_shared<DataSkipOptions>();
  CLI::App* command = data.add_subcommand("skip", "Let a run go on without some records");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command->add_option("FROM:TO", options->range, "positions of the epoch's stream, TO not included")
      ->required();
  command->add_option("--reason", options->reason, "why, for the record")->required();
  command->add_option("--epoch", options->epoch,
                      "of which epoch, from 1 as in antdt status (default: the one that is open)");
  command->callback([options, &exit_code] {
    if (const auto done = skip(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
