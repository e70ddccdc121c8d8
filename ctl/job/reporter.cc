#include "ctl/job/reporter.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/wire/time_sums.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {
namespace {

// Adds the worker's measured speed and its verdict.
void add_view(WorkerReport& r, const std::map<Member, const WorkerView*>& views, Member member) {
  const auto view = views.find(member);
  if (view == views.end() || !view->second->measured) return;
  r.samples_per_second = view->second->speed_transient;
  r.verdict = view->second->verdict;
  r.judged = true;
}

std::vector<WorkerReport> workers_of(const Parts& parts) {
  std::vector<WorkerReport> reports;
  std::map<Member, std::uint32_t> ranks;
  for (const Member m : parts.group.members()) {
    ranks.emplace(m, static_cast<std::uint32_t>(ranks.size()));
  }
  std::map<WorkerId, const wire::PlanEntry*> entries;
  for (const wire::PlanEntry& e : parts.controller.plan().entries) entries.emplace(e.worker, &e);
  std::map<Member, const WorkerView*> views;
  for (const WorkerView& v : parts.controller.view().workers) views.emplace(v.member, &v);
  for (const WorkerProcess& w : parts.lifecycle.workers()) {
    if (w.is_server()) continue;
    WorkerReport r;
    const WorkerTimes::Times times = parts.times.of(w.place.worker);
    r.samples = times.samples;
    r.samples_of_others = times.of_others;
    r.wall_seconds = times.wall_seconds;
    r.time = times.time;
    r.table_sums = times.table_sums;
    r.shadow = times.shadow;
    r.updates = times.updates;
    r.cpus = times.cpus;
    r.worker = w.place.worker;
    r.host = parts.members.host_name(w.place.host);
    r.device = parts.devices.of(w.member(), r.host);
    r.pid = w.pid;
    r.attempt = w.attempt;
    r.state = reported_state(w);
    r.io = parts.vitals.io().of(w.member());
    if (w.state == WorkerProcess::kWaiting) {
      r.tried_again_in_s = std::max(0.0, w.waits_until_s - parts.lifecycle.seconds());
    }
    if (const auto rank = ranks.find(w.member()); rank != ranks.end()) r.rank = rank->second;
    const auto entry = entries.find(r.worker);
    if (entry != entries.end() && r.rank) r.batch = share_of(*entry->second);
    add_view(r, views, w.member());
    reports.push_back(std::move(r));
  }
  return reports;
}

// What a script's ranks tell of themselves. Its samples are counted by the script alone: they are
// none of the ledger's.
void add_traced(JobReport& r, const Parts& parts) {
  if (const auto& known = parts.traced.hang()) {
    r.hang = HangReport{known->hang, known->at_s, known->over()};
    r.hang->hang.text = known->text(parts.lifecycle.seconds());
  }
  const trace::TracedRanks::Progress& progress = parts.traced.ranks().progress();
  const auto& ranks = parts.traced.ranks().ranks();
  if (progress.ranks == 0) return;
  r.traced = TracedReport{progress.ranks, progress.samples_known, progress.steps_per_second,
                          progress.runs};
  r.step = progress.step;
  r.samples_done = progress.samples;
  r.training_seconds = progress.seconds;
  r.samples_per_second = !parts.ended ? progress.samples_per_second
                         : progress.seconds > 0
                             ? static_cast<double>(progress.samples) / progress.seconds
                             : 0;
  if (parts.ended && progress.seconds > 0) {
    r.traced->steps_per_second = static_cast<double>(progress.step.value) / progress.seconds;
  }
  for (WorkerReport& w : r.workers) {
    if (const auto rank = ranks.find(w.worker); rank != ranks.end()) {
      w.rank = rank->second.said.rank;
      if (!rank->second.said.samples_known) w.samples_per_second = 0;
    }
    const auto& views = parts.controller.view().workers;
    const auto view = std::ranges::find_if(views, [&](const WorkerView& v) {
      return v.member == Member{w.worker, w.attempt};
    });
    if (view == views.end() || !view->measured) continue;
    w.step = WorkerReport::Step{view->batch_s * view->data_share,
                                view->batch_s * (1 - view->data_share), view->wait_s()};
  }
}

std::vector<ServerReport> servers_of(const Parts& parts) {
  std::vector<ServerReport> reports;
  for (const WorkerProcess& w : parts.lifecycle.workers()) {
    if (!w.is_server() || w.state == WorkerProcess::kRemoved) continue;
    ServerReport r{w.place.worker,         parts.members.host_name(w.place.host), w.pid, w.attempt,
                   process_state(w.state), parts.server_stats.of(w.place.worker)};
    const auto& views = parts.controller.view().servers;
    const auto view = std::ranges::find(views, w.member(), &ServerView::member);
    if (view != views.end()) {
      r.judged = view->measured;
      r.verdict = view->verdict;
    }
    const ServerRole role = parts.servers.placement().role_of(w.member());
    r.io = parts.vitals.io().of(w.member());
    const bool is_single = parts.config.spec.server_replicas < 2 && role == ServerRole::kAlone;
    if (role != ServerRole::kNone && !is_single) r.role = role;
    reports.push_back(std::move(r));
  }
  return reports;
}

// Adds, while the job runs, how many servers there are and which processes are waited for.
void add_server_count(JobReport& report, const Parts& parts) {
  if (std::string text = parts.servers.waiting_for(); !text.empty()) report.waiting_for = text;
  report.servers_count = parts.lifecycle.servers();
  report.servers_wanted = parts.lifecycle.servers_wanted();
  if (!report.waiting_for.empty() || report.servers_wanted == 0) return;
  for (const WorkerProcess& w : parts.lifecycle.workers()) {
    const bool comes = w.apart() && !w.stays_away() && w.state != WorkerProcess::kJoined;
    if (comes) report.waiting_for += fmt::format("{} ", w.place.worker);
  }
  report.waiting_for +=
      report.waiting_for.empty() ? "the last checkpoint of the servers" : "to join";
}

void add_waiting(JobReport& r, const Parts& parts) {
  if (const auto missing = parts.membership.missing(); !missing.empty()) {
    for (const Member m : missing) r.waiting_for += fmt::format("{} ", m.worker);
    r.waiting_for += parts.membership.waiting_for();
  } else if (parts.membership.state() == Membership::State::kRestoring && !r.outcome) {
    r.waiting_for = "the checkpoint from which training goes on";
  }
  if (parts.config.spec.servers > 0 && !r.outcome) add_server_count(r, parts);
  if (parts.config.pins.empty() || r.outcome) return;
  const Epoch epoch = parts.records.ledger().phase().epoch;
  const auto domains = pinned_domains(parts.records.ledger());
  for (const std::string& text :
       {waiting_text(domains, epoch, parts.config.ledger.run), done_text(domains, epoch)}) {
    if (!text.empty()) r.waiting_for += (r.waiting_for.empty() ? "" : "; ") + text;
  }
}

void add_speed(JobReport& r, const Parts& parts) {
  const ProgressView& progress = parts.series.progress();
  const bool training = parts.lifecycle.phase().what == wire::PhaseKind::kTrain;
  std::uint64_t trained = 0;
  for (const EpochReport& e : parts.series.epochs()) trained += e.samples;
  if (training && !parts.ended) {
    // While it is paused, nobody hears what members report.
    r.samples_per_second = r.paused ? 0 : progress.samples_per_second();
  } else if (r.training_seconds > 0) {
    r.samples_per_second = static_cast<double>(trained) / r.training_seconds;
  }
  if (training) r.train_loss = progress.recent_loss();
}

void add_failures(JobReport& r, const Parts& parts) {
  r.failures.assign(parts.past.failures().begin(), parts.past.failures().end());
  r.failures_before = parts.past.failures_before();
  std::ranges::copy(parts.lifecycle.failures(), std::back_inserter(r.failures));
  std::ranges::stable_sort(r.failures, {}, &FailureRecord::time_s);
  for (std::uint8_t c = 0; c < names_of(FailureClass{}).size(); ++c) {
    const auto cls = static_cast<FailureClass>(c);
    const auto limit = parts.config.spec.budgets.find(std::string(name_of(cls)));
    if (limit == parts.config.spec.budgets.end()) continue;
    r.budgets.push_back({limit->first, limit->second, parts.lifecycle.budget_left(cls)});
  }
}

void add_hosts(JobReport& r, const Parts& parts) {
  const Hosts& hosts = parts.lifecycle.hosts();
  for (const HostState& h : hosts.all()) {
    r.hosts.push_back({h.name.empty() ? h.host : h.name,
                       h.host,
                       h.room,
                       h.up,
                       h.closed,
                       hosts.on_probation(h, r.wall_seconds),
                       hosts.penalty(h, r.wall_seconds),
                       h.drained,
                       {}});
  }
}

void add_totals(JobReport& r, const Parts& parts) {
  r.delivery = parts.records.accounts().delivery();
  for (const shard_server::EpochAccount& e : parts.records.accounts().epochs()) {
    r.totals.once += e.once;
    r.totals.repeated += e.repeated;
    r.totals.lost += e.lost;
    r.totals.skipped += e.skipped;
    r.totals.unaccounted += e.unaccounted;
    for (const auto& [reason, records] : e.skipped_by_program) {
      r.totals.skipped_by_program[reason] += records;
    }
  }
}

std::optional<report::UpdateThreshold> threshold_of(const Controller& controller) {
  if (!controller.threshold()) return std::nullopt;
  report::UpdateThreshold threshold{*controller.threshold(), *controller.job_threshold()};
  if (const auto& visit = controller.view().visit) {
    threshold.visit = {visit->step.value, accuracy_loss(*visit), bytes_share(*visit)};
  }
  return threshold;
}

}  // namespace

