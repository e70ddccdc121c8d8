#include "report/bill.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/statistics/median.h"
#include "launcher/view/text_table.h"

namespace antdt::report {
namespace {

using shard_server::Moment;
using shard_server::WorkerMoment;

// From this factor on the monitor calls a worker a straggler, too (docs/monitor.md).
constexpr double kStraggles = 1.3;
constexpr const char* kAll = "all";
constexpr const char* kNoRemedy = "none";
constexpr const char* kExchange = "exchange";

struct Key {
  std::string culprit, cause, remedy, part;
  auto operator<=>(const Key&) const = default;
};
// Seconds by what they are charged to.
using Parts = std::map<Key, double>;

double total(const TimeSpent& t) {
  return t.compute + t.data + t.collective_wait + t.shard_wait + t.reconfigure + t.checkpoint +
         t.startup + t.other;
}

double batches(const WorkerMoment& w) { return static_cast<double>(w.batches); }
double own_us(const WorkerMoment& w) {
  return static_cast<double>(w.data_us + w.compute_us) / batches(w);
}
double wait_us(const WorkerMoment& w) { return static_cast<double>(w.wait_us) / batches(w); }

bool is_straggler(const WorkerMoment& w) { return !w.verdict.empty() && w.verdict != "leader"; }

// In the words of the monitor's causes (ctl/monitor/view.h).
std::string cause_of(const std::string& named, bool data_is_slow) {
  if (named == "data" || (named.empty() && data_is_slow)) return "slow data";
  if (named.empty() || named == "compute" || named == "unknown") return "slow computing";
  if (named == "network") return "slow link";
  if (named == "device") return "slower device";
  return "slow computing (" + named + ")";
}

class Billing {
 public:
  Billing(const Summary& summary, const shard_server::Series& series, SyncStrategy sync)
      : summary_(summary), series_(series), sync_(sync) {
    for (const WorkerSummary& w : summary.workers) hosts_[w.id] = w.host;
    for (const ServerStatus& s : summary.servers) hosts_[s.id] = s.host;
  }

  Bill make() {
    find_references();
    for (const Moment& moment : series_.moments) look_at(moment);
    Bill bill;
    for (const WorkerSummary& w : summary_.workers) {
      bill.total_seconds += total(w.lost_time);
      bill.useful_seconds += charge(w);
      bill.absent_seconds += std::max(0.0, summary_.wall_seconds - total(w.lost_time));
      computed_ += w.lost_time.compute;
    }
    for (const auto& [key, seconds] : charged_) {
      if (seconds <= 0) continue;
      const auto host = hosts_.find(key.culprit);
      bill.charges.push_back({key.culprit, host == hosts_.end() ? "" : host->second, key.cause,
                              key.remedy, key.part, seconds});
      bill.lost_seconds += seconds;
    }
    std::ranges::stable_sort(bill.charges, std::greater{}, &Charge::seconds);
    bill.repeated_seconds = computed_ * repeated_part();
    return bill;
  }

 private:
  // Which part of the samples that were computed was given up when training went back to a
  // checkpoint. The summary's own count of repeated samples does not tell: it is of the accounts,
  // which went back, too. What a worker told last before it died may be missing, so the part may be
  // too small.
  [[nodiscard]] double repeated_part() const {
    std::uint64_t computed = 0;
    for (const WorkerSummary& w : summary_.workers) computed += w.samples;
    if (summary_.lineages <= 1 || computed <= summary_.samples_trained) return 0;
    return static_cast<double>(computed - summary_.samples_trained) / static_cast<double>(computed);
  }

