#include "launcher/commands/plan/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.h"
#include "core/os/directory.h"
#include "core/os/fs.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/simulate/short_run.h"
#include "launcher/plan/domain_cost.h"
#include "launcher/plan/trial_times.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
namespace plan = launcher::plan;

constexpr std::chrono::milliseconds kLookAtTrialEvery{100};
constexpr Duration kStart = std::chrono::seconds(60);   // until the first report
constexpr Duration kLongest = std::chrono::seconds(6);  // afterwards, if steps are long
constexpr double kBucketBytes = 1 << 20;                // as in trainer/torch/gradient_reducer.h

// `domain` of a trial's workers. Under gaia they are in two domains at least.
std::string domains_setting(const TriedJob& job, const WantedTrial& wanted) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  const auto add = [&](const std::string& domain, std::uint32_t worker) {
    auto at = std::ranges::find(found, domain, [](const auto& entry) { return entry.first; });
    if (at == found.end()) at = found.insert(at, {domain, {}});
    at->second.push_back(fmt::format("\"w{}\"", worker));
  };
  for (std::uint32_t i = 0; i < wanted.workers && i < job.domains.size(); ++i) {
    if (!job.domains[i].empty()) add(job.domains[i], i);
  }
  if (wanted.strategy == plan::Strategy::kGaia && found.size() < 2) {
    found.clear();
    for (std::uint32_t i = 0; i < wanted.workers; ++i) {
      add(i < (wanted.workers + 1) / 2 ? "one" : "other", i);
    }
  }
  std::vector<std::string> tables;
  for (const auto& [name, workers] : found) {
    tables.push_back(fmt::format("{{name=\"{}\",workers=[{}]}}", name, fmt::join(workers, ",")));
  }
  return fmt::format("domain=[{}]", fmt::join(tables, ","));
}

std::vector<std::string> settings_of(const TriedJob& job, const WantedTrial& wanted) {
  const plan::StrategyEntry& entry = plan::entry_of(wanted.strategy);
  const bool sparse_job = job.config.trainer.embedding_gradients == "sparse";
  std::vector<std::string> settings = settings_of_trials(job.overrides);
  const auto add = [&](std::string setting) { settings.push_back(std::move(setting)); };
  add(fmt::format("trainer.sync=\"{}\"", entry.sync));
  add(fmt::format("roles.server.count={}", wanted.servers));
  add(fmt::format("roles.worker.count={}", wanted.workers));
  add(fmt::format("batch.global={}", wanted.workers * wanted.batch));
  if (entry.sparse) add("trainer.embedding_gradients=\"sparse\"");
  if (!entry.sparse && sparse_job) add("trainer.embedding_gradients=\"auto\"");
  const bool sums = !entry.on_servers || wanted.strategy == plan::Strategy::kHybrid;
  if (!sums) add("trainer.collective=\"auto\"");
  if (sums && job.tcp) add("trainer.collective=\"tcp\"");
  if (!job.config.domain.empty()) add(domains_setting(job, wanted));
  if (wanted.strategy == plan::Strategy::kGaia) {
    add(fmt::format("trainer.gaia.threshold={}", job.config.trainer.gaia.threshold));
    add("trainer.gaia.whole_every=1000000");  // they are computed
  }
  if (!job.host.empty()) add(fmt::format("cluster.hosts=[\"{}\"]", job.host));
  return settings;
}

// What the job says of itself until it is stopped: it was seen for long enough, or it takes too
// long.
std::vector<report::Status> watched(Command& running, const std::string& run_dir,
                                    const plan::Trial& trial) {
  std::vector<report::Status> seen;
  std::optional<RunningJob> job;
  const SteadyClock clock;
  MonoTime until = clock.now() + kStart;
  while (!running.ended() && clock.now() < until && !plan::saw_enough(trial, seen)) {
    std::this_thread::sleep_for(kLookAtTrialEvery);
    if (!job) {
      // At first its daemon does not run yet.
      if (auto reached = reach(run_dir)) job.emplace(std::move(*reached));
      continue;
    }
    auto status = status_of(*job);
    if (!status || status->samples_done == 0) continue;
    if (seen.empty()) until = clock.now() + kLongest;
    seen.push_back(std::move(*status));
  }
  return seen;
}

// state.json of the only checkpoint.
Result<plan::ModelSize> size_in(const std::string& run_dir) {
  const std::string checkpoints = run_dir + "/checkpoints";
  ANTDT_TRY(const auto names, names_in(checkpoints));
  for (const std::string& name : names) {
    const auto text = read_file(fmt::format("{}/{}/state.json", checkpoints, name));
    if (text) return size_of_model(*text);
  }
  return plan::ModelSize{};
}

}  // namespace

