#include "sim/servers/ps_checks.h"

#include "sim/servers/tally.h"

namespace antdt::sim {

void PsChecks::group_began(Generation generation, const Model* from) {
  const auto [at, first] = models_.try_emplace(generation);
  if (!first) return;  // another server has already reported it
  if (from != nullptr) {
    at->second = *from;
  } else {
    at->second.tally.resize(records_);
  }
}

void PsChecks::pushed(const PsWorker& worker, std::uint64_t number,
                      const std::vector<Record>& records, std::optional<float> exchange) {
  pushes_[{worker.generation(), worker.member(), number}] = {worker.phase().epoch.value, records,
                                                             exchange};
}

void PsChecks::phase_done(const PsWorker& worker) {
  const worker::ps_worker::ShadowChain* const shadow = worker.shadow();
  if (shadow == nullptr) return;
  const bool rests = shadow->at() == worker::ps_worker::ShadowChain::At::kResting;
  if (rests && shadow->behind() == 0) return;
  world_.violate("exchange",
                 fmt::format("{} ends its phase with {} steps that it has not exchanged",
                             worker.doing(), shadow->behind()));
}

void PsChecks::refused(const PsWorker& worker, const std::string& why) {
  if (!models_.empty() && models_.rbegin()->first > worker.generation()) return;
  world_.violate("a worker of the group is not refused", why + "; " + worker.doing());
}

void PsChecks::stored(const Model& model) {
  if (has_mean(sync_) || model.exchanges != kTornCentre) return;
  world_.violate("exchange", "an exchange is in some rows of a checkpoint's centre only");
}

void PsChecks::ended(const Model& model) {
  if (models_.empty() || has_mean(sync_)) return;
  const std::uint64_t decided = models_.rbegin()->second.exchanges;
  if (model.exchanges == decided) return;
  world_.violate("exchange", fmt::format("{} exchanges are decided, and {} are in the model",
                                         decided, model.exchanges));
}

void PsChecks::decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision,
                       const Bounds& bounds) {
  // Each process of a replicated home reports decisions in their order.
  std::uint64_t& newest = decided_[{generation, home}];
  if (decision.number <= newest) return;
  newest = decision.number;
  Model& model = models_.at(generation);
  MeanChecks::Replicas replicas;
  for (const wire::PsPushId& id : decision.pushes) {
    const auto push = pushes_.find({generation, {id.worker, id.attempt}, id.number});
    if (push == pushes_.end()) {
      world_.violate("exactly once", fmt::format("push {} of {}.{} is decided and was never made",
                                                 id.number, id.worker, id.attempt));
      continue;
    }
    if (const auto carried = push->second.exchange) {
      ++model.exchanges;
      replicas.push_back({{id.worker, id.attempt}, *carried});
    }
    for (const Record r : push->second.records) {
      const unsigned times = ++model.tally.at(r);
      const auto [least, most] = bounds(push->second.epoch, r);
      if (times >= least && times <= most) continue;
      world_.violate("exactly once",
                     fmt::format("record {} of push {} of {}.{} is decided {} times in epoch {}", r,
                                 id.number, id.worker, id.attempt, times, push->second.epoch));
    }
  }
  means_.decided(generation, home, decision, replicas);
}

const Model* PsChecks::model_of(Generation generation) const {
  const auto found = models_.find(generation);
  return found == models_.end() ? nullptr : &found->second;
}

}  // namespace antdt::sim