  // Seconds of computing that a sample takes on each class of devices: that of its median worker
  // over the whole run.
  void find_references() {
    std::map<std::string, std::string> class_of;
    for (const WorkerSummary& w : summary_.workers) class_of[w.id] = w.device.name;
    std::map<std::string, std::pair<double, double>> sums;  // compute and samples by worker
    for (const Moment& moment : series_.moments) {
      for (const WorkerMoment& w : moment.workers) {
        auto& [compute, samples] = sums[to_string(w.member.worker)];
        compute += static_cast<double>(w.compute_us);
        samples += static_cast<double>(w.samples);
      }
    }
    std::map<std::string, std::vector<double>> by_class;
    for (const auto& [id, sum] : sums) {
      if (sum.second > 0) by_class[class_of[id]].push_back(sum.first / sum.second);
    }
    for (const auto& [id, name] : class_of) reference_[id] = lower_median(by_class[name]);
  }

  // Charges what the workers reported in about a second; shares are scaled later.
  void look_at(const Moment& moment) {
    std::vector<const WorkerMoment*> measured;
    for (const WorkerMoment& w : moment.workers) {
      if (w.batches > 0 && w.samples > 0) measured.push_back(&w);
    }
    if (measured.empty()) return;
    look_at_waits(moment.from_s, measured);
    for (const WorkerMoment* w : measured) look_at_computing(moment.from_s, *w);
  }

  void look_at_waits(double at_s, const std::vector<const WorkerMoment*>& measured) {
    const double least = wait_us(**std::ranges::min_element(
        measured, {}, [](const WorkerMoment* w) { return wait_us(*w); }));
    const auto [slowest, cause] = slowest_of(measured);
    const auto [slow_link, link_part] = slow_link_of(measured);
    const bool waits_for_others = sync_ != SyncStrategy::kPsAsp && !is_shadow(sync_);
    for (const WorkerMoment* w : measured) {
      Parts& parts = waits_[to_string(w->member.worker)];
      const double exchange =
          (waits_for_others ? std::min(least, wait_us(*w)) : wait_us(*w)) * batches(*w);
      add(parts, at_s, slow_link, "slow link", "collective_wait", exchange * link_part);
      add(parts, at_s, kAll, kExchange, "collective_wait", exchange * (1 - link_part));
      const double rest = static_cast<double>(w->wait_us) - exchange;
      add(parts, at_s, slowest, cause, "collective_wait", rest);
    }
  }

  // The worker for which the others waited, and why. If nobody straggles, the steps were uneven by
  // chance.
  std::pair<std::string, std::string> slowest_of(
      const std::vector<const WorkerMoment*>& measured) const {
    const WorkerMoment& slowest =
        **std::ranges::max_element(measured, {}, [](const WorkerMoment* w) { return own_us(*w); });
    std::vector<double> others, others_data;
    for (const WorkerMoment* w : measured) {
      if (w == &slowest) continue;
      others.push_back(own_us(*w));
      others_data.push_back(static_cast<double>(w->data_us) / batches(*w));
    }
    const double peers = lower_median(std::move(others));
    const bool slow = peers > 0 && own_us(slowest) >= kStraggles * peers;
    if (!slow && !is_straggler(slowest)) return {kAll, "uneven steps"};
    const double data = static_cast<double>(slowest.data_us) / batches(slowest);
    const bool data_is_slow =
        2 * (data - lower_median(std::move(others_data))) > own_us(slowest) - peers;
    return {to_string(slowest.member.worker), cause_of(slowest.cause, data_is_slow)};
  }

  // A worker whose link makes all steps longer, and which part of the exchange that is.
  static std::pair<std::string, double> slow_link_of(
      const std::vector<const WorkerMoment*>& measured) {
    const WorkerMoment* worst = nullptr;
    for (const WorkerMoment* w : measured) {
      if (w->cause != "network" || !is_straggler(*w) || w->severity <= 1) continue;
      if (worst == nullptr || w->severity > worst->severity) worst = w;
    }
    if (worst == nullptr) return {kAll, 0};
    // Its severity is how many times longer a step takes.
    const double step = own_us(*worst) + wait_us(*worst);
    const double extra = step * (1 - 1 / worst->severity);
    const double least = std::max(wait_us(*worst), 1.0);
    return {to_string(worst->member.worker), std::clamp(extra / least, 0.0, 1.0)};
  }

