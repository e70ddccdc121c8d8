#include "ctl/job/group/members.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

bool Members::add_loose(Member member) {
  if (std::ranges::find(loose_, member) != loose_.end()) return false;
  std::erase_if(loose_, [&](Member other) { return other.worker == member.worker; });
  loose_.push_back(member);
  return true;
}

bool Members::remove_loose(Member member) { return std::erase(loose_, member) > 0; }

void Members::send_to_group(const WorkerMessage& body, Work& work) const {
  for (const Member member : parts_.group.members()) {
    work.send(member, parts_.group.generation(), body);
  }
}

void Members::send_to_running(const WorkerMessage& body, Work& work) const {
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (w.running() && !w.is_server()) work.send(w.member(), parts_.group.generation(), body);
  }
  if (parts_.config.spec.external) send_to_group(body, work);
}

void Members::report(const servers::ReportTrouble& trouble, Work& work) const {
  const WorkerProcess* w = parts_.lifecycle.find(trouble.worker.worker);
  const std::string text =
      fmt::format("{} on {}: {}", trouble.worker.worker,
                  w == nullptr ? "" : host_name(w->place.host), trouble.problem);
  work.note("cannot-begin", text);
  if (!trouble.last) return;
  const bool of_checkpoint = trouble.trouble == servers::Trouble::kCheckpoint;
  work.then(of_checkpoint ? lifecycle::JobFailed{ExitClass::kCheckpoint, 1, text}
                          : lifecycle::JobFailed{ExitClass::kHost, 3, text});
}

std::string Members::host_name(const std::string& endpoint) const {
  const HostState* host = parts_.lifecycle.hosts().find(endpoint);
  return host == nullptr || host->name.empty() ? endpoint : host->name;
}

std::string Members::domain_name_of(Member member) const {
  const WorkerProcess* process = parts_.lifecycle.find(member.worker);
  const std::string host = process == nullptr ? "" : host_name(process->place.host);
  return parts_.config.domains.of(member.worker, host);
}

shard_server::DomainNumber Members::domain_of(Member member) const {
  const shard_server::Pins& pins = parts_.config.ledger.pins();
  if (pins.empty()) return {};
  return pins.number_of(domain_name_of(member));
}

// Workers that do not wait for one another train at their own speeds, whatever their parts are.
DomainRests Members::rests_of(const std::vector<Member>& group) const {
  const SyncStrategy sync = parts_.config.spec.sync;
  const bool together = in_collective(sync) || sync == SyncStrategy::kPsBsp;
  if (!together || !parts_.config.pins.has("train")) return {};
  const shard_server::Ledger& ledger = parts_.records.ledger();
  const bool trains =
      ledger.phase().kind == shard_server::PhaseKind::kTrain && ledger.phase().number > 0;
  DomainRests rests;
  std::map<shard_server::DomainNumber, std::size_t> places;  // in `rests`
  for (const Member member : group) {
    // Of each worker at each tick, so where it is known it is not computed from the hosts.
    const auto holder = ledger.holders().find(member.worker);
    const bool known = holder != ledger.holders().end() && holder->second.attempt == member.attempt;
    const shard_server::DomainNumber domain = known ? holder->second.domain : domain_of(member);
    if (domain == shard_server::DomainNumber{}) return {};  // its host is not known yet
    const auto [place, is_new] = places.try_emplace(domain, rests.size());
    if (is_new) {
      const std::string name(ledger.domain_name(domain));
      rests.push_back({name,
                       {},
                       trains && !ledger.complete()
                           ? ledger.left_in(domain)
                           : parts_.config.pins.records_of("train", name)});
    }
    rests[place->second].workers.push_back(member.worker);
  }
  for (DomainRest& rest : rests) std::ranges::sort(rest.workers);
  return rests;
}

Monitor::MemberInfo Members::info_of(Member member, std::string host) const {
  Device device = parts_.devices.of(member, host);
  return {member, std::move(host), std::move(device)};
}

void Members::end_silent(Member silent, const std::string& what, const std::vector<Member>& missing,
                         Work& work) const {
  const IoWatch& io = parts_.vitals.io();
  const auto on_disk = [&](Member m) { return io.uses_disk(m); };
  if (!on_disk(silent) && std::ranges::any_of(missing, on_disk)) return;
  const std::string still = io.stands_still(silent, work.now);
  work.then(lifecycle::WorkerHung{silent, still.empty() ? what : still});
}

}  // namespace antdt::ctl::job
