#include "launcher/plan/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "launcher/plan/domain_cost.h"
#include "launcher/plan/link_cost.h"
#include "launcher/plan/reasons.h"

namespace antdt::launcher::plan {
namespace {

const Trial* trial_of(const Measured& m, Strategy strategy, std::uint32_t servers) {
  const Trial* found = nullptr;
  for (const Trial& trial : m.trials) {
    if (trial.strategy != strategy) continue;
    if (found == nullptr || trial.servers == servers) found = &trial;
  }
  return found;
}

// The parts of a trial's step. Where workers do not wait for one another, the mean worker's own
// batch may take longer than all workers together take for a global batch.
Prediction as_in(const Trial& trial) {
  Prediction p;
  p.error = trial.error;
  p.compute_s = std::min(trial.own_s, trial.step_s);
  p.waiting_s = std::clamp(trial.longest_own_s - trial.own_s, 0.0, trial.step_s - p.compute_s);
  p.exchange_s = trial.step_s - p.compute_s - p.waiting_s;
  p.as_tried = true;
  return p;
}

double rows_of_batch(const Measured& m) {
  return std::min(m.model.table_rows, at(m.model.rows_of_batch, m.batch()));
}

// Members of the group that is connected by the link: leaders of hosts, or all workers if a drill
// slows all links.
std::uint32_t members_on_link(const Measured& m) {
  return m.link->held_back ? m.workers() : m.hosts_with_workers();
}

// Whether links within and between domains are told apart. A drill that slows all links does not.
bool has_domains(const Measured& m) { return m.domains && !(m.link && m.link->held_back); }

// What a step takes on links between hosts, or domains. `computing_s`: of it, by the mean worker.
double allreduce_link_s(const Measured& m, const StrategyEntry& entry, double computing_s) {
  AllReduceStep step;
  step.computing_s = computing_s;
  step.rows_of_all = rows_of_batch(m) * m.workers();
  step.counts_rows = true;
  step.sends_rows = entry.sparse || rows_are_quicker(m.model, m.workers(), step.rows_of_all);
  return has_domains(m) ? allreduce_s(Paths::of_job(*m.domains), m.model, step)
                        : allreduce_s(*m.link, members_on_link(m), m.model, step);
}

// Bytes through the busiest host's link in a step, in its busier direction: what its workers pull
// from servers elsewhere, and what workers elsewhere push to its servers. Elsewhere is any other
// host, or one in another domain.
double remote_bytes(const Measured& m, const ServerPlacement& servers, bool of_other_domains) {
  const double rows = rows_of_batch(m);
  const double n = std::max(1U, servers.count);
  double most = 0;
  for (std::size_t h = 0; h < m.hosts.size(); ++h) {
    const double own = m.hosts[h].workers;
    const double here = h < servers.by_host.size() ? servers.by_host[h] : 0;
    double others = 0, away = 0;
    for (std::size_t o = 0; o < m.hosts.size(); ++o) {
      if (o == h) continue;
      if (of_other_domains && m.domains->of_hosts[o] == m.domains->of_hosts[h]) continue;
      others += m.hosts[o].workers;
      away += (o < servers.by_host.size() ? servers.by_host[o] : 0) / n;
    }
    const double in =
        own * away * pulled_bytes(m.model, rows) + others * here / n * pushed_bytes(m.model, rows);
    const double out =
        own * away * pushed_bytes(m.model, rows) + others * here / n * pulled_bytes(m.model, rows);
    most = std::max({most, in, out});
  }
  return most;
}

// The slower of what crosses domains, and of all over the links within.
ServedCost served_between_domains(const Measured& m, ServedStep step,
                                  const ServerPlacement& servers) {
  ServedCost within;
  if (m.domains->within) within = servers_s(*m.domains->within, m.model, step);
  step.remote_bytes = remote_bytes(m, servers, true);
  if (step.remote_bytes == 0) return within;
  ServedCost cost = servers_s(m.domains->between, m.model, step);
  cost.bytes_s = std::max(cost.bytes_s, within.bytes_s);
  return cost;
}

ServedCost served_cost(const Measured& m, bool one_home, bool decides,
                       const ServerPlacement& servers) {
  const ServedStep served{m.workers(), servers.count, rows_of_batch(m),
                          one_home,    decides,       remote_bytes(m, servers, false)};
  return has_domains(m) ? served_between_domains(m, served, servers)
                        : servers_s(*m.link, m.model, served);
}

// Each part of a step waits for the one before it.
double in_turn_s(const ServedCost& cost) {
  return cost.worker_s + cost.server_s + cost.rounds_s + cost.bytes_s;
}

void add_servers_link(const Measured& m, const StrategyEntry& entry, const ServerPlacement& servers,
                      Prediction& p) {
  const bool barrier = entry.strategy == Strategy::kServersBsp;
  const ServedCost cost = served_cost(m, barrier, true, servers);
  const double tried = p.compute_s + p.exchange_s + p.waiting_s;
  double step = 0;
  if (barrier) {
    step = tried + in_turn_s(cost);
  } else {
    // Messages are on their way while batches are computed; a drill holds back the worker itself.
    step = std::max({tried, at(m.alone, m.batch()) + cost.worker_s, cost.server_s, cost.bytes_s});
  }
  p.exchange_s += step - tried;
  p.as_tried = false;
}

Prediction on_servers(const Measured& m, const StrategyEntry& entry,
                      const ServerPlacement& servers) {
  // With equal workers the bound of ps-ssp holds nobody up, so it takes the time of ps-asp.
  const Strategy like =
      entry.strategy == Strategy::kServersSsp ? Strategy::kServersAsp : entry.strategy;
  Prediction p;
  const Trial* trial = trial_of(m, like, servers.count);
  if (trial == nullptr) {
    p.unknown = "no trial of it was made";
  } else {
    p = as_in(*trial);
    p.as_tried = entry.strategy == trial->strategy && servers.count == trial->servers;
    if (m.link) add_servers_link(m, entry, servers, p);
  }
  return p;
}

Prediction by_allreduce(const Measured& m, const StrategyEntry& entry) {
  Prediction p;
  const Trial* trial = trial_of(m, entry.strategy, 0);
  if (trial == nullptr) {
    p.unknown = "no trial of it was made";
    return p;
  }
  p = as_in(*trial);
  if (!m.link && !m.domains) return p;
  p.exchange_s += allreduce_link_s(m, entry, p.compute_s);
  p.as_tried = false;
  return p;
}

// Dense gradients go around the ring, and rows to servers and back. The round trip with the
// gradients of rows is under way while the dense ones are summed, but for the bytes of both.
Prediction by_hybrid(const Measured& m, const StrategyEntry& entry,
                     const ServerPlacement& servers) {
  Prediction p;
  const Trial* trial = trial_of(m, Strategy::kHybrid, servers.count);
  if (trial == nullptr) {
    p.unknown = "no trial of it was made";
    return p;
  }
  p = as_in(*trial);
  p.as_tried = servers.count == trial->servers;
  if (!m.link) return p;
  Measured dense = m;
  dense.model.table_rows = 0;
  Measured rows = m;
  rows.model.sums.clear();
  Measured slots = dense;
  slots.model.sums.clear();
  const double sums_and_slots = allreduce_link_s(dense, entry, p.compute_s);
  const double sums = sums_and_slots - allreduce_link_s(slots, entry, p.compute_s);
  const ServedCost served = served_cost(rows, false, false, servers);
  p.exchange_s += sums_and_slots + in_turn_s(served) - std::min(sums, served.rounds_s / 2);
  p.as_tried = false;
  return p;
}

// What all-reduce takes, with groups in place of its sums over the link.
Prediction by_ds_sync(const Measured& m) {
  if (const Trial* run = trial_of(m, Strategy::kDsSync, 0)) return as_in(*run);  // an ended run
  Prediction p;
  const Trial* trial = trial_of(m, Strategy::kAllReduce, 0);
  if (trial == nullptr) {
    p.unknown = "no trial of allreduce was made";
  } else if (!m.link && !m.domains) {
    p.unknown = "it saves time on links between hosts, and there are none";
  } else {
    p = as_in(*trial);
    p.exchange_s += has_domains(m) ? ds_sync_s(*m.domains, m.model)
                                   : ds_sync_s(*m.link, members_on_link(m), m.model);
    p.as_tried = false;
  }
  p.computed_only = true;
  return p;
}

// Of each message's share, or of the usual ones if it was not measured.
Prediction by_gaia(const Measured& m) {
  Prediction p;
  const Trial* own = trial_of(m, Strategy::kGaia, 0);
  if (own != nullptr && !m.domains) return as_in(*own);  // an ended run
  // The trial of a host that gets one worker has two, which share its cores as no two of the job
  // do.
  const bool as_in_job = own != nullptr && own->workers == m.most_workers_of_a_host();
  const Trial* trial = as_in_job ? own : trial_of(m, Strategy::kAllReduce, 0);
  if (!m.domains) {
    p.unknown = "it saves bytes on links between domains, and there are none";
  } else if (trial == nullptr) {
    p.unknown = "no trial of it was made";
  }
  if (!p.known()) return p;
  p = as_in(*trial);
  p.as_tried = false;
  p.share = m.updates.share ? Prediction::Range{*m.updates.share, *m.updates.share} : kUsualShare;
  const auto exchange_s = [&](double share) {
    const GaiaStep step{share, m.updates.whole_every, rows_of_batch(m)};
    return p.exchange_s + gaia_s(*m.domains, m.model, step) +
           (as_in_job ? 0 : gaia_work_s(*m.domains, m.model, step));
  };
  const double rest = p.compute_s + p.waiting_s;
  if (!m.updates.share) {
    p.step_range_s = {rest + exchange_s(p.share->least), rest + exchange_s(p.share->most)};
  }
  p.exchange_s = exchange_s(p.share->most);
  return p;
}

// At most what ps-asp takes: of the dense parameters nothing is pulled and pushed with a batch, and
// exchanges with the centre use what is left of the link.
Prediction by_shadow(const Measured& m, Strategy strategy, const ServerPlacement& servers) {
  if (const Trial* const ended_run = trial_of(m, strategy, servers.count)) return as_in(*ended_run);
  Measured rows_only = m;
  rows_only.model.sums.clear();
  Prediction p = on_servers(rows_only, entry_of(Strategy::kServersAsp), servers);
  if (!p.known()) p.unknown = "no trial of ps-asp was made";
  p.as_tried = false;
  p.computed_only = true;
  return p;
}

Prediction finished(const Measured& m, Strategy strategy, std::uint32_t servers, Prediction p) {
  p.strategy = strategy;
  p.servers = servers;
  p.offered = !entry_of(strategy).only_if_asked || m.asked == strategy;
  if (const auto why = m.impossible.find(strategy); why != m.impossible.end()) {
    p.unknown = why->second;
  } else if (p.known() && m.hosts.size() > 1 && !m.link) {
    p.unknown = m.link_unknown;
  } else if (p.known() && (m.link || m.domains) && m.model.sums.empty()) {
    p.unknown = "the size of the model, and so what it sends over the links, is not known";
  }
  if (!p.known()) {
    p.compute_s = p.exchange_s = p.waiting_s = 0;
    p.share = p.step_range_s = std::nullopt;
    return p;
  }
  p.step_s = p.compute_s + p.exchange_s + p.waiting_s;
  p.samples_per_s = p.step_s > 0 ? m.global_batch / p.step_s : 0;
  return p;
}

// Whether it is the way of the job, or of the ended run that is looked at.
bool is_own(const Measured& m, Strategy strategy) {
  return m.asked == strategy ||
         std::ranges::any_of(m.trials, [&](const Trial& t) { return t.strategy == strategy; });
}

// The fastest, or an earlier one of the table that is as fast.
std::optional<std::size_t> best_of(const std::vector<Prediction>& predictions) {
  const Prediction* fastest = nullptr;
  for (const Prediction& p : predictions) {
    if (!p.may_be_recommended()) continue;
    if (fastest == nullptr || p.step_s < fastest->step_s) fastest = &p;
  }
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    if (p.may_be_recommended() && p.step_s <= kAsFast * fastest->step_s) return i;
  }
  return std::nullopt;
}

}  // namespace

