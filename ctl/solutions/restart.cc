#include "ctl/solutions/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace antdt::ctl::solutions {

namespace {

bool lasts(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kPersistent || verdict.kind == VerdictKind::kDeterministic;
}

double mean_of_others(const ClusterView& view, const WorkerView& worker) {
  double sum = 0;
  for (const WorkerView& w : view.workers) {
    if (w.member != worker.member) sum += w.speed_persistent;
  }
  return sum / static_cast<double>(view.workers.size() - 1);
}

// Another host with room where nobody is slow.
const PlaceView* place_for(const ClusterView& view, const WorkerView& worker) {
  for (const PlaceView& place : view.places) {
    const bool slow = std::any_of(view.workers.begin(), view.workers.end(), [&](const auto& w) {
      return w.host == place.host && lasts(w.verdict);
    });
    if (place.host != worker.host && place.room > 0 && !slow) return &place;
  }
  return nullptr;
}

// Samples a second of all together: with batches that follow speed the sum; with
// equal ones everybody is as fast as the slowest. `own` is the worker's speed; 0:
// it is away.
double rate(const ClusterView& view, const WorkerView& worker, double own) {
  double sum = own;
  double slowest = own > 0 ? own : std::numeric_limits<double>::infinity();
  for (const WorkerView& w : view.workers) {
    if (w.member == worker.member) continue;
    sum += w.speed_persistent;
    slowest = std::min(slowest, w.speed_persistent);
  }
  const std::size_t count = view.workers.size() - (own > 0 ? 0 : 1);
  return view.rules.adjust == Adjust::kNone ? slowest * static_cast<double>(count) : sum;
}

std::string duration_text(double s) {
  return s < 120 ? fmt::format("{:.0f} s", s) : fmt::format("{:.0f} min", s / 60);
}

}  // namespace

bool RestartJudge::may_try(const WorkerView& worker) const {
  const auto known = tried_.find(worker.member.worker);
  if (known == tried_.end()) return true;
  // The same attempt: it has not happened (advised only, or refused). Who was moved
  // and is slow again takes it along.
  if (known->second.attempt == worker.member.attempt) return true;
  return known->second.times < kMost && known->second.from == worker.host;
}

Decision RestartJudge::decide(const ClusterView& view) {
  if (view.workers.size() < 2 || !view.remaining || !view.pending_time) return {};
  const WorkerView* slowest = nullptr;
  for (const WorkerView& w : view.workers) {
    if (!w.measured || w.speed_persistent <= 0) return {};
    if (slowest == nullptr || w.speed_persistent < slowest->speed_persistent) slowest = &w;
  }
  const double others = mean_of_others(view, *slowest);
  const bool straggler =
      lasts(slowest->verdict) && !slowest->changing && others > kLambda * slowest->speed_persistent;
  if (!straggler || !may_try(*slowest)) return {};
  const PlaceView* place = place_for(view, *slowest);
  if (place == nullptr) return {};

  const double cost_s =
      to_seconds(view.restart_time.value_or(kRestartTakes)) + to_seconds(*view.pending_time);
  const auto left = static_cast<double>(*view.remaining);
  const double now_s = left / rate(view, *slowest, slowest->speed_persistent);
  const double trained = cost_s * rate(view, *slowest, 0);
  const double then_s = cost_s + std::max(0.0, left - trained) / rate(view, *slowest, others);
  const double gain_s = now_s - then_s;
  if (gain_s < std::max((kWorth - 1) * cost_s, kLeastGain * now_s)) return {};

  Tried& tried = tried_[slowest->member.worker];
  if (tried.attempt != slowest->member.attempt) ++tried.times;
  tried.attempt = slowest->member.attempt;
  tried.from = slowest->host;
  return {{KillRestart{slowest->member}},
          fmt::format("{} on {} has been {:.1f}x slower than the others for {} ({:.0f} vs {:.0f} "
                      "samples/s): started again on {} the rest takes {} instead of {}, a restart "
                      "takes {}",
                      slowest->member.worker, slowest->host, others / slowest->speed_persistent,
                      duration_text(to_seconds(view.persistent_window)), slowest->speed_persistent,
                      others, place->host, duration_text(then_s), duration_text(now_s),
                      duration_text(cost_s))};
}

}  // namespace antdt::ctl::solutions
