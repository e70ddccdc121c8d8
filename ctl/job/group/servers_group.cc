#include "ctl/job/group/servers_group.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

Generation ServersGroup::generation() const { return parts_.servers.generation(); }

bool ServersGroup::whole() const { return parts_.servers.serving(); }

bool ServersGroup::closing() const { return parts_.servers.closing(); }

std::vector<Member> ServersGroup::members() const { return parts_.servers.workers().admitted(); }

std::optional<std::vector<Member>> ServersGroup::restored() {
  if (!parts_.servers.serving()) return std::nullopt;
  return parts_.servers.workers().present();
}

void ServersGroup::finish_recovery(Work& work) {
  if (parts_.servers.serving()) deal_again(work);
  parts_.watching.expect_steps(work);
  // With servers, no generation settles that would tell the phase; the workers repeat that they are
  // done.
  if (parts_.servers.serving()) parts_.phases.tell_if_drained(work);
}

void ServersGroup::expect(Work& work) {
  servers::ProcessesExpected expected;
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (!w.running()) continue;
    if (w.is_server() && w.stays_away()) continue;  // another process takes over
    (w.apart()       ? expected.added
     : w.is_server() ? expected.servers
                     : expected.workers)
        .push_back(w.member());
  }
  work.then(std::move(expected));
}

void ServersGroup::join(Member member, Generation generation, const wire::Join& join, Work& work) {
  // A join is repeated, and an old one may arrive late.
  wire::PsSaid& newest = said_[member];
  const auto order = [](const wire::PsSaid& s) {
    return std::tuple(s.generation, s.phase, s.place);
  };
  if (order(newest) < order(join.said)) newest = join.said;
  // It may repeat what it said of an earlier group, whose problem that was.
  const bool of_this = generation == this->generation();
  work.then(servers::GroupJoinRequested{member, join.endpoint, join.key,
                                        of_this ? join.problem : std::string(),
                                        servers::trouble_in(join), join.fewest_servers});
}

void ServersGroup::release(const lifecycle::ReleaseWorker& gone, Work& work) {
  // Whether the records it held are suspect is decided when its home has answered.
  if (gone.suspect) parts_.suspicions.add_server_worker(gone.member);
  work.then(servers::GroupMemberLost{gone.member, gone.reason});
}

void ServersGroup::tick(Work& work) { work.then(servers::TimePassed{}); }

void ServersGroup::stepped(Work& work) {
  if (parts_.servers.closing() != std::exchange(was_closing_, parts_.servers.closing())) {
    parts_.watching.expect_steps(work);
  }
  if (parts_.servers.serving()) deal_again(work);
}

// A worker may not have heard of the phase, so it is repeated. If that is not the reason, the
// server that decides when steps are complete is at fault.
void ServersGroup::stuck(const std::string& why, Work& work) {
  if (parts_.servers.serving()) {
    parts_.members.send_to_group(parts_.phases.as_it_stands(parts_.lifecycle.phase()), work);
  }
  if (const WorkerProcess* first = cuts_.first_server()) {
    work.then(lifecycle::WorkerHung{first->member(), why});
  }
}

bool ServersGroup::awaits(Member member) const { return parts_.servers.awaits(member); }

void ServersGroup::state_moves(Work& work) { work.then(servers::RestoreAdvanced{}); }

void ServersGroup::order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) {
  work.then(servers::CutOrdered{order.number, order.last});
}

void ServersGroup::set_rate(double rate, Work& work) { work.then(servers::TermsSet{{}, rate}); }

void ServersGroup::say_finish_again(Work& work) {
  if (parts_.lifecycle.model_kept()) {
    return parts_.members.send_to_group(wire::Leave{kDone, 0}, work);
  }
  parts_.members.send_to_group(parts_.phases.as_it_stands(parts_.lifecycle.phase()), work);
}

// ------------------------------------------------------------------------ effects

void ServersGroup::carry_out(const servers::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 [&](const servers::PersistGroup&) { work.save_image(); },
                 [&](const servers::SendServe& e) {
                   work.send_to_reader(e.to, e.generation, e.serve, e.reads ? e.serve.restore : "");
                 },
                 [&](const servers::SendCut& e) { work.send(e.to, e.generation, e.cut); },
                 [&](const servers::RepeatDissolve& e) {
                   for (const Member worker : e.workers) {
                     work.send(worker, e.generation, wire::Abort{"its servers are given up"});
                   }
                 },
                 [&](const servers::EndSilentMember& e) {
                   parts_.members.end_silent(e.member, e.what, parts_.servers.missing(), work);
                 },
                 [&](const servers::SendRosters& e) {
                   for (const Member worker : e.workers) work.send(worker, generation(), roster());
                 },
                 [&](const servers::ChooseRestore& e) {
                   if (parts_.lifecycle.outcome()) return;
                   work.say(FindCheckpoint{e.unread, e.checkpoint, e.damaged});
                 },
                 [&](const servers::ConcludeCut& e) { cuts_.on(e, work); },
                 [&](const auto& e) { on(e, work); },
             },
             effect);
}

