#include "launcher/plan/trial_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

namespace antdt::launcher::plan {
namespace {

constexpr double kWarmUpS = 1;
constexpr double kEnoughS = 0.9;  // of training, after the warm-up
constexpr double kPartS = 0.2;    // of it, whose times are compared
constexpr std::size_t kFewestParts = 3;

// What a worker has done since its training began.
struct Done {
  double samples = 0;
  double own_s = 0;  // getting data and computing
  double all_s = 0;  // with all that it waited for
};

std::map<std::string, Done> done_in(const report::Status& status) {
  std::map<std::string, Done> all;
  for (const report::WorkerStatus& w : status.workers) {
    if (!w.lost_time || w.samples == 0) continue;
    const report::TimeSpent& t = *w.lost_time;
    const double own_s = t.compute + t.data;
    all[w.id] = {static_cast<double>(w.samples), own_s,
                 own_s + t.collective_wait + t.shard_wait + t.other};
  }
  return all;
}

struct Times {
  double steps = 0;
  double step_s = 0;
  double own_s = 0;
  double longest_own_s = 0;
};

// Empty: a worker reported nothing between these two.
std::optional<Times> between(const Trial& trial, const report::Status& from,
                             const report::Status& to) {
  auto before = done_in(from);
  const auto after = done_in(to);
  if (after.size() < trial.workers) return {};
  Times times;
  double samples = 0, samples_per_s = 0;
  for (const auto& [id, done] : after) {
    const Done& was = before[id];
    const double trained = done.samples - was.samples;
    const double seconds = done.all_s - was.all_s;
    if (trained <= 0 || seconds <= 0) return {};
    samples += trained;
    samples_per_s += trained / seconds;
    const double own_s = (done.own_s - was.own_s) / trained * trial.batch;
    times.own_s += own_s / static_cast<double>(after.size());
    times.longest_own_s = std::max(times.longest_own_s, own_s);
  }
  const double step = trial.batch * trial.workers;
  times.steps = samples / step;
  times.step_s = step / samples_per_s;
  return times;
}

// Where the warm-up was over; the beginning of training if nothing came afterwards.
std::size_t after_warm_up(const std::vector<report::Status>& seen) {
  const auto begin = std::ranges::find_if(
      seen, [](const report::Status& status) { return status.samples_done > 0; });
  if (begin == seen.end()) return 0;
  const auto warm = std::ranges::find_if(begin, seen.end(), [&](const report::Status& status) {
    return status.wall_seconds >= begin->wall_seconds + kWarmUpS;
  });
  return static_cast<std::size_t>((warm == seen.end() ? begin : warm) - seen.begin());
}

// The time of a step in each of the consecutive parts.
std::vector<double> parts_of(const Trial& trial, const std::vector<report::Status>& seen) {
  std::vector<double> parts;
  std::size_t from = after_warm_up(seen);
  for (std::size_t to = from; to < seen.size(); ++to) {
    if (seen[to].wall_seconds < seen[from].wall_seconds + kPartS) continue;
    const auto times = between(trial, seen[from], seen[to]);
    if (!times) continue;
    parts.push_back(times->step_s);
    from = to;
  }
  return parts;
}

// The standard error of their mean, relative to it; 0 if they are too few to tell.
double error_of(const std::vector<double>& parts) {
  if (parts.size() < kFewestParts) return 0;
  const auto n = static_cast<double>(parts.size());
  double sum = 0, squares = 0;
  for (const double s : parts) sum += s;
  for (const double s : parts) squares += (s - sum / n) * (s - sum / n);
  return std::sqrt(squares / (n - 1) / n) / (sum / n);
}

}  // namespace

Trial timed(Trial trial, const std::vector<report::Status>& seen) {
  if (seen.empty()) return trial;
  auto times = between(trial, seen[after_warm_up(seen)], seen.back());
  if (!times) times = between(trial, {}, seen.back());
  if (!times) return trial;
  trial.step_s = times->step_s;
  trial.own_s = times->own_s;
  trial.longest_own_s = times->longest_own_s;
  trial.steps = static_cast<std::uint64_t>(std::max(1.0, std::round(times->steps)));
  trial.error = error_of(parts_of(trial, seen));
  return trial;
}

bool saw_enough(const Trial& trial, const std::vector<report::Status>& seen) {
  if (seen.empty()) return false;
  const double seconds = seen.back().wall_seconds - seen[after_warm_up(seen)].wall_seconds;
  return seconds >= kEnoughS && parts_of(trial, seen).size() >= kFewestParts;
}

}  // namespace antdt::launcher::plan
