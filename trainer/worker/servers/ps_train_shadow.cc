// What a training phase does for its replica of the dense parameters (shadow_chain.h).
#include "trainer/worker/servers/ps_train_phase.h"

namespace antdt::worker::ps_worker {

void PsTrainPhase::pull_centre_if_due(Effects& out) {
  if (!worker_.shadow->is_due()) return;
  worker_.shadow->pull_said();
  out.emplace_back(SayCentrePull{});
}

// To: draining, or what follows it. No push is in progress.
PsTrainPhase::End PsTrainPhase::drain(At then, MonoTime now, Effects& out) {
  const bool has_work = worker_.shadow && (worker_.shadow->behind() > 0 ||
                                           worker_.shadow->at() != ShadowChain::At::kResting);
  if (!has_work) return say_idle(then, out);
  after_drain_ = then;
  since_ = now;
  at_ = At::kDraining;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  return drain_on(now, out);
}

// From: draining. To: draining; going idle, finishing, leaving idle.
PsTrainPhase::End PsTrainPhase::drain_on(MonoTime now, Effects& out) {
  ShadowChain& shadow = *worker_.shadow;
  switch (shadow.at()) {
    case ShadowChain::At::kResting:
      if (shadow.behind() == 0) {
        shadow.waited(now - since_);
        return say_idle(after_drain_, out);
      }
      shadow.pull_said();
      out.emplace_back(SayCentrePull{});
      break;
    case ShadowChain::At::kHolding: {
      wire::PsCommit commit;
      commit.number = ++worker_.pushes;
      commit.phase = start_.phase;
      commit.from = commit.to = pushed_place_;
      commit.weight = 1;  // servers want one above 0; the rule of the centre, "sum", ignores it
      idle_ = false;
      shadow.carried(commit.number, true, now);
      out.emplace_back(SayPush{commit, true, false});
      return {};
    }
    case ShadowChain::At::kPulling:
    case ShadowChain::At::kPushing:
      break;
  }
  out.emplace_back(AwaitServers{});
  return {};
}

}  // namespace antdt::worker::ps_worker
