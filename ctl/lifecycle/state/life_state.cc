#include "ctl/lifecycle/state/life_state.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl::lifecycle {

double LifeState::seconds() const {
  return seconds_before + (began ? to_seconds(now - *began) : 0);
}

// Every message looks a process up, so the likely index is tried first. Workers are in the order of
// their numbers, with the servers before or after them.
const WorkerProcess* LifeState::find(WorkerId worker) const {
  const std::size_t count = workers.size();
  const std::size_t servers = spec.server_processes();
  for (const std::size_t before : {std::size_t{0}, servers, count - std::min(count, servers)}) {
    const std::size_t guess = before + worker.index;
    if (guess < count && workers[guess].place.worker == worker) {
      return &workers[guess];
    }
  }
  const auto found =
      std::ranges::find(workers, worker, [](const WorkerProcess& w) { return w.place.worker; });
  return found == workers.end() ? nullptr : &*found;
}

bool LifeState::is_current(Member member) const {
  const WorkerProcess* worker = find(member.worker);
  return worker != nullptr && worker->attempt == member.attempt && worker->running();
}

WorkerProcess* LifeState::find_mutable(WorkerId worker) {
  return const_cast<WorkerProcess*>(std::as_const(*this).find(worker));
}

WorkerProcess* LifeState::find_mutable(Member member) {
  const WorkerProcess* worker = find(member.worker);
  const bool current = worker != nullptr && worker->attempt == member.attempt;
  return current ? const_cast<WorkerProcess*>(worker) : nullptr;
}

std::string LifeState::host_name(const std::string& host) const {
  const HostState* known = hosts.find(host);
  return known == nullptr || known->name.empty() ? host : known->name;
}

std::uint32_t LifeState::servers() const {
  return image.servers > 0 ? image.servers : spec.servers;
}

bool LifeState::welcomes(Member member) const {
  if (member.worker.role == 's') return true;
  if (image.model_kept) return false;
  if (state() != JobState::kFinishing || phases.group().empty()) return true;
  return phases.in_group(member);
}

}  // namespace antdt::ctl::lifecycle
