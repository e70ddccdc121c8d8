#include "sim/fleet/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/statistics/median.h"

namespace antdt::fleet {
namespace {

constexpr std::size_t kMostLeftOut = 3;
constexpr double kSlower = 1.1;
// Two times that differ by less are equal: the simulation is no better than that.
constexpr double kNoticeable = 0.03;

struct Paced {
  LeftOut who;
  double seconds = 0;  // mean of its workers, for a sample
};

std::vector<Paced> groups_of(const std::vector<WorkerPace>& workers) {
  const bool one_host = std::ranges::all_of(
      workers, [&](const WorkerPace& w) { return w.host == workers.front().host; });
  std::map<std::string, Paced> groups;
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    Paced& group = groups[one_host ? fmt::format("{:06}", i) : workers[i].host];
    if (!one_host) group.who.host = workers[i].host;
    group.who.workers.push_back(i);
    group.seconds += workers[i].seconds_per_sample;
  }
  std::vector<Paced> all;
  for (auto& [name, group] : groups) {
    group.seconds /= static_cast<double>(group.who.workers.size());
    all.push_back(std::move(group));
  }
  return all;
}

}  // namespace

std::string Alternative::name() const {
  if (without.empty()) return solution;
  if (without_host.empty()) return fmt::format("{} without {}", solution, fmt::join(without, ", "));
  return fmt::format("{} without host {} ({})", solution, without_host, fmt::join(without, ", "));
}

std::vector<LeftOut> slowest(const std::vector<WorkerPace>& workers) {
  std::vector<LeftOut> out;
  if (workers.empty()) return out;
  std::vector<Paced> groups = groups_of(workers);
  if (groups.size() < 2) return out;
  std::vector<double> seconds;
  for (const Paced& group : groups) seconds.push_back(group.seconds);
  const double usual = lower_median(std::move(seconds));
  std::ranges::stable_sort(groups, std::greater{}, &Paced::seconds);
  for (Paced& group : groups) {
    if (out.size() == kMostLeftOut || out.size() + 1 == groups.size()) break;
    if (!out.empty() && group.seconds < kSlower * usual) break;
    out.push_back(std::move(group.who));
  }
  return out;
}

std::optional<std::size_t> compare(std::vector<Alternative>& alternatives, double recorded_seconds,
                                   std::uint32_t recorded_workers) {
  double was_s = recorded_seconds;
  double was_worker_s = recorded_seconds * recorded_workers;
  for (const Alternative& a : alternatives) {
    if (!a.as_it_was || !a.played()) continue;
    was_s = a.line.job_seconds;
    was_worker_s = a.worker_seconds();
  }
  std::optional<double> least;
  for (Alternative& a : alternatives) {
    if (!a.played()) continue;
    a.saved_seconds = was_s - a.line.job_seconds;
    a.saved_worker_seconds = was_worker_s - a.worker_seconds();
    least = std::min(least.value_or(a.line.job_seconds), a.line.job_seconds);
  }
  if (!least || *least > was_s * (1 - kNoticeable)) return {};
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Alternative& a = alternatives[i];
    if (!a.played() || a.line.job_seconds > *least * (1 + kNoticeable)) continue;
    if (!best || a.worker_seconds() < alternatives[*best].worker_seconds()) best = i;
  }
  return best;
}

std::string advice(const std::vector<Alternative>& alternatives,
                   std::optional<std::size_t> recommended) {
  if (!recommended) {
    return fmt::format("recommended: as it was; nothing else saves {:.0f} % of the time or more",
                       100 * kNoticeable);
  }
  const Alternative& a = alternatives[*recommended];
  std::string how = fmt::format("--set control.solution={}", a.solution);
  if (!a.without_host.empty()) {
    how += fmt::format(", and [cluster] hosts without {}", a.without_host);
  } else if (!a.without.empty()) {
    how += fmt::format(", and without what {} runs on", fmt::join(a.without, ", "));
  }
  return fmt::format(
      "recommended: {}: it saves {:.1f} s of {:.1f} s ({:.0f} %), {:.4f} worker-hours ({})",
      a.name(), a.saved_seconds, a.saved_seconds + a.line.job_seconds,
      100 * a.saved_seconds / (a.saved_seconds + a.line.job_seconds), a.saved_worker_seconds / 3600,
      how);
}

std::string to_json(const std::vector<Alternative>& alternatives,
                    std::optional<std::size_t> recommended) {
  std::vector<Comparison> lines;
  for (const Alternative& a : alternatives) lines.push_back(a.line);
  auto list = nlohmann::ordered_json::parse(to_json(lines));
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Alternative& a = alternatives[i];
    nlohmann::ordered_json& object = list[i];
    if (!a.played()) {
      for (const char* field : {"job_seconds", "ideal_seconds", "share_of_ideal", "actions",
                                "records_repeated", "records_lost"}) {
        object[field] = nullptr;
      }
    }
    object["solution"] = a.solution;
    object["without"] = a.without;
    object["without_host"] = a.without_host;
    object["as_it_was"] = a.as_it_was;
    object["problem"] = a.problem;
    object["saved_seconds"] = a.saved_seconds;
    object["saved_worker_hours"] = a.saved_worker_seconds / 3600;
    object["recommended"] = recommended == i;
  }
  return list.dump(2);
}

}  // namespace antdt::fleet
