#include "ctl/job/subjects/messages.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"
#include "core/wire/shard_messages.h"
#include "ctl/job/parts.h"
#include "ctl/membership/data_identity.h"

namespace antdt::ctl::job {

void Messages::on(const WorkerSaid& e, Work& work) {
  if (!parts_.config.spec.external && !parts_.lifecycle.is_current(e.member)) {
    return work.send(e.member, e.generation,
                     wire::Refused{wire::RefusalCode::kStale,
                                   fmt::format("attempt {} of {} is not the current one",
                                               e.member.attempt, e.member.worker)},
                     e.seq);
  }
  parts_.hosts.is_known(e.member);
  std::visit([&](const auto& said) { hear(e, said, work); }, e.body);
}

void Messages::hear(const WorkerSaid& e, const wire::Fetch& said, Work& work) {
  const std::uint64_t before = parts_.records.ledger().committed();
  parts_.records.fetch({e.member, e.generation, e.seq, said}, work);
  if (parts_.records.ledger().committed() > before) work.then(lifecycle::RecordsCommitted{});
}

void Messages::hear(const WorkerSaid& e, const wire::Recalled& said, Work& work) {
  parts_.records.recalled({e.member, e.generation, e.seq, said.phase, said.end, said.records},
                          work);
}

void Messages::hear_history(const wire::StepHistory& told, antdt::Step step, Work& work) {
  RunHistory::Steps steps = parts_.history.hear(told, step);
  if (!steps.refused.empty()) work.note("history", std::move(steps.refused));
  work.remember(std::move(steps.entries));
}

// ----------------------------------------------------------------------- joining

bool Messages::refuse_other_data(Member m, const wire::DataIdentity& data, Work& work) {
  const WorkerProcess* process = parts_.lifecycle.find(m.worker);
  const std::string host = process == nullptr ? "the job daemon's host, where it was started by "
                                                "hand"
                                              : parts_.members.host_name(process->place.host);
  const wire::DataIdentity expected =
      data_in(parts_.config.data, parts_.config.pins, parts_.members.domain_name_of(m));
  const auto difference = data_difference(expected, data, fmt::format("{} on {}", m.worker, host));
  if (!difference) return false;
  const std::string reason = fmt::format(
      "the data of {} on {} are not those that the launching host had when the run began, which "
      "data.json tells: {}. Nothing was trained on them. Copy the launching host's files to {} and "
      "go on with antdt run --resume {}; if the launching host's are the wrong ones, put the right "
      "ones on every host and begin a new run",
      m.worker, host, *difference, host, parts_.config.job);
  work.then(lifecycle::JobFailed{ExitClass::kData, 2, reason, parts_.config.spec.stop_grace});
  work.then(lifecycle::AskToLeave{m, {reason, 2}});
  return true;
}

void Messages::hear(const WorkerSaid& e, const wire::Join& said, Work& work) {
  const Member m = e.member;
  if (refuse_other_data(m, said.data, work)) return;
  if (parts_.devices.say(m, said.device)) work.save_image();
  if (parts_.group.takes(said)) {
    parts_.vitals.watch(m, work.now);
    work.then(lifecycle::WorkerJoined{m, true});
    const bool counts = parts_.lifecycle.welcomes(m) && parts_.config.spec.servers == 0;
    if (!said.ends.empty() && counts) {
      work.then(lifecycle::TrainingEnded{valid_utf8(said.ends, wire::SkippedRecords::kMaxReason)});
    }
    GroupJoinHeard heard{m, e.generation, said};
    // the files have been compared, and there may be thousands of them
    heard.join.data.files.clear();
    // Members of other domains have other files.
    if (!parts_.config.pins.empty()) heard.join.data = {};
    return work.then(std::move(heard));
  }
  const std::uint64_t phase_before = parts_.lifecycle.phase().phase;
  if (parts_.members.add_loose(m)) {
    parts_.records.step(shard_server::ledger::MemberAdmitted{m, parts_.membership.generation(),
                                                             parts_.members.domain_of(m)},
                        work);
  }
  work.then(lifecycle::WorkerJoined{m, false});
  work.then(LooseJoinHeard{m, phase_before});
}

void Messages::on(const GroupJoinHeard& e, Work& work) {
  if (!parts_.lifecycle.welcomes(e.member)) return;
  parts_.injections.tell_newcomer(e.member, work);
  parts_.group.join(e.member, e.generation, e.join, work);
}

// A client that comes later, or asks again, is told the open phase.
void Messages::on(const LooseJoinHeard& e, Work& work) {
  const wire::PhaseStart open = parts_.lifecycle.phase();
  if (open.phase != e.phase_before || e.phase_before == 0) return;
  work.send(e.member, parts_.membership.generation(), parts_.phases.as_it_stands(open));
}

void Messages::hear(const WorkerSaid& e, const wire::Address& said, Work& work) {
  work.then(membership::AddressArrived{e.member, e.generation, said});
}

void Messages::hear(const WorkerSaid& e, const wire::Ready& said, Work& work) {
  const Membership& membership = parts_.membership;
  const bool is_settled = membership.settled() && e.generation == membership.generation() &&
                          membership.contains(e.member);
  if (is_settled) {  // our answer was lost
    work.send(e.member, e.generation, parts_.ring.settle_of(e.member, said.step));
    const wire::PhaseStart open = parts_.lifecycle.phase();
    if (open.phase > 0) work.send(e.member, e.generation, parts_.phases.as_it_stands(open));
    return;
  }
  hear_history(said.history, said.step, work);
  if (said.replaced) {
    work.note("replica",
              fmt::format("{}: after step {} the training state had other bits than that of the "
                          "group's first member, whose state it took: devices of different classes "
                          "compute alike up to rounding",
                          e.member.worker, said.step));
  }
  work.then(membership::ReadyArrived{e.member, e.generation, said});
}

void Messages::hear(const WorkerSaid& e, const wire::PsServing& said, Work& work) {
  work.then(servers::ServeAnswered{e.member, e.generation, said});
}

// ---------------------------------------------------------------------- training

void Messages::hear(const WorkerSaid& e, const wire::Progress& said, Work& work) {
  parts_.vitals.heard(e.member, {}, {}, work.now);
  hear_history(said.history, said.step, work);
  parts_.records.step(
      shard_server::ledger::ProgressReported{e.member, e.generation, said.phase, said.place}, work);
  work.then(ProgressCounted{e.member, e.generation, said});
}

// Members of a generation that began after records were skipped count these as done.
wire::Progress Messages::without_skipped(wire::Progress said) const {
  const shard_server::Ledger& ledger = parts_.records.ledger();
  if (said.phase != ledger.phase().number) return said;
  said.samples = std::min(said.samples, ledger.records() - ledger.skipped());
  return said;
}

void Messages::on(const ProgressCounted& e, Work& work) {
  const wire::Progress& said = e.progress;
  const wire::PhaseStart open = parts_.lifecycle.phase();
  if (said.step > parts_.series.progress().step()) {
    work.then(lifecycle::StepCompleted{said.step});
  }
  parts_.series.hear(e.member, without_skipped(said), open.phase, work.now);
  if (auto told = parts_.series.diverged(said)) work.note("loss", std::move(*told));
  parts_.controlling.trains_with(e.member, said.plan, work);
  if (said.visit) work.then(control::VisitTold{*said.visit});
  if (said.kinds) {
    if (auto told = parts_.series.compared(*said.kinds)) work.note("sharing", std::move(*told));
  }
  if (!said.done) return;
  if (said.phase < open.phase) {  // the member has not heard of the next phase
    // A member of a generation that is not settled yet must not be told it either: the message is
    // from an earlier generation and came late.
    const bool late = !parts_.group.whole() || e.generation != parts_.group.generation();
    if (parts_.lifecycle.collective() && late) return;
    return work.send(e.member, parts_.group.generation(), parts_.phases.as_it_stands(open));
  }
  const bool trained = parts_.records.ledger().committed() > 0;  // the phase may have been cut
  if (said.phase == open.phase && open.what == wire::PhaseKind::kTrain && trained) {
    if (auto told = parts_.series.member_done(open.epoch, work.now)) {
      work.note("epoch", std::move(*told));
    }
  }
  if (e.generation == parts_.group.generation()) {
    work.then(lifecycle::WorkerDone{e.member, said.phase});
  }
}

void Messages::hear(const WorkerSaid& e, const wire::Metrics& said, Work& work) {
  switch (parts_.vitals.heard(e.member, said.sum, work.now)) {
    case IoMoved::kNothing:
      break;
    case IoMoved::kWritten:
      work.then(lifecycle::CheckpointBytesMoved{});
      break;
    // A member reads a checkpoint or receives a state, and bytes arrive. The members that wait for
    // it, or that cannot become ready before they have the state, are given more time.
    case IoMoved::kHeldUpFor:
      parts_.group.state_moves(work);
      break;
    // Those that are waited for with it may share its disk, or wait for the index that it makes.
    case IoMoved::kOpened:
      if (parts_.group.awaits(e.member)) parts_.group.state_moves(work);
      break;
  }
  if (parts_.devices.ran_out(e.member, said.sum.max_micro_batch)) {
    work.note("memory", fmt::format("{} ran out of its device's memory: from now on it computes at "
                                    "most {} samples at once",
                                    e.member.worker, said.sum.max_micro_batch));
    work.save_image();
  }
  parts_.times.measured(e.member.worker, said);
  parts_.traffic.told(e.member, said.sum.traffic);
  parts_.history.measured(e.member, said.sum);
  const bool batches = said.sum.batches > 0 || said.sum.skipped > 0;
  if (batches || said.sum.hops > 0 || said.probe.looked_us > 0) {
    work.then(control::MetricsReported{{e.member, said}});
  }
}

void Messages::hear(const WorkerSaid& e, const wire::PsStats& said, Work& work) {
  if (e.member.worker.role != 's') return;
  const ServerRole role = parts_.servers.placement().role_of(e.member);
  if (parts_.server_stats.said(e.member.worker, said, role)) work.save_image();
  work.then(control::ServerMetricsReported{e.member, said.requests, said.busy_us});
}

void Messages::hear(const WorkerSaid& e, const wire::Traced& said, Work& work) {
  const Step before = parts_.traced.ranks().progress().step;
  parts_.traced.hear(e.member, said, work);
  const Step now = parts_.traced.ranks().progress().step;
  if (now > before) work.then(lifecycle::StepCompleted{now});
}

void Messages::hear(const WorkerSaid& e, const wire::StackTold& said, Work& work) {
  parts_.traced.hear(e.member, said, work);
}

void Messages::hear(const WorkerSaid& e, const wire::Bye& said, Work& work) {
  parts_.times.left(e.member.worker, said);
  parts_.traffic.told(e.member, said.traffic);
  if (!said.error.empty()) {
    work.note("worker-error", fmt::format("{}: {}", e.member.worker, said.error));
  }
}

// -------------------------------------------------------------------- checkpoints

void Messages::hear(const WorkerSaid& e, const wire::CheckpointBegun& said, Work& work) {
  parts_.checkpoints.begun(e.member, e.generation, said, work);
}

void Messages::hear(const WorkerSaid& e, const wire::CheckpointWritten& said, Work& work) {
  parts_.checkpoints.written(e.member, e.generation, said, work);
}

void Messages::hear(const WorkerSaid& e, const wire::PsSaved& said, Work& work) {
  work.then(servers::SlicesSaved{e.member, e.generation, said});
}

}  // namespace antdt::ctl::job
