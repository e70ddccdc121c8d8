#include "bench/stragglers/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/fleet/player.h"

namespace antdt::stragglers {
namespace {

const std::vector<std::string> kSolutions = {
    "none", "dds", "backup-workers", "lb-bsp", "nd", "dd", "none+share", "nd+share", "dd+share"};
constexpr std::string_view kShare = "+share";  // behind a solution: steps are shared

// With --quick: the solutions whose difference the situation shows.
std::vector<std::string> telling(const std::string& situation) {
  if (situation.ends_with("-classes")) return {"none", "lb-bsp", "dd"};
  if (situation == "pai-4") return {"none", "lb-bsp", "nd"};
  if (situation == "mix") return {"none", "dds", "lb-bsp", "nd"};
  if (situation == "mix-ps") return {"none", "backup-workers", "nd"};
  return {"none", "nd"};
}

bool shares(const std::string& solution) { return solution.ends_with(kShare); }

std::string without_share(const std::string& solution) {
  return solution.substr(0, solution.size() - (shares(solution) ? kShare.size() : 0));
}

// As a part of a job's name.
std::string named(const std::string& solution) {
  return without_share(solution) + (shares(solution) ? "-share" : "");
}

bool equal_parts(const std::string& solution) {
  return solution == "none" || solution == "dds" || solution == "backup-workers";
}

std::string why_not(const Situation& situation, const std::string& solution) {
  if (!situation.lacks.empty()) return situation.lacks;
  if (solution == "backup-workers" && situation.sync == "allreduce") {
    return "a sum over all workers waits for all of them: backup workers need sync = \"ps-bsp\"";
  }
  if (shares(solution) && situation.sync != "allreduce") {
    return "steps are shared under sync = \"allreduce\"";
  }
  return "";
}

Status check_names(const std::vector<std::string>& names, const std::vector<std::string>& known,
                   const char* what) {
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return fail(ErrorKind::kUsage, "'{}' is no {} of this comparison: there are {}", name, what,
                fmt::join(known, ", "));
  }
  return {};
}

bool wants(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

// The time of a worker's part, in as few micro-batches as fit its memory.
double part_s(const fleet::BatchTime& time, double part) {
  const double count = time.memory == 0 ? 1 : std::ceil(part / time.memory);
  return count * time.seconds(part / count);
}

// The time of a step in which each worker trains an equal part and the slowest `spared` workers are
// not waited for.
double equal_step_s(const fleet::Speeds& speeds, const fleet::Work& work, std::size_t spared,
                    double now_s, std::uint64_t step) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i < work.workers; ++i) {
    times.push_back(part_s(speeds.at(i, now_s, step), work.global_batch / work.workers));
  }
  std::ranges::sort(times);
  return times[times.size() - 1 - spared] + work.step_cost_s;
}

std::string list(const std::vector<std::string>& names) {
  return fmt::format("[\"{}\"]", fmt::join(names, "\", \""));
}

