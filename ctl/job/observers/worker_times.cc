#include "ctl/job/observers/worker_times.h"

#include <algorithm>

#include "core/wire/time_sums.h"

namespace antdt::ctl {

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
  Times& all = earlier_[id];
  Times last = present_[id];
  if (const auto started = started_.find(member); started != started_.end()) {
    last.wall_seconds = to_seconds(now - started->second);
    // Time that the worker cannot measure itself: its start and its end.
    last.time.other += std::max(0.0, last.wall_seconds - total(last.time));
    started_.erase(started);
  }
  all.samples += last.samples;
  all.of_others += last.of_others;
  all.wall_seconds += last.wall_seconds;
  all.time += last.time;
  all.table_sums += last.table_sums;
  all.shadow += last.shadow;
  all.updates += last.updates;
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

WorkerTimes::Times WorkerTimes::of(WorkerId worker) const {
  Times times;
  if (const auto found = present_.find(worker); found != present_.end()) times = found->second;
  if (const auto found = earlier_.find(worker); found != earlier_.end()) {
    times.samples += found->second.samples;
    times.of_others += found->second.of_others;
    times.wall_seconds += found->second.wall_seconds;
    times.time += found->second.time;
    times.table_sums += found->second.table_sums;
    times.shadow += found->second.shadow;
    times.updates += found->second.updates;
  }
  return times;
}

}  // namespace antdt::ctl
