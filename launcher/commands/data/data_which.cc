// antdt data which: shows the records that made a step.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "jobd/disk/run_journal.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/usage.h"
#include "launcher/start/run_directory.h"
#include "shard_server/history/step_records.h"

namespace antdt::cli {

namespace {

// As in the audit: the program reads its data without the ledger, or trains without steps.
constexpr int kUnaccounted = 6;

struct DataWhichOptions {
  std::string run;
  std::uint64_t step = 0;
  bool json = false;
};

// The history has no step. Prints why, and returns the exit code for it.
int nothing_known(const std::string& run_dir) {
  const auto journal = jobd::RunJournal::of_run(run_dir);
  if (!journal) return report(journal.error());
  const auto accounts = journal->accounts();
  if (!accounts) return report(accounts.error());
  if (!accounts->uses_ledger()) {
    fmt::print(stderr,
               "antdt: the program of {} reads its data by itself: nobody knows which records made "
               "which step\n",
               run_dir);
    return kUnaccounted;
  }
  const bool trained = std::ranges::any_of(
      accounts->epochs(), [](const shard_server::EpochAccount& e) { return e.once > 0; });
  if (!trained) {
    return report({ErrorKind::kUsage, fmt::format("no step of {} is trained yet", run_dir)});
  }
  fmt::print(stderr,
             "antdt: no step of {} was written down: its workers have no common steps (they train "
             "each for itself), or it was trained without a history\n",
             run_dir);
  return kUnaccounted;
}

Result<int> which(const DataWhichOptions& options) {
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  const auto control = launcher::read_control(run_dir);
  const std::string state_dir = control ? control->state_dir : run_dir;
  const std::string history = state_dir + "/history.db";
  std::error_code error;
  if (!std::filesystem::exists(history, error)) return nothing_known(run_dir);
  const auto found = shard_server::read_step(history, Step{options.step});
  if (!found && found.error().kind == ErrorKind::kAborted) return nothing_known(run_dir);
  if (!found) return tl::unexpected<Error>(found.error());
  fmt::print("{}", options.json ? shard_server::step_json(*found) + "\n"
                                : shard_server::step_table(*found));
  return found->unknown() > 0 ? 1 : 0;
}

}  // namespace

void add_data_which(CLI::App& data, int& exit_code) {
  const auto options = std::make_shared<DataWhichOptions>();
  CLI::App* command = data.add_subcommand("which", "Which records made a step");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command->add_option("--step", options->step, "the number of the step, from 1")
      ->required()
      ->type_name("S")
      ->check(at_least_one());
  command->add_flag("--json", options->json, "print JSON, with every record's number");
  command->callback([options, &exit_code] {
    const auto code = which(*options);
    exit_code = code ? *code : report(code.error());
  });
}

}  // namespace antdt::cli
