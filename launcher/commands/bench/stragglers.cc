#include "launcher/commands/bench/stragglers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "bench/antdt/hosts.h"
#include "bench/antdt/jobs.h"
#include "bench/stragglers/page.h"
#include "core/drill/drill_json.h"
#include "core/os/fs.h"
#include "launcher/commands/commands.h"
#include "launcher/model/model_aside.h"
#include "launcher/start/start.h"
#include "launcher/view/text_table.h"
#include "report/run_view.h"
#include "sim/fleet/drill_speeds.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
using namespace antdt::stragglers;

struct StragglersOptions {
  Wanted wanted;
  std::string out = "stragglers";
  std::uint32_t runs = 1;
  std::uint32_t at_once = 0;  // 0: three for each processor
  double seconds = 0;         // length of a job in the ideal case; 0: as long as its windows need
  bool json = false;
};

// A planned run of a cell.
struct PlannedRun {
  std::size_t cell = 0;
  fleet::DrillSpeeds speeds;
  std::string name;  // stem of its files' names
  std::string run_dir;
};

constexpr std::uint64_t kSeed = 5;

Result<fleet::DrillSpeeds> speeds_of(const Situation& situation, std::uint64_t seed) {
  ANTDT_TRY(const auto traces, drill::read_traces(situation.rules));
  const std::vector<std::string> hosts(situation.workers, "here");
  return fleet::DrillSpeeds::make(situation.emulation, situation.rules, traces, situation.workers,
                                  hosts, seed);
}

// Starts agents for the situations that have hosts, the same for all of them; null if no situation
// has hosts.
Result<std::unique_ptr<bench::BenchHosts>> start_hosts(const StragglersOptions& options,
                                                       const std::vector<Cell>& cells) {
  const auto needs = std::ranges::find_if(
      cells, [](const Cell& c) { return c.not_run.empty() && !c.situation.hosts.empty(); });
  if (needs == cells.end()) return nullptr;
  return bench::BenchHosts::start(needs->situation.hosts, options.out);
}

// Writes the job of a cell's run.
Result<PlannedRun> plan_run(const StragglersOptions& options, const std::vector<Cell>& cells,
                            std::size_t index, std::uint32_t run, const Cluster& hosts) {
  const Cell& cell = cells[index];
  const Windows windows = windows_of(options.wanted);
  const std::uint64_t seed = kSeed + run;
  ANTDT_TRY(auto speeds, speeds_of(cell.situation, seed));
  const Duration least = options.seconds > 0 ? from_seconds(options.seconds) : least_job(windows);
  const std::uint64_t records = records_for(cell, speeds, least);
  std::string name = fmt::format("{}.{}.{}", cell.situation.name, cell.solution, run + 1);
  ANTDT_RETURN_IF_ERROR(write_file_atomic(
      fmt::format("{}/{}.toml", options.out, name),
      job_toml(cell, windows, records, seed, cell.situation.hosts.empty() ? Cluster{} : hosts),
      0644));
  std::string run_dir = fmt::format("{}/{}", options.out, name);
  return PlannedRun{index, std::move(speeds), std::move(name), std::move(run_dir)};
}

// The results of the runs, by cell.
struct Done {
  std::vector<std::vector<Measured>> runs;
  std::vector<std::string> failures;
};

void take(const PlannedRun& planned, const Cell& cell, int code, Done& done) {
  const auto text = read_file(planned.run_dir + "/summary.json");
  if (code != 0 || !text) {
    done.failures[planned.cell] =
        fmt::format("its job failed with exit code {}: see {}.log", code, planned.run_dir);
    return;
  }
  auto found = measured(cell, planned.speeds, *text);
  if (!found) {
    done.failures[planned.cell] = fmt::format("{}: {}", planned.run_dir, found.error().message);
    return;
  }
  found->run_dir = planned.run_dir;
  done.runs[planned.cell].push_back(std::move(*found));
}

Result<int> run_all(const StragglersOptions& options, const std::vector<Cell>& cells,
                    const std::vector<PlannedRun>& planned, Done& done) {
  std::vector<bench::BenchJob> jobs;
  for (const PlannedRun& p : planned) {
    jobs.push_back(
        {{"run", p.run_dir + ".toml", "--run-dir", p.run_dir, "--json"}, p.run_dir + ".log"});
  }
  std::size_t count = 0;
  return bench::run_jobs(jobs, options.at_once, [&](std::size_t i, int code) {
    const PlannedRun& p = planned[i];
    take(p, cells[p.cell], code, done);
    std::string said = "failed";
    if (const auto& runs = done.runs[p.cell]; code == 0 && !runs.empty()) {
      const fleet::Comparison& line = runs.back().line;
      said = fmt::format("{:.1f} s, {:.3f} of ideal", line.job_seconds, line.share_of_ideal());
    }
    fmt::print(stderr, "{}/{} {}: {}\n", ++count, planned.size(), p.name, said);
  });
}