double error_of_ratio(const Prediction& one, const Prediction& other) {
  return 2 * std::hypot(one.error, other.error);
}

Plan plan_of(const Measured& m) {
  Plan plan;
  for (const StrategyEntry& entry : kStrategies) {
    if (entry.costs_as_before && !is_own(m, entry.strategy)) continue;
    const auto add = [&](std::uint32_t servers, const Prediction& p) {
      plan.predictions.push_back(finished(m, entry.strategy, servers, p));
    };
    if (entry.on_servers) {
      const auto predicted = [&](const ServerPlacement& servers) {
        if (entry.strategy == Strategy::kHybrid) return by_hybrid(m, entry, servers);
        return is_shadow(entry.strategy) ? by_shadow(m, entry.strategy, servers)
                                         : on_servers(m, entry, servers);
      };
      if (m.servers.empty()) add(0, predicted({}));  // says why there is none
      for (const ServerPlacement& servers : m.servers) add(servers.count, predicted(servers));
    } else if (entry.strategy == Strategy::kDsSync) {
      add(0, by_ds_sync(m));
    } else if (entry.strategy == Strategy::kGaia) {
      add(0, by_gaia(m));
    } else {
      add(0, by_allreduce(m, entry));
    }
  }
  plan.recommended = best_of(plan.predictions);
  plan.reasons = reasons_for(m, plan.predictions, plan.recommended);
  plan.caveats = caveats_of(m, plan.predictions);
  return plan;
}

}  // namespace antdt::launcher::plan