  void look_at_computing(double at_s, const WorkerMoment& w) {
    const std::string id = to_string(w.member.worker);
    const double compute = static_cast<double>(w.compute_us);
    computing_[id] += compute;
    const double needed = reference_[id] * static_cast<double>(w.samples);
    if (needed <= 0 || compute < kStraggles * needed) return;
    const std::string named = is_straggler(w) && w.cause != "data" && w.cause != "network"
                                  ? w.cause
                                  : std::string("compute");
    add(excess_[id], at_s, id, cause_of(named, false), "compute", compute - needed);
  }

  void add(Parts& parts, double at_s, const std::string& culprit, const std::string& cause,
           const char* part, double seconds) const {
    if (seconds <= 0) return;
    // Nothing that the job can do makes the exchange itself shorter.
    const std::string remedy = cause == kExchange ? kNoRemedy : remedy_at(at_s, culprit);
    parts[{culprit, cause, remedy, part}] += seconds;
  }

  // The newest action about this worker, or about all, up to this moment. What an operator asked
  // for is done.
  std::string remedy_at(double at_s, const std::string& culprit) const {
    std::string done, wanted;
    for (const Action& action : summary_.actions) {
      if (action.time_s > at_s) break;
      if (!concerns(action, culprit)) continue;
      if (action.outcome == "applied" || action.outcome == "asked") {
        done = action.kind;
      } else {
        wanted = fmt::format("{} ({})", action.kind, action.outcome);
      }
    }
    return !done.empty() ? done : !wanted.empty() ? wanted : kNoRemedy;
  }

  // New batches concern all workers; the reason of an operator's action begins with its target.
  static bool concerns(const Action& action, const std::string& culprit) {
    if (action.kind == "adjust-batch" || action.kind == "backup-workers") return true;
    if (action.kind == "resize") return true;
    if (action.kind != "kill-restart" && action.kind != "evict") return false;
    return action.target == culprit || action.reason.starts_with(culprit + ",");
  }

  // ----------------------------------------------------- scaled to the summary

  // Charges all of a worker's time, and returns the useful part of it.
  double charge(const WorkerSummary& w) {
    const TimeSpent& t = w.lost_time;
    charge_parts(waits_[w.id], t.collective_wait,
                 {kAll, "exchange or waiting, not recorded", kNoRemedy, "collective_wait"});
    charged_[{w.id, "data", kNoRemedy, "data"}] += t.data;
    charged_[{kAll, "waiting for records", kNoRemedy, "shard_wait"}] += t.shard_wait;
    charged_[{kAll, "checkpoint", kNoRemedy, "checkpoint"}] += t.checkpoint;
    charged_[{kAll, "other", kNoRemedy, "other"}] += t.other;
    charge_startup(w);
    charge_reconfiguring(t.reconfigure);
    return charge_excess(w);
  }

  void charge_parts(const Parts& parts, double seconds, const Key& unknown) {
    double sum = 0;
    for (const auto& [key, part] : parts) sum += part;
    if (sum <= 0) {
      charged_[unknown] += seconds;
      return;
    }
    for (const auto& [key, part] : parts) charged_[key] += seconds * part / sum;
  }

  double charge_excess(const WorkerSummary& w) {
    const double recorded = computing_[w.id];
    double excess = 0;
    for (const auto& [key, part] : excess_[w.id]) {
      if (recorded <= 0) break;
      const double seconds = w.lost_time.compute * part / recorded;
      charged_[key] += seconds;
      excess += seconds;
    }
    return w.lost_time.compute - excess;
  }

