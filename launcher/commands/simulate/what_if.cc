#include "launcher/commands/simulate/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/sync_strategy.h"
#include "launcher/view/text_table.h"
#include "sim/fleet/some_workers.h"

namespace antdt::cli {
namespace {

// The solutions that act on such a job and are meant to be used (docs/solutions.md).
std::vector<std::string> solutions_for(const launcher::JobConfig& config) {
  std::vector<std::string> names = {"none", "nd"};
  if (in_collective(config)) names.emplace_back("dd");
  if (by_name<SyncStrategy>(config.trainer.sync) == SyncStrategy::kPsBsp) {
    names.emplace_back("backup-workers");
  }
  const std::string& own = config.control.solution;
  if (std::ranges::find(names, own) == names.end()) names.push_back(own);
  return names;
}

// Which solutions are played without the slowest hosts: that of the run, and nd.
std::vector<std::string> solutions_with_fewer(const launcher::JobConfig& config) {
  const std::string& own = config.control.solution;
  if (own == "nd" || own == "command") return {"nd"};
  return {own, "nd"};
}

std::vector<std::uint32_t> all_but(const std::vector<std::uint32_t>& left_out, std::size_t count) {
  std::vector<std::uint32_t> which;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::ranges::find(left_out, i) == left_out.end()) which.push_back(i);
  }
  return which;
}

fleet::Alternative play_one(const RecordedRun& run, const std::string& solution,
                            const fleet::LeftOut& left_out) {
  fleet::Alternative alternative;
  alternative.solution = solution;
  alternative.without_host = left_out.host;
  for (const std::uint32_t i : left_out.workers) {
    alternative.without.push_back(run.workers[i].id);
  }
  const auto which = all_but(left_out.workers, run.workers.size());
  const FleetJob job = with_workers(run, which);
  alternative.line.situation = job.config.job.name;
  alternative.line.solution = solution;
  alternative.line.workers = static_cast<std::uint32_t>(which.size());
  const auto played = play(job, fleet::SomeWorkers(run.speeds, which), solution);
  if (played) {
    alternative.line = played->line;
  } else {
    alternative.problem = played.error().message;
  }
  return alternative;
}

}  // namespace

WhatIf play_alternatives(const RecordedRun& run) {
  const launcher::JobConfig& config = run.job.config;
  WhatIf what_if;
  for (const std::string& solution : solutions_for(config)) {
    what_if.alternatives.push_back(play_one(run, solution, {}));
    what_if.alternatives.back().as_it_was = solution == config.control.solution;
  }
  for (const fleet::LeftOut& left_out : fleet::slowest(run.workers)) {
    for (const std::string& solution : solutions_with_fewer(config)) {
      what_if.alternatives.push_back(play_one(run, solution, left_out));
    }
  }
  const double none_s = what_if.alternatives.front().line.job_seconds;
  for (fleet::Alternative& a : what_if.alternatives) {
    if (none_s > 0 && a.played()) a.line.speedup_over_none = none_s / a.line.job_seconds;
  }
  const auto workers = static_cast<std::uint32_t>(run.workers.size());
  what_if.recommended = fleet::compare(what_if.alternatives, run.speeds.seconds(), workers);
  return what_if;
}

page::TableView view_of(const WhatIf& what_if) {
  page::TableView view;
  view.header = {"solution",        "workers#",  "job s#",   "saved s#",
                 "saved worker-h#", "of ideal#", "actions#", ""};
  for (std::size_t i = 0; i < what_if.alternatives.size(); ++i) {
    const fleet::Alternative& a = what_if.alternatives[i];
    const std::string workers = launcher::grouped(a.line.workers);
    if (!a.played()) {
      view.rows.push_back({a.name(), workers, "-", "-", "-", "-", "-", "cannot be played"});
      view.below.push_back(fmt::format("{}: {}", a.name(), a.problem));
      continue;
    }
    std::string remark = a.as_it_was ? "as it was" : "";
    if (what_if.recommended == i) remark = "recommended";
    view.rows.push_back({a.name(), workers, fmt::format("{:.1f}", a.line.job_seconds),
                         fmt::format("{:+.1f}", a.saved_seconds),
                         fmt::format("{:+.4f}", a.saved_worker_seconds / 3600),
                         fmt::format("{:.3f}", a.line.share_of_ideal()),
                         launcher::grouped(a.line.actions), std::move(remark)});
  }
  view.below.push_back(fleet::advice(what_if.alternatives, what_if.recommended));
  return view;
}

}  // namespace antdt::cli
