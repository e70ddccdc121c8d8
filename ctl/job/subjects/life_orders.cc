#include "ctl/job/subjects/life_orders.h"

#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

void LifeOrders::carry_out(const lifecycle::Effect& effect, Work& work) {
  std::visit(
      Overloaded{
          [&](const lifecycle::PersistImage&) { work.save_image(); },
          [&](const lifecycle::StartWorker& e) {
            parts_.times.started(e.member, work.now);
            work.say(e);
          },
          [&](const lifecycle::StopWorker& e) { work.say(e); },
          [&](const lifecycle::PrepareGang& e) { work.say(e); },
          [&](const lifecycle::ExpectMembers&) { parts_.group.expect(work); },
          [&](const lifecycle::ReleaseWorker& e) { release(e, work); },
          [&](const lifecycle::OpenPhase& e) { parts_.phases.open(e.start, work); },
          [&](const lifecycle::AnnouncePhase& e) { parts_.phases.announce(e.start, work); },
          [&](const lifecycle::CutPhase& e) {
            parts_.records.step(shard_server::ledger::PhaseCut{e.phase, e.reason}, work);
          },
          [&](const lifecycle::OrderCheckpoint& e) {
            parts_.servers_group.cuts().ordered(parts_.records.ledger().phase().number);
            parts_.group.order_checkpoint(e, work);
          },
          [&](const lifecycle::ChangeServers& e) { work.then(servers::GroupResized{e.count}); },
          [&](const lifecycle::KeepServers&) { work.then(servers::ResizeAbandoned{}); },
          [&](const lifecycle::AskToLeave& e) {
            work.send(e.member, parts_.group.generation(), e.leave);
          },
          [&](const lifecycle::AskAllToLeave& e) { parts_.members.send_to_running(e.leave, work); },
          [&](const lifecycle::WriteNote& e) { work.note(e.kind, e.text); },
          [&](const lifecycle::EndJob& e) { end(e, work); },
      },
      effect);
}

void LifeOrders::release(const lifecycle::ReleaseWorker& gone, Work& work) {
  parts_.vitals.forget(gone.member);
  parts_.traced.release(gone.member, work);
  parts_.hosts.is_known(gone.member);
  parts_.checkpoints.writer_ended(gone.member, work);
  sum_up(gone.member, work);
  // Programs that do not speak the protocol form no group.
  if (parts_.config.spec.protocol == Protocol::kAntdt) parts_.group.release(gone, work);
}

// Nobody tells again what the process did.
void LifeOrders::sum_up(Member gone, Work& work) {
  parts_.times.ended(gone, work.now);
  if (gone.worker.role != 's') return parts_.keep_times(gone.worker);
  if (parts_.server_stats.ended(gone.worker)) work.save_image();
}

void LifeOrders::end(const lifecycle::EndJob& e, Work& work) {
  lifecycle::EndJob told = e;
  Outcome& outcome = told.outcome;
  // Processes that fail since others wait for them do not know why.
  const auto& hang = parts_.traced.hang();
  const bool explains = outcome.state == JobEnd::kFailed && hang && !hang->over() &&
                        outcome.first_cause.find(hang->hang.text) == std::string::npos;
  if (explains) {
    outcome.first_cause =
        fmt::format("{}; {}", hang->text(parts_.lifecycle.seconds()), outcome.first_cause);
  }
  work.note("end", outcome.first_cause.empty() ? fmt::format("the job is {}", outcome.state)
                                               : outcome.first_cause);
  parts_.series.cut_short(parts_.lifecycle.phase(), parts_.records.ledger().committed(), work.now);
  if (outcome.state == JobEnd::kDone && parts_.config.spec.protocol != Protocol::kAntdt) {
    parts_.records.step(shard_server::ledger::JobFinished{}, work);
  }
  parts_.ended = true;
  parts_.watching.remember_moment(true, work);
  work.say(std::move(told));
}

}  // namespace antdt::ctl::job