void ServersGroup::on(const servers::ReportSwitch& switched, Work& work) {
  parts_.server_stats.switched(switched);
  if (parts_.lifecycle.outcome()) return;  // the workers leave
  const WorkerId lost = switched.lost.worker;
  const WorkerId alone = switched.alone.worker;
  const bool moved = switched.promoted && parts_.config.spec.server_replicas < 2;
  work.note(
      "server-switched",
      moved
          ? fmt::format("{} is server {} from now on, {} has left it", alone, switched.server, lost)
      : switched.promoted
          ? fmt::format("{} is lost; its backup {} is server {} from now on, without one", lost,
                        alone, switched.server)
          : fmt::format("{} is lost, the backup of {}, which goes on without one", lost, alone));
}

void ServersGroup::on(const servers::ReportBackup& backed, Work& work) {
  if (parts_.lifecycle.outcome()) return;
  const bool moves = parts_.config.spec.server_replicas < 2;
  work.note("server-backed",
            fmt::format("{} has all that {} has, and {}", backed.backup.worker,
                        backed.primary.worker, moves ? "takes over" : "is its backup from now on"));
  if (moves) work.then(lifecycle::ServerTakenOver{backed.primary});
}

void ServersGroup::on(const servers::ReportTrouble& trouble, Work& work) {
  parts_.members.report(trouble, work);
}

void ServersGroup::on(const servers::OpenGroup& formed, Work& work) {
  shard_server::ledger::GenerationSettled settled{formed.generation, {}, formed.workers};
  if (!parts_.config.pins.empty()) {
    for (const Member worker : formed.workers) {
      settled.domains.push_back(parts_.members.domain_of(worker));
    }
  }
  parts_.records.step(settled, work);
  parts_.times.group_formed(formed.workers, work.now);
  dealt_.clear();
  deal_again(work);
  work.then(ServerWorkersPlanned{formed});
}

void ServersGroup::on(const ServerWorkersPlanned& e, Work& work) {
  for (const Member worker : e.formed.workers) tell_of_servers(worker, work);
  parts_.watching.expect_steps(work);
  work.then(lifecycle::GenerationSettled{e.formed.generation, e.formed.workers});
}

wire::PsRoster ServersGroup::roster() const {
  wire::PsRoster roster = parts_.servers.roster();
  roster.sync = parts_.config.spec.sync;
  roster.staleness = parts_.config.spec.staleness;
  return roster;
}

void ServersGroup::tell_of_servers(Member worker, Work& work) const {
  work.send(worker, generation(), roster());
  if (!parts_.controller.plan().entries.empty()) {
    work.send(worker, generation(), parts_.controlling.plan_of(worker.worker));
  }
}

// A worker that the ledger knows keeps what it holds: it has asked again, or this incarnation does
// not know that it was told before.
void ServersGroup::on(const servers::AdmitWorker& admitted, Work& work) {
  const Member worker = admitted.worker;
  const shard_server::Holder* holder = parts_.records.holder_of(worker);
  const bool known = holder != nullptr && holder->active && holder->generation == generation();
  if (!known) {
    parts_.records.step(shard_server::ledger::MemberAdmitted{worker, generation(),
                                                             parts_.members.domain_of(worker)},
                        work);
    work.note("joined", fmt::format("{} (attempt {}) pushes to the servers from now on",
                                    worker.worker, worker.attempt));
  }
  deal_again(work);
  work.then(ServerWorkerPlanned{worker});
}

void ServersGroup::on(const ServerWorkerPlanned& e, Work& work) {
  tell_of_servers(e.worker, work);
  const wire::PhaseStart open = parts_.lifecycle.phase();
  if (open.phase > 0) work.send(e.worker, generation(), parts_.phases.as_it_stands(open));
  parts_.watching.expect_steps(work);
}