std::uint32_t processors() { return std::max(1U, std::thread::hardware_concurrency()); }

Result<StragglersOptions> with_defaults(StragglersOptions options) {
  ANTDT_RETURN_IF_ERROR(AsideDirectory::check(options.out));
  options.out = fs::absolute(options.out).lexically_normal();
  if (!options.wanted.traces.empty()) {
    options.wanted.traces = fs::absolute(options.wanted.traces).lexically_normal();
  }
  if (options.at_once == 0) options.at_once = 3 * processors();
  return options;
}

// The command line as a user could type it again.
std::string command_of(const StragglersOptions& options) {
  std::string text = "antdt bench stragglers";
  if (options.wanted.quick) text += " --quick";
  const auto names = [&](const char* flag, const std::vector<std::string>& list) {
    if (!list.empty()) text += fmt::format(" {} {}", flag, fmt::join(list, ","));
  };
  names("--only", options.wanted.only);
  names("--solutions", options.wanted.solutions);
  if (!options.wanted.traces.empty()) text += " --traces " + options.wanted.traces;
  if (options.seconds > 0) text += fmt::format(" --seconds {:g}", options.seconds);
  return text + fmt::format(" --runs {} --at-once {}", options.runs, options.at_once);
}

Status write_page(const StragglersOptions& options, const std::vector<Line>& lines) {
  std::vector<page::RunView> runs;
  for (const Line& line : lines) {
    if (line.runs.empty()) continue;
    const std::string heading = fmt::format("{}, {}", line.situation, line.solution);
    ANTDT_TRY(page::RunView view, read_run_view(line.middle().run_dir, heading));
    runs.push_back(std::move(view));
  }
  return write_file_atomic(options.out + "/index.html",
                           comparison_page(lines, command_of(options), runs), 0644);
}

Result<int> bench_stragglers(const StragglersOptions& given) {
  ANTDT_TRY(const StragglersOptions options, with_defaults(given));
  ANTDT_TRY(const std::vector<Cell> cells, matrix(options.wanted));
  ANTDT_RETURN_IF_ERROR(make_directories(options.out));
  ANTDT_TRY(const auto agents, start_hosts(options, cells));
  const Cluster hosts =
      agents == nullptr ? Cluster{} : Cluster{agents->addresses(), agents->keys()};
  std::vector<PlannedRun> planned;
  for (std::uint32_t run = 0; run < options.runs; ++run) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].not_run.empty()) continue;
      ANTDT_TRY(PlannedRun one, plan_run(options, cells, i, run, hosts));
      planned.push_back(std::move(one));
    }
  }
  Done done{std::vector<std::vector<Measured>>(cells.size()),
            std::vector<std::string>(cells.size())};
  ANTDT_TRY(const int stopped, run_all(options, cells, planned, done));
  if (stopped != 0) return stopped;
  std::vector<Line> lines;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(line_of(cells[i], std::move(done.runs[i]), done.failures[i]));
  }
  compare_with_none(lines);
  const std::string json = stragglers::to_json(lines) + "\n";
  ANTDT_RETURN_IF_ERROR(write_file_atomic(options.out + "/result.json", json, 0644));
  ANTDT_RETURN_IF_ERROR(write_page(options, lines));
  if (options.json) {
    fmt::print("{}", json);
  } else {
    for (const std::string& line : table(lines)) fmt::print("{}\n", line);
  }
  const bool failed = std::ranges::any_of(done.failures, [](const auto& f) { return !f.empty(); });
  return failed ? 1 : 0;
}

CLI::Option* add_names(CLI::App& command, const char* flag, std::vector<std::string>& names,
                       const char* what) {
  return command.add_option(flag, names, what)->delimiter(',')->type_name("NAME,...");
}

}  // namespace

void add_bench_stragglers(CLI::App& bench, int& exit_code) {
  const auto options = std::make_shared<StragglersOptions>();
  CLI::App* command = bench.add_subcommand(
      "stragglers", "What solutions for stragglers are worth: real jobs of emulated devices");
  command->add_flag("--quick", options->wanted.quick,
                    "short windows and fewer solutions: some ten minutes");
  add_names(*command, "--only", options->wanted.only, "only these situations");
  add_names(*command, "--solutions", options->wanted.solutions, "only these solutions");
  command->add_option("--runs", options->runs, "of each job, with seeds of their own (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--traces", options->wanted.traces,
                   "where job_1_norm.csv and so on of PAI's clusters are, to be replayed")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--seconds", options->seconds,
                   "a job's length in the ideal case (default: 20 persistent windows)")
      ->type_name("S")
      ->check(CLI::Range(1.0, 1e6));
  command
      ->add_option("--at-once", options->at_once,
                   "jobs side by side (default: three for each processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--out", options->out,
                   "directory for the result and the runs, which must not hold anything yet "
                   "(default: stragglers)")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, &exit_code] {
    const auto result = bench_stragglers(*options);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace antdt::cli