std::string ms(Duration d) {
  return fmt::format("\"{}ms\"", std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}
std::string us(Duration d) {
  return fmt::format("\"{}us\"", std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

std::string device_toml(const drill::Device& device) {
  std::string text = fmt::format("\n[[emulated.device]]\nclass = \"{}\"\n", device.name);
  if (!device.workers.empty()) text += fmt::format("workers = {}\n", list(device.workers));
  return text + fmt::format("flat = {}\nflat_until = {}\nper_sample = {}\nmemory = {}\n",
                            us(device.flat), device.flat_until, us(device.per_sample),
                            device.memory);
}

std::string rule_toml(const drill::Rule& rule) {
  std::string text = fmt::format("\n[[inject]]\nworkers = {}\n", list(rule.workers));
  if (!rule.host.empty()) text += fmt::format("host = \"{}\"\n", rule.host);
  if (rule.delay.count() != 0) text += fmt::format("delay = {}\n", us(rule.delay));
  if (rule.slowdown != 1) text += fmt::format("slowdown = {:.3f}\n", rule.slowdown);
  if (rule.every.count() != 0) {
    text += fmt::format("every = {}\nfor = {}\n", ms(rule.every), ms(rule.lasts));
  }
  if (!rule.trace.empty()) text += fmt::format("trace = \"{}\"\n", rule.trace);
  return text;
}

}  // namespace

Windows windows_of(const Wanted& wanted) {
  using std::chrono::seconds;
  return wanted.quick ? Windows{seconds(1), seconds(5)} : Windows{seconds(10), seconds(60)};
}

Duration least_job(const Windows& windows) { return 20 * windows.persistent; }

Result<std::vector<Cell>> matrix(const Wanted& wanted) {
  const std::vector<Situation> all = situations(windows_of(wanted), wanted.traces);
  std::vector<std::string> names;
  for (const Situation& s : all) names.push_back(s.name);
  ANTDT_RETURN_IF_ERROR(check_names(wanted.only, names, "situation"));
  ANTDT_RETURN_IF_ERROR(check_names(wanted.solutions, kSolutions, "solution"));
  std::vector<Cell> cells;
  for (const Situation& situation : all) {
    if (!wants(wanted.only, situation.name)) continue;
    std::vector<std::string> solutions = wanted.solutions;
    if (solutions.empty()) solutions = wanted.quick ? telling(situation.name) : kSolutions;
    for (auto it = solutions.begin(); it != solutions.end(); ++it) {
      if (std::find(solutions.begin(), it, *it) != it) continue;  // it was named twice
      const std::string& solution = *it;
      cells.push_back({situation, solution, why_not(situation, solution)});
    }
  }
  return cells;
}

fleet::Work work_of(const Situation& situation) {
  const fleet::Costs costs;
  fleet::Work work;
  work.workers = situation.workers;
  work.global_batch = situation.global_batch;
  // A server serves one worker after another. So the last worker begins later by the requests of
  // all, and then waits for a push, a commit and a decision.
  const double served_s = to_seconds(situation.service) * (work.workers + 3);
  work.step_cost_s = situation.sync == "allreduce" ? costs.exchange_s(work.workers)
                                                   : 2 * costs.round_trip_s + served_s;
  return work;
}

std::uint64_t records_for(const Cell& cell, const fleet::Speeds& speeds, Duration least) {
  fleet::Work work = work_of(cell.situation);
  const double seconds = to_seconds(least);
  std::uint64_t steps = 0;
  if (equal_parts(cell.solution)) {
    const std::size_t spared = cell.solution == "backup-workers" ? 1 : 0;
    for (double now_s = 0; now_s < seconds; ++steps) {
      now_s += equal_step_s(speeds, work, spared, now_s, steps);
    }
  } else {
    steps = fleet::ideal_steps(speeds, work, seconds);
  }
  return steps * cell.situation.global_batch;
}

std::string job_toml(const Cell& cell, const Windows& windows, std::uint64_t records,
                     std::uint64_t seed, const Cluster& cluster) {
  const Situation& s = cell.situation;
  const bool servers = s.sync != "allreduce";
  std::string places;
  if (servers) places += fmt::format("[roles.server]\ncount = {}\n", s.servers);
  if (!cluster.addresses.empty()) {
    places += fmt::format("[cluster]\nhosts = {}\nkeys = \"{}\"\n", list(cluster.addresses),
                          cluster.keys);
  }
  std::string text = fmt::format(
      R"(# {}
schema = 1
[job]
name = "{}-{}"
seed = {}
[roles.worker]
count = {}
{}[data]
format = "index"
records = {}
[batch]
global = {}
adjust = "{}"
[trainer]
model = "emulated"
sync = "{}"
[control]
solution = "{}"
share_steps = {}
transient_window = {}
persistent_window = {}
allow = ["kill-restart"]
[checkpoint]
every = "0s"
[emulated]
noise = {:.3f}
parameters = {}
)",
      s.what, s.name, named(cell.solution), seed, s.workers, places, records, s.global_batch,
      servers ? "size" : "both", s.sync, without_share(cell.solution), shares(cell.solution),
      ms(windows.transient), ms(windows.persistent), s.emulation.noise, s.emulation.parameters);
  for (const drill::Device& device : s.emulation.devices) text += device_toml(device);
  for (const drill::Rule& rule : s.rules) text += rule_toml(rule);
  return text;
}

}  // namespace antdt::stragglers