// Its home has the last word: records that the ledger has not heard of yet are committed.
void ServersGroup::on(const servers::SettleLeaver& left, Work& work) {
  const wire::PsPlaces& places = left.places;
  const Member member{places.worker, places.attempt};
  const shard_server::Holder* holder = parts_.records.holder_of(member);
  if (holder == nullptr || !holder->active) return;
  // Gaps between applied places are batches of weight 0, which needed no update.
  if (places.phase == parts_.records.ledger().phase().number && !places.applied.empty()) {
    parts_.records.step(
        shard_server::ledger::ProgressReported{member, holder->generation, places.phase,
                                               places.applied.back().to},
        work);
  }
  const bool judged = parts_.suspicions.judge_server_worker(member, holder->place, work);
  if (judged && parts_.suspicions.end_job_if_shared(work)) return;
  if (holder->outstanding() > 0) {
    work.note("returned", fmt::format("{} (attempt {}) gave back {} records", member.worker,
                                      member.attempt, holder->outstanding()));
  }
  parts_.records.step(shard_server::ledger::MemberLeft{member}, work);
}

void ServersGroup::on(const servers::DissolveGroup& over, Work& work) {
  if (parts_.lifecycle.outcome()) {  // the workers leave
    return work.then(lifecycle::GenerationEnded{});
  }
  work.note("generation-broken", fmt::format("the servers of generation {} are given up: {}",
                                             over.generation, over.reason));
  parts_.suspicions.forget_server_workers();  // no home can answer for these workers any more
  for (const Member worker : over.workers) {
    work.send(worker, over.generation, wire::Abort{over.reason});
  }
  parts_.watching.expect_steps(work);
  work.then(lifecycle::GenerationEnded{});
}

void ServersGroup::deal_again(Work& work) {
  const std::vector<Member> workers = parts_.servers.workers().present();
  if (workers.empty() || workers == dealt_) return;
  dealt_ = workers;
  std::vector<Monitor::MemberInfo> group;
  for (const Member m : workers) {
    const WorkerProcess* w = parts_.lifecycle.find(m.worker);
    group.push_back(
        parts_.members.info_of(m, w == nullptr ? "" : parts_.members.host_name(w->place.host)));
  }
  work.then(control::GroupFormed{group, parts_.members.rests_of(workers)});
}

// ------------------------------------------------------------------------ beginnings

// The servers that are left and their workers may go on with what they have. Then the ledger also
// goes on from there, and only the part of the lost servers is that of the checkpoint.
Result<Beginning> ServersGroup::beginning(const CheckpointFound& found) const {
  using shard_server::Accounts;
  Beginning then = from_checkpoint(parts_, found);
  const std::vector<Member> keepers = parts_.servers.keepers();
  if (keepers.empty()) return then;
  const std::vector<shard_server::OldPlace> places = places_in_doubt();
  ANTDT_TRY(const Accounts checkpoint, Accounts::restore(then.accounts));
  ANTDT_TRY(const Accounts accounts, parts_.records.accounts().in_part(checkpoint, places));
  then.accounts = accounts.image();
  then.who = "with what they have go on";
  for (const Member m : keepers) then.who += fmt::format(" {}", m.worker);
  if (parts_.config.spec.delivery == Delivery::kAtLeastOnce) return then;
  std::vector<wire::MemberPlace> committed;
  for (const auto& old : places) committed.push_back({old.member.worker, old.place});
  ANTDT_TRY(then.ledger, parts_.records.ledger().image_at(committed));
  then.version = std::max(then.version, parts_.series.progress().step().value);
  return then;
}

// How far the records that workers hold may be in the model: up to the last commit that they asked
// a home for. For a worker that did not join again to report this, it is everything it held. An
// evaluation puts nothing into the model.
std::vector<shard_server::OldPlace> ServersGroup::places_in_doubt() const {
  std::vector<shard_server::OldPlace> places;
  const shard_server::Ledger& ledger = parts_.records.ledger();
  if (ledger.phase().kind != shard_server::PhaseKind::kTrain) return places;
  for (const auto& [worker, holder] : ledger.holders()) {
    if (!holder.active) continue;
    const Member member{worker, holder.attempt};
    const auto said = said_.find(member);
    std::uint64_t place = holder.end;
    if (said != said_.end() && said->second.generation == holder.generation) {
      const bool in_phase = said->second.phase == ledger.phase().number;
      place = std::clamp(in_phase ? said->second.place : 0, holder.place, holder.end);
    }
    places.push_back({member, place});
  }
  return places;
}

void ServersGroup::begin(const std::string& checkpoint, std::uint64_t version, Work& work) {
  said_.clear();
  work.then(servers::RestoreChosen{checkpoint, version});
}

}  // namespace antdt::ctl::job
