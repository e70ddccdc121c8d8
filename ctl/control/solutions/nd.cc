#include "ctl/control/solutions/nd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

namespace antdt::ctl::solutions {

namespace {

// A worker's time for its part of a step: fixed_s + per_sample_s * samples for parts near the
// present one, from `least` to `most` samples; outside that range the time is proportional to the
// samples. A fitted line may be wrong, and a line by which more samples cost next to nothing would
// give one worker all the work.
struct TimeModel {
  double fixed_s = 0;
  double per_sample_s = 0;
  double least = 0;
  double most = 0;

  TimeModel(double fixed, double per_sample, double share)
      : fixed_s(fixed), per_sample_s(per_sample), least(share / kFar), most(share * kFar) {}

  [[nodiscard]] double seconds(double samples) const {
    const double near = std::clamp(samples, least, most);
    return on_line(near) * samples / near;
  }
  [[nodiscard]] double samples_in(double time_s) const {
    if (time_s < on_line(least)) return least * time_s / on_line(least);
    if (time_s > on_line(most)) return most * time_s / on_line(most);
    return std::clamp((time_s - fixed_s) / per_sample_s, least, most);
  }

 private:
  static constexpr double kFar = 3;
  [[nodiscard]] double on_line(double samples) const { return fixed_s + per_sample_s * samples; }
};

// `fixed_samples`: the fixed cost of a batch in samples, for workers without a line of their own.
TimeModel model_of(const WorkerView& worker, double fixed_samples) {
  if (worker.fit)
    return {worker.fit->fixed_s, worker.fit->per_sample_s, static_cast<double>(worker.share)};
  const double time_s = worker.share / worker.speed_transient;
  const double per_sample_s = time_s / (fixed_samples + worker.share);
  return {fixed_samples * per_sample_s, per_sample_s, static_cast<double>(worker.share)};
}

// Uses the worker's own fixed cost if it is known, else the usual one if most workers' costs are
// known, else none.
std::vector<TimeModel> models_of(const ClusterView& view,
                                 const std::map<WorkerId, double>& fixed_samples) {
  std::vector<double> known;
  for (const auto& [worker, samples] : fixed_samples) known.push_back(samples);
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  const double usual = 2 * known.size() > view.workers.size() ? *middle : 0;
  std::vector<TimeModel> models;
  for (const WorkerView& w : view.workers) {
    const auto own = fixed_samples.find(w.member.worker);
    models.push_back(model_of(w, own == fixed_samples.end() ? usual : own->second));
  }
  return models;
}

// The part that each worker computes in the time in which all workers together compute
// `global_batch` samples.
std::vector<double> equal_time_parts(const std::vector<TimeModel>& models, double global_batch) {
  const auto total_in = [&](double time_s) {
    double total = 0;
    for (const TimeModel& m : models) total += m.samples_in(time_s);
    return total;
  };
  double low = 0;
  double high = 0;
  for (const TimeModel& m : models) high = std::max(high, m.seconds(global_batch));
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (total_in(middle) < global_batch ? low : high) = middle;
  }
  std::vector<double> parts;
  for (const TimeModel& m : models) parts.push_back(m.samples_in(high));
  return parts;
}

// Rounds the parts to whole units so that the step is shortest. All are rounded down; then each
// remaining unit goes to the worker that would finish first with one more. Rounding to the nearest
// unit could give it to the slowest worker, whose units take longest.
std::vector<double> whole_parts(const std::vector<TimeModel>& models, std::vector<double> parts,
                                const BatchRules& rules) {
  // the units are micro-batches, and the plan rounds them
  if (rules.adjust == Adjust::kAccumulation) return parts;
  const double unit = std::max<std::uint32_t>(rules.multiple_of, 1);
  double left = rules.global_batch;
  using Next = std::pair<double, std::size_t>;  // time with one more unit, and which worker
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = std::floor(parts[i] / unit + 1e-9) * unit;
    left -= parts[i];
    next.emplace(models[i].seconds(parts[i] + unit), i);
  }
  for (; left >= unit; left -= unit) {
    const std::size_t i = next.top().second;
    next.pop();
    parts[i] += unit;
    next.emplace(models[i].seconds(parts[i] + unit), i);
  }
  return parts;
}

struct Proposal {
  std::vector<Share> shares;
  std::size_t slowest = 0;  // the worker whose time is the step's time now
  double waited_s = 0;      // what all wait for, whoever is slow
  double step_now_s = 0;    // includes waited_s
  double step_then_s = 0;
};

bool can_judge(const ClusterView& view) {
  return view.rules.adjust != Adjust::kNone && view.workers.size() >= 2 &&
         std::all_of(view.workers.begin(), view.workers.end(),
                     [](const WorkerView& w) { return w.measured && w.share > 0; });
}

