#include "ctl/job/observers/worker_times.h"

#include <algorithm>

#include "core/wire/time_sums.h"

namespace antdt::ctl {
namespace {

// Everything but what is of the present attempt alone.
void add(const WorkerTimes::Times& more, WorkerTimes::Times& sum) {
  sum.samples += more.samples;
  sum.of_others += more.of_others;
  sum.wall_seconds += more.wall_seconds;
  sum.time += more.time;
  sum.table_sums += more.table_sums;
  sum.shadow += more.shadow;
  sum.updates += more.updates;
}

}  // namespace

void WorkerTimes::restore(WorkerId worker, const std::optional<Times>& ended,
                          const std::optional<Times>& present) {
  if (ended) earlier_[worker] = *ended;
  if (present) present_[worker] = *present;
}

void WorkerTimes::started(Member member, MonoTime now) { started_[member] = now; }

void WorkerTimes::measured(WorkerId worker, const wire::Metrics& metrics) {
  const wire::Report& sum = metrics.sum;
  const wire::HostProbe& probe = metrics.probe;
  Times& times = present_[worker];
  if (probe.looked_us > 0) {
    times.cpus = static_cast<double>(probe.ran_us) / static_cast<double>(probe.looked_us);
  }
  times.samples = std::max(times.samples, sum.samples_total);
  times.of_others = std::max(times.of_others, sum.samples_of_others);
  times.time = sum.account;
  times.table_sums = sum.table_sums;
  times.shadow = sum.shadow;
  times.updates = sum.updates;
}

void WorkerTimes::left(WorkerId worker, const wire::Bye& bye) {
  Times& times = present_[worker];
  times.samples = std::max(times.samples, bye.samples_total);
  times.of_others = std::max(times.of_others, bye.samples_of_others);
  times.time = bye.account;
  times.table_sums = bye.table_sums;
  times.shadow = bye.shadow;
  times.updates = bye.updates;
}

void WorkerTimes::ended(Member member, MonoTime now) {
  const WorkerId id = member.worker;
  Times last = present_[id];
  if (const auto started = started_.find(member); started != started_.end()) {
    last.wall_seconds = to_seconds(now - started->second);
    // Time that the worker cannot measure itself: its start and its end.
    last.time.other += std::max(0.0, last.wall_seconds - total(last.time));
    started_.erase(started);
  }
  // The job's clock stands still between two incarnations of its daemon, and the worker's does not.
  last.wall_seconds = std::max(last.wall_seconds, total(last.time));
  add(last, earlier_[id]);
  present_.erase(id);
}

void WorkerTimes::group_formed(const std::vector<Member>& members, MonoTime now) {
  if (startup_) return;
  for (const Member m : members) {
    const auto started = started_.find(m);
    if (started == started_.end()) continue;
    startup_ = std::max(startup_.value_or(Duration::zero()), now - started->second);
  }
}

std::optional<WorkerTimes::Times> WorkerTimes::ended_of(WorkerId worker) const {
  const auto found = earlier_.find(worker);
  return found == earlier_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<WorkerTimes::Times> WorkerTimes::present_of(WorkerId worker) const {
  const auto found = present_.find(worker);
  return found == present_.end() ? std::nullopt : std::optional(found->second);
}

WorkerTimes::Times WorkerTimes::of(WorkerId worker) const {
  Times times = present_of(worker).value_or(Times{});
  if (const auto ended = ended_of(worker)) add(*ended, times);
  return times;
}

}  // namespace antdt::ctl
