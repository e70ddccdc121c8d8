// antdt data: the accounts of a run, synthetic data, the index.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/report/states.h"
#include "jobd/disk/checkpoint_store.h"
#include "jobd/disk/run_journal.h"
#include "jobd/programs/job_spec.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/usage.h"
#include "launcher/view/summary_view.h"
#include "shard_server/accounts/audit.h"
#include "trainer/data/formats/synth.h"

namespace antdt::cli {

namespace {

// A full disk has no room for what the journal would tell of a checkpoint that found some
// elsewhere.
void compare_with_checkpoint(const std::string& run_dir, shard_server::AuditReport& found) {
  if (found.finished || present_state(run_dir) == RunState::kRunning) return;
  const jobd::CheckpointStore store(run_dir, 0);
  const auto names = store.list();
  if (!names || names->empty()) return;
  const auto accounts = store.accounts_in(names->back());
  if (accounts) shard_server::compare(found, names->back(), *accounts);
}

// Not 1, with which an audit says that a promise was broken.
constexpr int kNoAccounts = 7;

// What to do about a journal that cannot be read.
std::string way_out(const std::string& run_dir, const jobd::RunJournal& journal) {
  const auto summary = launcher::read_summary(run_dir);
  if (summary && end_of(*summary) == JobEnd::kDone) {
    return fmt::format("Restore {} from a copy; {}/summary.json has the sums of the accounts",
                       journal.name(), run_dir);
  }
  return fmt::format(
      "Restore {} from a copy, or: antdt run --resume {} --from-checkpoint goes on with what the "
      "newest complete checkpoint knows, and trains again what came after it",
      journal.name(), run_dir);
}

Result<int> audit(const std::string& run, bool json) {
  ANTDT_TRY(const std::string run_dir, find_job(run));
  ANTDT_TRY(const auto journal, jobd::RunJournal::of_run(run_dir));
  const auto accounts = journal.accounts();
  if (!accounts && accounts.error().kind == ErrorKind::kCorrupt) {
    return fail(ErrorKind::kCorrupt,
                "the accounts of the run in {} are not known, since its journal cannot be read: "
                "{}. {}",
                run_dir, accounts.error().message, way_out(run_dir, journal));
  }
  if (!accounts) return tl::unexpected<Error>(accounts.error());
  shard_server::AuditReport found = shard_server::audit(*accounts);
  compare_with_checkpoint(run_dir, found);
  if (const auto data = jobd::load_data_found(run_dir)) found.rows_put_aside = data->rows_put_aside;
  fmt::print("{}",
             json ? shard_server::audit_json(found) + "\n" : shard_server::audit_table(found));
  return found.exit_code;
}

void add_audit(CLI::App& data, int& exit_code) {
  struct Options {
    std::string run;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = data.add_subcommand("audit", "What became of every record of a run");
  command->add_option("RUN", options->run, kJobHelp)->required();
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto code = audit(options->run, options->json);
    if (code) {
      exit_code = *code;
    } else {
      const int failed = report(code.error());
      exit_code = failed == 1 ? kNoAccounts : failed;
    }
  });
}

struct SynthOptions {
  std::uint64_t rows = 200'000;
  std::uint64_t seed = 1;
  std::string out;
  bool json = false;
};

Status synth(const SynthOptions& options) {
  ANTDT_TRY(const data::SynthReport made,
            data::synthesize_criteo(options.rows, options.seed, options.out));
  if (options.json) {
    const nlohmann::ordered_json out = {
        {"train_file", made.train_file}, {"eval_file", made.eval_file},
        {"train_rows", made.train_rows}, {"eval_rows", made.eval_rows},
        {"best_auc", made.best_auc},     {"best_log_loss", made.best_log_loss},
        {"base_rate", made.base_rate}};
    fmt::print("{}\n", out.dump());
    return {};
  }
  fmt::print("{}: {} rows\n{}: {} rows\nclicks: {:.1f}%\n", made.train_file, made.train_rows,
             made.eval_file, made.eval_rows, 100 * made.base_rate);
  fmt::print("best reachable on the evaluation rows: AUC {:.4f}, log loss {:.4f}\n", made.best_auc,
             made.best_log_loss);
  return {};
}

void add_synth(CLI::App& data, int& exit_code) {
  const auto options = std::make_shared<SynthOptions>();
  CLI::App* command = data.add_subcommand("synth", "Make data from a planted model");
  command->require_subcommand(1);
  CLI::App* criteo = command->add_subcommand("criteo", "Click logs in Criteo's format");
  criteo->add_option("--rows", options->rows, "training rows")->check(at_least_one());
  criteo->add_option("--seed", options->seed, "the same seed gives the same bytes");
  criteo->add_option("--out", options->out, "directory for train.tsv and eval.tsv")
      ->required()
      ->type_name("DIR");
  criteo->add_flag("--json", options->json, "print JSON");
  criteo->callback([options, &exit_code] {
    if (const auto done = synth(*options); !done) exit_code = report(done.error());
  });
}

struct IndexOptions {
  std::string job;
  std::vector<std::string> set;
  bool json = false;
};

Status index(const IndexOptions& options) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load(options.job, options.set));
  ANTDT_TRY(const std::string text, index_data(config));
  if (options.json) {
    fmt::print("{}", text);
    return {};
  }
  const auto found = nlohmann::json::parse(text);
  fmt::print("training records: {}\nevaluation records: {}\nmalformed rows put aside: {}\n",
             found["train_records"].get<std::uint64_t>(),
             found["eval_records"].get<std::uint64_t>(), found["quarantined"].get<std::uint64_t>());
  return {};
}

void add_index(CLI::App& data, int& exit_code) {
  const auto options = std::make_shared<IndexOptions>();
  CLI::App* command = data.add_subcommand("index", "Index and check a job's data, as run does");
  command->add_option("JOB", options->job, "the job's file, job.toml")->required();
  command->add_option("--set", options->set, "KEY=VALUE: change what JOB says; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    if (const auto done = index(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace

void add_data(CLI::App& app, int& exit_code) {
  CLI::App* data = app.add_subcommand("data", "Data and the accounts of it");
  data->require_subcommand(1);
  add_audit(*data, exit_code);
  add_data_skip(*data, exit_code);
  add_data_which(*data, exit_code);
  add_synth(*data, exit_code);
  add_index(*data, exit_code);
}

}  // namespace antdt::cli
