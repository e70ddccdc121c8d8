#include "ctl/job/subjects/operators.h"

#include <algorithm>
#include <vector>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

std::optional<lifecycle::RestartRequested> Operators::server_to_move(
    const lifecycle::EvictionRequested& e) const {
  const auto id = parse_worker_id(e.target);
  const WorkerProcess* const w = id ? parts_.lifecycle.find(*id) : nullptr;
  if (w == nullptr || !w->is_server()) return std::nullopt;
  return lifecycle::RestartRequested{w->member(), e.reason, e.deadline};
}

Status Operators::check(const lifecycle::EvictionRequested& e) const {
  const auto server = server_to_move(e);
  return server ? check(*server) : parts_.lifecycle.check(e);
}

// The rows of a server must also be on another process, which stays.
Status Operators::check(const lifecycle::RestartRequested& e) const {
  ANTDT_RETURN_IF_ERROR(parts_.lifecycle.check(e));
  const servers::ServerGroup& servers = parts_.servers;
  if (e.member.worker.role != 's') return {};
  if (servers.placement().role_of(e.member) == ServerRole::kJoining) return {};
  if (parts_.config.spec.server_replicas < 2) {
    if (servers.serving()) return {};
    return fail(ErrorKind::kRefused,
                "the servers do not serve now, and only then can {} be moved: try again soon",
                e.member.worker);
  }
  const auto other = servers.placement().other_of(e.member);
  const WorkerProcess* const w = other ? parts_.lifecycle.find(*other) : nullptr;
  if (servers.serving() && w != nullptr && w->running() && !w->leaving()) return {};
  return fail(ErrorKind::kRefused,
              "nobody else has all rows of {} now: try again when it has a backup",
              e.member.worker);
}

Status Operators::check(const lifecycle::WorkerCountRequested& e) const {
  ANTDT_RETURN_IF_ERROR(parts_.lifecycle.check(e));
  std::vector<WorkerId> workers(e.count);
  for (std::uint32_t i = 0; i < e.count; ++i) workers[i] = {'w', i};
  const auto plan = equal_plan(PlanVersion{1}, workers, parts_.config.control.rules);
  if (plan) return {};
  return fail(ErrorKind::kRefused, "{} workers cannot share the global batch: {}", e.count,
              plan.error().message);
}

Status Operators::check(const lifecycle::ServerCountRequested& e) const {
  ANTDT_RETURN_IF_ERROR(parts_.lifecycle.check(e));
  const std::uint32_t fewest = parts_.servers.fewest();
  // The present number gives a change up.
  if (e.count < fewest && e.count != parts_.lifecycle.servers()) {
    return fail(ErrorKind::kUsage,
                "parameter servers cannot become {0}: this model has too many dense parameters, of "
                "which a server's share is one message, for fewer than {1} servers: ask for {1} or "
                "more",
                e.count, fewest);
  }
  if (parts_.servers.serving() || parts_.lifecycle.servers_wanted() > 0) return {};
  return fail(ErrorKind::kRefused,
              "the servers do not serve now, and only then can they become {}: try again soon",
              e.count);
}

Status Operators::check(const wire::SkipRecords& order) const {
  const std::uint64_t records = parts_.records.ledger().records();
  if (order.reason.empty()) return fail(ErrorKind::kUsage, "records are skipped for a --reason");
  if (order.from >= order.to || order.to > records) {
    return fail(ErrorKind::kUsage,
                "positions {}:{} are not in the stream of this phase, which has {} records",
                order.from, order.to, records);
  }
  return {};
}

void Operators::ask(const lifecycle::EvictionRequested& e, Work& work) {
  const auto server = server_to_move(e);
  if (!server) return work.then(e);
  if (check(*server)) work.then(*server);
}

void Operators::ask(const lifecycle::RestartRequested& e, Work& work) { work.then(e); }

void Operators::ask(const lifecycle::WorkerCountRequested& e, Work& work) { work.then(e); }

void Operators::ask(const lifecycle::ServerCountRequested& e, Work& work) {
  if (check(e)) work.then(e);
}

void Operators::on(const SkipOrdered& e, Work& work) {
  const wire::SkipRecords& order = e.order;
  if (!check(order)) return;
  parts_.records.step(
      shard_server::ledger::SkipDeclared{
          parts_.records.ledger().phase().number, {order.from, order.to}, order.reason},
      work);
  work.then(
      lifecycle::WriteNote{"skip", fmt::format("{} lets the job go on without positions {}:{}: {}",
                                               order.who, order.from, order.to, order.reason)});
  parts_.group.records_skipped(work);
}

// The request is recorded among the actions, so that the journal and the summary name who asked.
void Operators::on(const OperatorAsked& e, Work& work) {
  parts_.past.add(ActionReport{0, parts_.lifecycle.seconds(), e.kind, "", e.text, "asked"});
  work.note("operator", fmt::format("{}: {}", e.kind, e.text));
}

// While a server leaves or another one joins, the next one stays where it is.
void Operators::move_drained_servers(Work& work) {
  const Lifecycle& life = parts_.lifecycle;
  const auto drained = [](const HostState& h) { return !h.drained.empty() && h.up; };
  if (life.servers() == 0 || std::ranges::none_of(life.hosts().all(), drained)) return;
  for (const WorkerProcess& w : life.workers()) {
    if (!w.is_server() || w.state == WorkerProcess::kRemoved) continue;
    if (w.state != WorkerProcess::kJoined || w.leaving()) return;
  }
  for (const WorkerProcess& w : life.workers()) {
    if (!w.is_server() || !w.running()) continue;
    const HostState* const host = life.hosts().find(w.place.host);
    if (host == nullptr || !drained(*host)) continue;
    const bool room =
        life.hosts().choose(w, life.workers(), life.seconds(), {host->host}) != nullptr;
    const lifecycle::RestartRequested move{
        w.member(), fmt::format("{} is drained {}", host->name, host->drained),
        parts_.config.spec.stop_grace};
    if (room && check(move)) return work.then(move);
  }
}

}  // namespace antdt::ctl::job
