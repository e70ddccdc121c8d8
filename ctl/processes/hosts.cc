#include "ctl/processes/hosts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

namespace antdt::ctl {
namespace {

// A server that waits has room on the host that it was on.
bool has_room(const WorkerProcess& w) {
  return w.running() || (w.is_server() && w.state == WorkerProcess::kWaiting);
}

// How many of the processes have room on each host, not counting `but`. Computed once for all
// hosts, because a job may have a thousand processes and hosts.
std::map<std::string_view, std::uint32_t> loads(const std::vector<WorkerProcess>& all,
                                                WorkerId but) {
  std::map<std::string_view, std::uint32_t> load;
  for (const WorkerProcess& w : all) {
    if (has_room(w) && w.place.worker != but) ++load[w.place.host];
  }
  return load;
}

constexpr WorkerId kNobody{'\0', 0};

}  // namespace

void Hosts::up(const HostState& host) {
  if (HostState* known = find_mutable(host.host)) {
    known->name = host.name;
    known->room = std::max(host.room, known->room);
    known->drained = host.drained;
    known->up = true;
    return;
  }
  hosts_.push_back(host);
  hosts_.back().up = true;
}

void Hosts::down(const std::string& host) {
  if (HostState* known = find_mutable(host)) known->up = false;
}

void Hosts::close(const std::string& host) {
  if (HostState* known = find_mutable(host)) known->closed = true;
}

void Hosts::drain(const std::string& host, const std::string& by_whom) {
  if (HostState* known = find_mutable(host)) known->drained = by_whom;
}

void Hosts::failed_on(const std::string& host, double now_s) {
  HostState* known = find_mutable(host);
  if (known == nullptr) return;
  known->penalty = penalty(*known, now_s) + 1;
  known->penalty_at_s = now_s;
}

const HostState* Hosts::find(const std::string& host) const {
  const auto found = std::ranges::find(hosts_, host, &HostState::host);
  return found == hosts_.end() ? nullptr : &*found;
}

HostState* Hosts::find_mutable(const std::string& host) {
  const auto found = std::ranges::find(hosts_, host, &HostState::host);
  return found == hosts_.end() ? nullptr : &*found;
}

const HostState* Hosts::named(const std::string& text) const {
  const auto found = std::ranges::find_if(
      hosts_, [&](const HostState& h) { return h.host == text || h.name == text; });
  return found == hosts_.end() ? nullptr : &*found;
}

double Hosts::penalty(const HostState& host, double now_s) const {
  return host.penalty * std::exp2(-(now_s - host.penalty_at_s) / kHalfLifeSeconds);
}

bool Hosts::on_probation(const HostState& host, double now_s) const {
  return penalty(host, now_s) > kProbation;
}

const HostState* Hosts::choose(const WorkerProcess& worker, const std::vector<WorkerProcess>& all,
                               double now_s, const std::vector<std::string>& not_on) const {
  const HostState* best = nullptr;
  auto load = loads(all, worker.place.worker);
  const auto rank = [&](const HostState& h) {
    const std::uint32_t free = h.room - load[h.host];
    return std::tuple(on_probation(h, now_s), h.host != worker.goes_to, h.host != worker.place.host,
                      std::floor(penalty(h, now_s)), -static_cast<std::int64_t>(free), h.order);
  };
  for (const HostState& h : hosts_) {
    if (!h.takes_processes() || std::ranges::find(not_on, h.host) != not_on.end()) continue;
    if (load[h.host] >= h.room || !is_in_domain_of(worker, h)) continue;
    if (best == nullptr || rank(h) < rank(*best)) best = &h;
  }
  return best;
}

bool Hosts::is_in_domain_of(const WorkerProcess& worker, const HostState& host) const {
  if (domains_.all().empty() || worker.is_server()) return true;
  const std::string there = domains_.of(worker.place.worker, host.name);
  const HostState* const last = find(worker.place.host);
  return last == nullptr ? !there.empty() : there == domains_.of(worker.place.worker, last->name);
}

bool Hosts::is_homeless(const WorkerProcess& worker) const {
  if (worker.state != WorkerProcess::kWaiting || !worker.is_server() || worker.moves_in()) {
    return false;
  }
  const HostState* const host = find(worker.place.host);
  return host == nullptr || !host->takes_processes();
}

std::uint32_t Hosts::room_left(const std::vector<WorkerProcess>& all) const {
  std::uint32_t left = 0;
  auto load = loads(all, kNobody);
  for (const HostState& h : hosts_) {
    if (h.takes_processes() && load[h.host] < h.room) left += h.room - load[h.host];
  }
  const auto homeless = static_cast<std::uint32_t>(
      std::ranges::count_if(all, [this](const WorkerProcess& w) { return is_homeless(w); }));
  return left - std::min(left, homeless);
}

std::vector<Hosts::Place> Hosts::places(const std::vector<WorkerProcess>& all, double now_s) const {
  auto load = loads(all, kNobody);
  std::vector<Place> places;
  for (const HostState& h : hosts_) {
    const std::uint32_t used = load[h.host];
    if (h.takes_processes() && used < h.room && !on_probation(h, now_s))
      places.push_back({&h, h.room - used});
  }
  return places;
}

void Hosts::restore(std::vector<HostState> hosts) {
  hosts_ = std::move(hosts);
  for (HostState& h : hosts_) h.up = false;  // each host is down until its agent answers
}

}  // namespace antdt::ctl
