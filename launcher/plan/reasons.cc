#include "launcher/plan/reasons.h"

#include <fmt/format.h>

#include <algorithm>

namespace antdt::launcher::plan {
namespace {

const Prediction* fastest_but(const std::vector<Prediction>& all, const Prediction& chosen) {
  const Prediction* found = nullptr;
  for (const Prediction& p : all) {
    if (&p == &chosen || !p.may_be_recommended() || p.strategy == chosen.strategy) continue;
    if (found == nullptr || p.step_s < found->step_s) found = &p;
  }
  return found;
}

std::string largest_part(const Prediction& p) {
  if (p.compute_s >= p.exchange_s && p.compute_s >= p.waiting_s) return "computing";
  return p.exchange_s >= p.waiting_s ? "exchanging" : "waiting for the slowest worker";
}

std::string share_note(const Measured& m, const Prediction& p) {
  if (m.updates.share) {
    return fmt::format(
        "gaia: in its trial, the first {} steps, a message had {:.0f} % of the bytes of all "
        "parameters; this changes while a model learns, and is less if the learning rate shrinks",
        m.updates.messages, 100 * *m.updates.share);
  }
  return fmt::format(
      "gaia: how much is significant could not be measured; the time is that of messages with "
      "{:.0f} % of the bytes, and would be {} with {:.0f} % (docs/results/gaia.md has such jobs)",
      100 * p.share->most, milliseconds(p.step_range_s->least), 100 * p.share->least);
}

std::string compared(const Prediction& chosen, const Prediction& next) {
  const double ratio = next.step_s / chosen.step_s;
  const double error = error_of_ratio(chosen, next);
  if (ratio > kAsFast) {
    return fmt::format(
        "the next best way, {}, takes {} for a step, {:.2f} times as long{}", name_of(next),
        milliseconds(next.step_s), ratio,
        ratio > 1 + error ? ""
                          : fmt::format(", which is not more than the error of measurement, {:.0f} "
                                        "%: plan again on a quiet machine",
                                        100 * error));
  }
  if (ratio >= 1 / kAsFast) {
    return fmt::format(
        "{} takes {} for a step, which is within {:.0f} % of it; of ways that are "
        "as fast the plan takes the one that changes less of what is trained",
        name_of(next), milliseconds(next.step_s), 100 * (kAsFast - 1));
  }
  return fmt::format("{} takes {} for a step", name_of(next), milliseconds(next.step_s));
}

}  // namespace

std::string name_of(const Prediction& p) {
  const StrategyEntry& entry = entry_of(p.strategy);
  if (!entry.on_servers) return std::string(entry.name);
  return fmt::format("{} with {} server{}", entry.name, p.servers, p.servers == 1 ? "" : "s");
}

std::string milliseconds(double seconds) {
  const double ms = 1000 * seconds;
  if (ms < 10) return fmt::format("{:.2f} ms", ms);
  return ms < 1000 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

std::vector<std::string> reasons_for(const Measured& m, const std::vector<Prediction>& predictions,
                                     std::optional<std::size_t> recommended) {
  if (!recommended) return {"no way of synchronisation can be used, or its time be told"};
  const Prediction& chosen = predictions[*recommended];
  std::vector<std::string> reasons;
  reasons.push_back(fmt::format("{} takes {} for a step of {:.0f} samples, most of it {}",
                                name_of(chosen), milliseconds(chosen.step_s), m.global_batch,
                                largest_part(chosen)));
  if (const Prediction* next = fastest_but(predictions, chosen)) {
    reasons.push_back(compared(chosen, *next));
  }
  const StrategyEntry& entry = entry_of(chosen.strategy);
  if (entry.stale && !entry.only_if_asked) {
    reasons.emplace_back(
        "its gradients are computed from parameters that lack some updates: compare what the model "
        "learns with that of ps-bsp");
  }
  if (entry.only_if_asked) {
    reasons.push_back(
        fmt::format("it is recommended because the job's own trainer.sync is \"{}\": what the "
                    "model "
                    "learns with it, a plan does not know",
                    entry.sync));
  }
  if (entry.changes_rows_of_batch_only && m.model.table_rows > 0) {
    reasons.emplace_back(
        "a row of the embedding table that is in no batch does not change, where the optimizer of "
        "plain all-reduce may move it on");
  }
  if (m.workers() > 1 && !m.alone.empty()) {
    const double one = at(m.alone, m.global_batch);
    if (one > 0 && one <= chosen.step_s) {
      reasons.push_back(fmt::format(
          "one worker alone would take {} for the same samples: more workers on these hosts make "
          "this job no faster; use fewer, or a larger batch.global",
          milliseconds(one)));
    }
  }
  return reasons;
}

std::vector<std::string> caveats_of(const Measured& m, const std::vector<Prediction>& predictions) {
  std::vector<std::string> caveats = m.notes;
  if (m.hosts.size() > 1 && !m.link) caveats.push_back(m.link_unknown);
  if (m.hosts.size() > 1) {
    caveats.push_back(fmt::format(
        "the trials ran on {} alone: the other hosts are taken to compute as fast as it does",
        m.hosts.front().name));
  }
  for (const Trial& trial : m.trials) {
    if (trial.steps >= 20) continue;
    caveats.push_back(fmt::format("the trial of {} has {} steps only, so its time is not reliable",
                                  entry_of(trial.strategy).name, trial.steps));
  }
  for (const Prediction& p : predictions) {
    if (p.known() && p.share) caveats.push_back(share_note(m, p));
  }
  caveats.emplace_back(
      "slow workers, lost processes, checkpoints and evaluation are not part of the times");
  return caveats;
}

}  // namespace antdt::launcher::plan