std::optional<Proposal> propose(const ClusterView& view, const std::vector<TimeModel>& models) {
  std::vector<WorkerId> ids;
  for (const WorkerView& w : view.workers) ids.push_back(w.member.worker);
  const auto parts =
      whole_parts(models, equal_time_parts(models, view.rules.global_batch), view.rules);
  // What moves between domains, or beyond a device's memory, would be moved back.
  const auto plan = bounded_plan(view.plan, ids, parts, view.rules, view.bounds);
  if (!plan) return std::nullopt;
  Proposal proposal;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const WorkerView& w = view.workers[i];
    const std::uint32_t share = share_of(plan->entries[i]);
    proposal.shares.push_back({ids[i], share});
    proposal.step_then_s = std::max(proposal.step_then_s, models[i].seconds(share));
    if (const double now_s = models[i].seconds(w.share); now_s > proposal.step_now_s) {
      proposal.step_now_s = now_s;
      proposal.slowest = i;
    }
  }
  proposal.waited_s = shared_wait_s(view.workers);
  proposal.step_now_s += proposal.waited_s;
  proposal.step_then_s += proposal.waited_s;
  return proposal;
}

// The worker whose part changes most.
std::size_t most_changed(const ClusterView& view, const Proposal& p) {
  const auto change = [&](std::size_t i) {
    return std::abs(std::log(std::max<double>(p.shares[i].samples, 0.5) / view.workers[i].share));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < p.shares.size(); ++i) {
    if (change(i) > change(best)) best = i;
  }
  return best;
}

bool worth_it(const ClusterView& view, const Proposal& p) {
  const WorkerView& slowest = view.workers[p.slowest];
  const double gain = std::log(p.step_now_s / p.step_then_s);
  const double error = slowest.speed_error * (1 - p.waited_s / p.step_now_s);
  return gain > std::max(std::log1p(Nd::kLeastGain), Nd::kErrors * error) && !slowest.changing &&
         !view.workers[most_changed(view, p)].changing;
}

std::string seconds_text(double s) {
  return s < 0.9995 ? fmt::format("{:.0f} ms", s * 1e3) : fmt::format("{:.1f} s", s);
}

// Why the part of `w` shrinks: by how much it is slower than the others.
std::string too_slow(const ClusterView& view, const WorkerView& w) {
  const Verdict& v = w.verdict;
  const std::string_view verb = v.cause == Cause::kCompute ? "computes"
                                : v.cause == Cause::kData  ? "gets its data"
                                                           : "is";
  const std::string_view cause =
      v.cause == Cause::kUnknown ? "cause not known" : to_string(v.cause);
  return fmt::format("{} {} {:.1f}x slower than its peers ({:.0f} vs {:.0f} samples/s over {}, {})",
                     w.member.worker, verb, v.severity, w.speed_transient,
                     w.speed_transient * v.severity,
                     seconds_text(to_seconds(view.transient_window)), cause);
}

// Why the part of `w` grows: for how much of the step it has nothing to do.
std::string idle(const WorkerView& w, const WorkerView& slowest) {
  return fmt::format(
      "{} needs {} of a step for its part, {} needs {} ({:.0f} and {:.0f} samples/s)",
      w.member.worker, seconds_text(w.batch_s), slowest.member.worker,
      seconds_text(slowest.batch_s), w.speed_transient, slowest.speed_transient);
}

std::string explain(const ClusterView& view, const Proposal& p, std::size_t who) {
  const WorkerView& w = view.workers[who];
  const std::uint32_t then = p.shares[who].samples;
  return fmt::format("{}: its batch goes from {} to {}; step expected {} -> {}",
                     then < w.share ? too_slow(view, w) : idle(w, view.workers[p.slowest]), w.share,
                     then, seconds_text(p.step_now_s), seconds_text(p.step_then_s));
}

}  // namespace

void Nd::remember_fixed_costs(const ClusterView& view) {
  std::map<WorkerId, double> members;
  for (const WorkerView& w : view.workers) {
    const auto old = fixed_samples_.find(w.member.worker);
    if (w.fit) {
      members[w.member.worker] = w.fit->fixed_s / w.fit->per_sample_s;
    } else if (old != fixed_samples_.end()) {
      members.insert(*old);
    }
  }
  fixed_samples_ = std::move(members);
}

Decision Nd::decide(const ClusterView& view, MonoTime now) {
  remember_fixed_costs(view);
  const auto proposal =
      can_judge(view) ? propose(view, models_of(view, fixed_samples_)) : std::nullopt;
  const bool wanted = proposal && worth_it(view, *proposal);
  const bool confirmed = wanted && wanted_before_;
  wanted_before_ = wanted && !confirmed;
  Decision backups = backups_.decide(view, now);
  if (!confirmed && (wanted || !backups.actions.empty())) return backups;
  if (!confirmed) return restart_.decide(view);
  const std::size_t who = most_changed(view, *proposal);
  return {{AdjustBatch{proposal->shares, proposal->shares[who].worker}},
          explain(view, *proposal, who)};
}

}  // namespace antdt::ctl::solutions