std::vector<std::string> settings_of_trials(std::vector<std::string> overrides) {
  // Nobody is to be told of this run, a port may be taken by the job itself, and drills and
  // evaluation are not part of a step.
  overrides.insert(overrides.end(),
                   {"control.solution=none", "control.command=[]", "control.share_steps=false",
                    "checkpoint.every=0s", "hooks.event=[]", "metrics.listen=\"\"",
                    "metrics.tensorboard=false", "job.epochs=1000000", "data.eval_paths=[]",
                    "data.eval_labels=[]", "data.eval_records=0", "inject=[]",
                    // So workers report ten times a second.
                    "control.transient_window=400ms", "control.persistent_window=60s"});
  // These are refused under other ways than their own.
  overrides.insert(
      overrides.end(),
      {"trainer.backup_workers=0", "trainer.staleness=4", "trainer.shadow.every=0",
       "trainer.shadow.alpha=0", "trainer.shadow.eta=0.5", "trainer.shadow.threads=1",
       "trainer.gaia.threshold=0.01", "trainer.gaia.whole_every=50", "control.skew_scout.every=50",
       "control.skew_scout.tolerated_loss=0.05", "control.skew_scout.weight_loss=50",
       "control.skew_scout.weight_bytes=1", "data.delivery=exactly-once"});
  return overrides;
}

std::string why_impossible(const TriedJob& job, const WantedTrial& wanted) {
  const auto config = launcher::load(job.job, settings_of(job, wanted));
  if (config) return {};
  const std::string& message = config.error().message;
  // The first problem, without the place in the file, which these settings are not from.
  const std::string first = message.substr(0, message.find('\n'));
  const std::size_t key = first.find("trainer.");
  return key == std::string::npos ? first : first.substr(key);
}

std::optional<double> share_of_messages(const std::vector<report::WorkerSummary>& workers) {
  double sent = 0, messages = 0;
  for (const report::WorkerSummary& w : workers) {
    if (!w.updates) continue;
    const auto whole = static_cast<double>(w.updates->whole);
    const auto all = static_cast<double>(w.updates->messages);
    // A whole message has what is pending, which is nearly every element.
    sent += std::max(0.0, w.updates->sent_share * all - whole);
    messages += all - whole;
  }
  if (messages == 0) return std::nullopt;
  return plan::bytes_of_elements(sent / messages);
}

Result<plan::ModelSize> size_of_model(const std::string& state_json) {
  plan::ModelSize size;
  const auto state = nlohmann::json::parse(state_json, nullptr, false);
  if (!state.is_object() || !state.contains("parameters")) {
    return fail(ErrorKind::kCorrupt, "the trial's state.json has no parameters");
  }
  // Of the built-in optimizers only Adam keeps two arrays (trainer/torch/optimizer.h).
  if (state.contains("arrays") && state["arrays"].size() == 3) size.mixed = 3;
  bool open = false;  // whether the last sum takes more parameters
  for (const auto& parameter : state["parameters"]) {
    double floats = 1;
    for (const auto& n : parameter["sizes"]) floats *= n.get<double>();
    const double bytes = 4 * floats;
    if (parameter["name"] == "table") {
      size.table_rows = parameter["sizes"][0].get<double>();
      size.row_bytes = size.table_rows > 0 ? bytes / size.table_rows : 0;
      open = false;
      continue;
    }
    if (open && size.sums.back() + bytes <= kBucketBytes) {
      size.sums.back() += bytes;
    } else {
      size.sums.push_back(bytes);
    }
    open = true;
  }
  return size;
}

Result<Tried> try_out(const TriedJob& job, const WantedTrial& wanted,
                      const std::string& directory) {
  const std::string name = fmt::format("{}-{}-{}-{}", static_cast<int>(wanted.strategy),
                                       wanted.workers, wanted.servers, wanted.batch);
  const std::string run_dir = directory + "/" + name;
  const std::string output = run_dir + ".output";
  std::vector<std::string> arguments = {"run", job.job, "--run-dir", run_dir, "--json"};
  for (const std::string& setting : settings_of(job, wanted)) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  ANTDT_TRY(Command running, Command::start(std::move(arguments), output));
  plan::Trial trial;
  trial.strategy = wanted.strategy;
  trial.workers = wanted.workers;
  trial.servers = wanted.servers;
  trial.batch = static_cast<double>(wanted.batch);
  const std::vector<report::Status> seen = watched(running, run_dir, trial);
  if (!running.ended()) {
    ANTDT_TRY(Command stop, Command::start({"stop", run_dir, "--reason", "tried"}, output));
    stop.await_end();
    running.await_end();
  }
  Tried tried;
  tried.trial = plan::timed(trial, seen);
  if (tried.trial.steps == 0) {
    return fail(ErrorKind::kUsage,
                "a trial of {} trained nothing. It printed:\n{}\nSee that antdt run "
                "trains this job with trainer.sync = \"{}\"",
                plan::entry_of(wanted.strategy).name, end_of_output(output),
                plan::entry_of(wanted.strategy).sync);
  }
  if (!plan::entry_of(wanted.strategy).on_servers) {
    ANTDT_TRY(tried.model, size_in(run_dir));
  }
  if (wanted.strategy == plan::Strategy::kGaia) {
    ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
    tried.updates.share = share_of_messages(summary.workers);
    for (const report::WorkerSummary& w : summary.workers) {
      if (w.updates) tried.updates.messages = std::max(tried.updates.messages, w.updates->messages);
    }
  }
  std::error_code ignored;
  fs::remove_all(run_dir, ignored);
  return tried;
}

}  // namespace antdt::cli