std::uint64_t samples_total(const Parts& parts) {
  const shard_server::Accounts& accounts = parts.records.accounts();
  if (!parts.lifecycle.training_ends()) {
    return accounts.records_before(parts.config.spec.epochs, parts.config.spec.train_records);
  }
  std::uint64_t total = 0;  // what is left when the training ends is to be trained no more
  for (const shard_server::EpochAccount& e : accounts.epochs()) total += e.records - e.left;
  return total;
}

std::uint64_t samples_done(const Parts& parts) {
  const wire::PhaseStart phase = parts.lifecycle.phase();
  if (phase.phase == 0) return 0;
  const auto until = [&](std::uint32_t epoch) {
    return parts.records.accounts().records_before(epoch, parts.config.spec.train_records);
  };
  const std::uint64_t before = until(phase.epoch.value);
  if (phase.what == wire::PhaseKind::kTrain) {
    return before +
           std::max(parts.series.progress().samples_in_phase(), parts.records.ledger().committed());
  }
  if (parts.lifecycle.training_ends()) return samples_total(parts);
  return phase.what == wire::PhaseKind::kEval ? until(phase.epoch.value + 1) : before;
}

JobReport report_of(const Parts& parts) {
  const wire::PhaseStart phase = parts.lifecycle.phase();
  const std::uint32_t epochs = parts.config.spec.epochs;
  JobReport r;
  r.job = parts.config.job;
  r.state = parts.lifecycle.state();
  r.generation = parts.group.generation();
  r.lineage = parts.membership.lineage();
  r.collective = parts.membership.collective();
  r.servers_decide = !in_collective(parts.config.spec.sync);
  r.traffic = parts.traffic.report();
  r.update_threshold = threshold_of(parts.controller);
  r.incarnation = parts.config.incarnation;
  r.epochs = epochs;
  const auto& ends = parts.lifecycle.training_ends();
  const std::uint32_t in_all = ends ? ends->epochs : epochs;
  r.epoch = std::min(phase.epoch.value, in_all > 0 ? in_all - 1 : 0);
  r.step = parts.series.progress().step();
  r.samples_total = samples_total(parts);
  r.samples_done = samples_done(parts);
  r.rows_put_aside = parts.config.spec.rows_put_aside;
  r.wall_seconds = parts.lifecycle.seconds();
  r.training_seconds = parts.series.progress().training_seconds().value_or(0);
  r.paused = parts.watching.paused() && !parts.ended;
  add_speed(r, parts);
  r.message = parts.last_note;
  r.outcome = parts.lifecycle.outcome();
  add_waiting(r, parts);
  r.workers = workers_of(parts);
  r.servers = servers_of(parts);
  r.decided_before = parts.server_stats.earlier();
  add_traced(r, parts);
  r.actions.assign(parts.past.actions().begin(), parts.past.actions().end());
  r.actions_before = parts.past.actions_before();
  r.epoch_reports = parts.series.epochs();
  if (ends) {
    r.training_ended = report::TrainingEnded{ends->epochs, ends->reason};
  }
  add_failures(r, parts);
  add_hosts(r, parts);
  add_totals(r, parts);
  return r;
}

}  // namespace antdt::ctl::job