  // All starts of a worker take equally long; only the first one is not the fault of a failure.
  void charge_startup(const WorkerSummary& w) {
    const double attempts = static_cast<double>(std::max<std::uint64_t>(w.attempt, 1));
    const double first = w.lost_time.startup / attempts;
    charged_[{kAll, "start", kNoRemedy, "startup"}] += first;
    const auto failed =
        std::ranges::find_if(summary_.failures, [&](const Failure& f) { return f.worker == w.id; });
    const std::string cause = failed == summary_.failures.end()
                                  ? "started again"
                                  : fmt::format("failure ({})", failed->cls);
    if (attempts > 1) {
      charged_[{w.id, cause, "started again", "startup"}] += w.lost_time.startup - first;
    }
  }

  // Divided among the incidents by how long each of them kept training from going on.
  void charge_reconfiguring(double seconds) {
    std::vector<std::pair<const Failure*, double>> incidents;
    double sum = 0;
    for (const Failure& f : summary_.failures) {
      if (!f.first || !f.recovered_in_s || *f.recovered_in_s <= 0) continue;
      incidents.emplace_back(&f, *f.recovered_in_s);
      sum += *f.recovered_in_s;
    }
    if (incidents.empty()) {
      charged_[{kAll, "change of members", kNoRemedy, "reconfigure"}] += seconds;
      return;
    }
    for (const auto& [failure, lasted] : incidents) {
      charged_[{failure->worker, fmt::format("failure ({})", failure->cls), "the others went on",
                "reconfigure"}] += seconds * lasted / sum;
    }
  }

  const Summary& summary_;
  const shard_server::Series& series_;
  const SyncStrategy sync_;
  std::map<std::string, std::string> hosts_;
  std::map<std::string, double> reference_;  // computing of a sample, by worker
  std::map<std::string, Parts> waits_, excess_;
  std::map<std::string, double> computing_;
  Parts charged_;
  double computed_ = 0;
};

std::string hours(double seconds) { return fmt::format("{:.4f}", seconds / 3600); }

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-";
}

// For people it does not matter in which part of lost_time a charge is.
std::vector<Charge> merged(const std::vector<Charge>& charges) {
  std::vector<Charge> all;
  for (const Charge& c : charges) {
    const auto same = std::ranges::find_if(all, [&](const Charge& other) {
      return other.culprit == c.culprit && other.cause == c.cause && other.remedy == c.remedy;
    });
    if (same == all.end()) {
      all.push_back(c);
    } else {
      same->seconds += c.seconds;
    }
  }
  std::ranges::stable_sort(all, std::greater{}, &Charge::seconds);
  return all;
}

}  // namespace

Bill bill_of(const Summary& summary, const shard_server::Series& series, SyncStrategy sync) {
  return Billing(summary, series, sync).make();
}

BillTable table_of(const Bill& bill) {
  BillTable table;
  table.sums.push_back(
      fmt::format("time of all workers: {} h, of these useful {} h ({}), lost {} h ({})",
                  hours(bill.total_seconds), hours(bill.useful_seconds),
                  percent(bill.useful_seconds, bill.total_seconds), hours(bill.lost_seconds),
                  percent(bill.lost_seconds, bill.total_seconds)));
  if (bill.repeated_seconds > 0) {
    table.sums.push_back(
        fmt::format("of the useful time, {} h trained records that had been "
                    "trained before",
                    hours(bill.repeated_seconds)));
  }
  if (bill.absent_seconds > 0.01 * bill.total_seconds) {
    table.sums.push_back(fmt::format("besides, workers did not run for {} h of the job's time",
                                     hours(bill.absent_seconds)));
  }
  table.header = {"lost h#", "of all#", "culprit", "host", "cause", "remedy"};
  for (const Charge& c : merged(bill.charges)) {
    if (c.seconds < 1e-3 * bill.total_seconds) continue;
    table.rows.push_back({hours(c.seconds), percent(c.seconds, bill.total_seconds), c.culprit,
                          c.host.empty() ? "-" : c.host, c.cause, c.remedy});
  }
  return table;
}

}  // namespace antdt::report
