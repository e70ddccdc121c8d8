#include "ctl/control/solutions/lb_bsp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace antdt::ctl::solutions {

Decision LbBsp::decide(const ClusterView& view, MonoTime /*now*/) {
  const bool all_known =
      std::all_of(view.workers.begin(), view.workers.end(),
                  [](const WorkerView& w) { return w.measured && w.speed_transient > 0; });
  if (view.rules.adjust == Adjust::kNone || view.workers.size() < 2 || !all_known) return {};
  std::map<Member, double> next;
  for (const WorkerView& w : view.workers) {
    const auto before = predicted_.find(w.member);
    next[w.member] = before == predicted_.end()
                         ? w.speed_transient
                         : kMemory * before->second + (1 - kMemory) * w.speed_transient;
  }
  predicted_ = std::move(next);
  if (++ticks_ < kEvery) return {};
  ticks_ = 0;
  double sum = 0;
  for (const auto& [member, speed] : predicted_) sum += speed;
  AdjustBatch action;
  double most = -1;
  std::size_t who = 0;
  for (const WorkerView& w : view.workers) {
    const double part = predicted_[w.member] / sum * view.rules.global_batch;
    action.shares.push_back({w.member.worker, static_cast<std::uint32_t>(std::lround(part))});
    const double change = std::abs(part - w.share);
    if (change <= most) continue;
    most = change;
    who = action.shares.size() - 1;
  }
  action.because_of = view.workers[who].member.worker;
  return {{action},
          fmt::format("{} is predicted to compute {:.0f} samples/s: its batch goes from {} to {}",
                      action.because_of, predicted_[view.workers[who].member],
                      view.workers[who].share, action.shares[who].samples)};
}

}  // namespace antdt::ctl::solutions
