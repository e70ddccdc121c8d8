#include "ctl/control/solutions/restart.h"

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

// Another host that has room and no slow worker.
const PlaceView* place_for(const ClusterView& view, const std::string& from) {
  for (const PlaceView& place : view.places) {
    const auto slow = [&](const auto& w) { return w.host == place.host && lasts(w.verdict); };
    if (place.host != from && place.room > 0 && std::ranges::none_of(view.workers, slow) &&
        std::ranges::none_of(view.servers, slow)) {
      return &place;
    }
  }
  return nullptr;
}

// Samples a second of all workers together. If batches follow speed it is the sum of their speeds;
// with equal batches every worker is as fast as the slowest. Each step also contains what all wait
// for. `own` is the worker's speed; 0: it is away.
double rate(const ClusterView& view, const WorkerView& worker, double own) {
  double sum = own;
  double step = 0;  // samples
  double slowest = own > 0 ? own : std::numeric_limits<double>::infinity();
  for (const WorkerView& w : view.workers) {
    step += w.share;
    if (w.member == worker.member) continue;
    sum += w.speed_persistent;
    slowest = std::min(slowest, w.speed_persistent);
  }
  const std::size_t count = view.workers.size() - (own > 0 ? 0 : 1);
  const double computed =
      view.rules.adjust == Adjust::kNone ? slowest * static_cast<double>(count) : sum;
  return step > 0 ? step / (step / computed + shared_wait_s(view.workers)) : computed;
}

// Samples a second of all workers together, waiting included; 0: not known.
double rate_of_steps(const ClusterView& view) {
  double sum = 0;
  for (const WorkerView& w : view.workers) {
    if (!w.measured || w.batch_s <= 0) return 0;
    sum += w.share * (1 - w.wait_share) / w.batch_s;
  }
  return sum;
}

bool is_worth(double gain_s, double cost_s, double now_s) {
  return gain_s >= std::max((RestartJudge::kWorth - 1) * cost_s, RestartJudge::kLeastGain * now_s);
}

std::string duration_text(double s) {
  return s < 120 ? fmt::format("{:.0f} s", s) : fmt::format("{:.0f} min", s / 60);
}

}  // namespace

bool RestartJudge::may_try(Member member, const std::string& host) const {
  const auto known = tried_.find(member.worker);
  if (known == tried_.end()) return true;
  // The attempt is the same, so the restart has not happened (it was only advised, or refused). If
  // a worker was moved and is slow again, the slowness is its own.
  if (known->second.attempt == member.attempt) return true;
  return known->second.times < kMost && known->second.from == host;
}

void RestartJudge::note_try(Member member, const std::string& host) {
  Tried& tried = tried_[member.worker];
  if (tried.attempt != member.attempt) ++tried.times;
  tried.attempt = member.attempt;
  tried.from = host;
}

Decision RestartJudge::decide(const ClusterView& view) {
  if (!view.remaining || !view.pending_time) return {};
  Decision decision = decide_worker(view);
  return decision.actions.empty() ? decide_server(view) : decision;
}

Decision RestartJudge::decide_worker(const ClusterView& view) {
  if (view.workers.size() < 2) return {};
  const WorkerView* slowest = nullptr;
  for (const WorkerView& w : view.workers) {
    if (!w.measured || w.speed_persistent <= 0) return {};
    if (slowest == nullptr || w.speed_persistent < slowest->speed_persistent) slowest = &w;
  }
  const double others = mean_of_others(view, *slowest);
  const bool straggler =
      lasts(slowest->verdict) && !slowest->changing && others > kLambda * slowest->speed_persistent;
  if (!straggler || !may_try(slowest->member, slowest->host)) return {};
  const PlaceView* place = place_for(view, slowest->host);
  if (place == nullptr) return {};

  const double cost_s =
      to_seconds(view.restart_time.value_or(kRestartTakes)) + to_seconds(*view.pending_time);
  const auto left = static_cast<double>(*view.remaining);
  const double now_s = left / rate(view, *slowest, slowest->speed_persistent);
  const double trained = cost_s * rate(view, *slowest, 0);
  const double then_s = cost_s + std::max(0.0, left - trained) / rate(view, *slowest, others);
  if (!is_worth(now_s - then_s, cost_s, now_s)) return {};

  note_try(slowest->member, slowest->host);
  return {{KillRestart{slowest->member, place->host}},
          fmt::format("{} on {} has been {:.1f}x slower than the others for {} ({:.0f} vs {:.0f} "
                      "samples/s): started again on {} the rest takes {} instead of {}, a restart "
                      "takes {}",
                      slowest->member.worker, slowest->host, others / slowest->speed_persistent,
                      duration_text(to_seconds(view.persistent_window)), slowest->speed_persistent,
                      others, place->host, duration_text(then_s), duration_text(now_s),
                      duration_text(cost_s))};
}

Decision RestartJudge::decide_server(const ClusterView& view) {
  const ServerView* slowest = nullptr;
  for (const ServerView& s : view.servers) {
    const bool straggler = s.measured && lasts(s.verdict) && s.verdict.severity > kLambda;
    if (!straggler || !may_try(s.member, s.host)) continue;
    if (slowest == nullptr || s.verdict.severity > slowest->verdict.severity) slowest = &s;
  }
  const double rate = slowest == nullptr ? 0 : rate_of_steps(view);
  const PlaceView* place = rate <= 0 ? nullptr : place_for(view, slowest->host);
  if (place == nullptr) return {};

  const double cost_s =
      to_seconds(view.restart_time.value_or(kRestartTakes)) + to_seconds(*view.pending_time);
  const double severity = slowest->verdict.severity;
  const double now_s = static_cast<double>(*view.remaining) / rate;
  const double gain_s = (now_s - cost_s) * slowest->busy_share * (1 - 1 / severity);
  if (!is_worth(gain_s, cost_s, now_s)) return {};

  note_try(slowest->member, slowest->host);
  return {{KillRestart{slowest->member, place->host}},
          fmt::format("{} on {} has taken {:.1f}x as long for a request as the others for {} "
                      "({:.0f} us) and is busy {:.0f} % of the time: with another on {} the rest "
                      "takes up to {} less of {}",
                      slowest->member.worker, slowest->host, severity,
                      duration_text(to_seconds(view.persistent_window)),
                      slowest->service_us_persistent, 100 * slowest->busy_share, place->host,
                      duration_text(gain_s), duration_text(now_s))};
}

}  // namespace antdt::ctl::solutions
