#include "ctl/job/group/ring_group.h"

#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

Generation RingGroup::generation() const { return parts_.membership.generation(); }

bool RingGroup::whole() const { return parts_.membership.settled(); }

std::vector<Member> RingGroup::members() const {
  std::vector<Member> all = parts_.members.loose();
  for (const ExpectedMember& e : parts_.membership.members()) all.push_back(e.member);
  return all;
}

std::optional<std::vector<Member>> RingGroup::restored() {
  settled_ = parts_.membership.settled() && !parts_.membership.members().empty();
  if (!settled_) return std::nullopt;
  std::vector<Member> group;
  for (const ExpectedMember& e : parts_.membership.members()) group.push_back(e.member);
  return group;
}

void RingGroup::recover(Work& work) {
  if (!parts_.membership.settled()) return;
  std::vector<Monitor::MemberInfo> group;
  std::vector<Member> members;
  for (const ExpectedMember& e : parts_.membership.members()) {
    group.push_back(parts_.members.info_of(e.member, e.host));
    group.back().rank = static_cast<std::uint32_t>(group.size() - 1);
    members.push_back(e.member);
  }
  work.then(control::GroupFormed{group, parts_.members.rests_of(members)});
}

void RingGroup::finish_recovery(Work& work) {
  if (parts_.membership.settled()) parts_.watching.expect_steps(work);
  const wire::PhaseStart phase = parts_.lifecycle.phase();
  const bool hears = parts_.membership.settled() || !parts_.lifecycle.collective();
  if (phase.phase > 0 && hears) {
    parts_.members.send_to_group(parts_.phases.as_it_stands(phase), work);
  }
  parts_.phases.tell_if_drained(work);
}

void RingGroup::expect(Work& work) {
  membership::MembersExpected expected;
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (!w.running() || w.is_server()) continue;
    const std::string host = parts_.members.host_name(w.place.host);
    expected.members.push_back(
        {w.member(), host, w.place.host_order, parts_.config.domains.of(w.place.worker, host)});
  }
  work.then(std::move(expected));
}

bool RingGroup::takes(const wire::Join& join) const {
  return join.collective && !parts_.config.spec.external;
}

void RingGroup::join(Member member, Generation generation, const wire::Join& join, Work& work) {
  work.then(membership::MemberJoined{member, generation, join});
}

void RingGroup::release(const lifecycle::ReleaseWorker& gone, Work& work) {
  if (parts_.lifecycle.collective()) {
    if (gone.suspect) parts_.suspicions.add_member(gone.member);
    work.then(membership::MemberGone{gone.member, gone.reason, gone.in_order, gone.suspect});
  } else if (parts_.members.remove_loose(gone.member)) {
    parts_.records.step(shard_server::ledger::MemberLost{gone.member}, work);
  }
}

void RingGroup::tick(Work& work) { work.then(membership::TimePassed{}); }

void RingGroup::stuck(const std::string& why, Work& work) {
  work.then(membership::CollectiveStuck{why});
}

bool RingGroup::awaits(Member member) const { return parts_.membership.awaits(member); }

void RingGroup::state_moves(Work& work) { work.then(membership::StateMoved{}); }

// The members count the phase's records, so the members of the next generation are told the new
// number.
void RingGroup::records_skipped(Work& work) {
  work.then(membership::CollectiveStuck{"records of this phase are skipped"});
}

void RingGroup::order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) {
  parts_.members.send_to_group(wire::CheckpointOrder{order.number}, work);
}

bool RingGroup::may_write_checkpoint(Generation generation) const {
  return generation == parts_.membership.base();
}

// ------------------------------------------------------------------------ effects

void RingGroup::carry_out(const membership::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 [&](const membership::PersistGeneration&) { work.save_image(); },
                 [&](const membership::SendForm& e) {
                   const bool reads = e.form.rank == e.form.reader;
                   work.send_to_reader(e.to, e.generation, e.form, reads ? e.form.restore : "");
                 },
                 [&](const membership::SendRoster& e) { work.send(e.to, e.generation, e.roster); },
                 [&](const membership::SettleGeneration& e) { on(e, work); },
                 [&](const membership::SendRegroup& e) {
                   work.note("regroup", e.reason);
                   for (const Member to : e.to)
                     work.send(to, e.generation, wire::Regroup{e.reason});
                 },
                 [&](const membership::SendAbort& e) {
                   for (const Member to : e.to) work.send(to, e.generation, wire::Abort{e.reason});
                 },
                 [&](const membership::ReportBroken& e) {
                   work.note("generation-broken",
                             fmt::format("generation {} is over: {}", e.generation, e.reason));
                 },
                 [&](const membership::GiveUp& e) {
                   work.then(lifecycle::JobFailed{e.exit_class, e.code, e.reason});
                 },
                 [&](const membership::RestoreState& e) {
                   if (parts_.lifecycle.outcome()) return;
                   work.say(FindCheckpoint{e.unread, e.checkpoint, e.damaged});
                 },
                 [&](const membership::EndUnresponsive& e) { on(e, work); },
                 [&](const membership::FormationStands& e) { on(e, work); },
             },
             effect);
}

void RingGroup::stepped(Work& work) {
  if (!settled_ || parts_.membership.settled()) return;
  settled_ = false;
  work.save_image();
  parts_.watching.expect_steps(work);
  work.then(lifecycle::GenerationEnded{});
}

void RingGroup::on(const membership::EndUnresponsive& silent, Work& work) {
  parts_.members.end_silent(silent.member, silent.what, parts_.membership.missing(), work);
}

// A member whose disk stands is the cause, and cannot join again either.
void RingGroup::on(const membership::FormationStands& e, Work& work) {
  const std::vector<Member> missing = parts_.membership.missing();
  const IoWatch& io = parts_.vitals.io();
  if (std::ranges::none_of(missing, [&](Member m) { return io.uses_disk(m); })) {
    return work.then(membership::FormationStuck{e.reason});
  }
  for (const Member m : missing) parts_.members.end_silent(m, e.reason, missing, work);
}

void RingGroup::on(const membership::SettleGeneration& settled, Work& work) {
  shard_server::ledger::GenerationSettled to_ledger{settled.generation, {}, {}};
  std::vector<Monitor::MemberInfo> group;
  const bool pinned = !parts_.config.pins.empty();
  for (const ExpectedMember& e : settled.members) {
    to_ledger.members.push_back(e.member);
    if (pinned) to_ledger.domains.push_back(parts_.members.domain_of(e.member));
    group.push_back(parts_.members.info_of(e.member, e.host));
    group.back().rank = static_cast<std::uint32_t>(group.size() - 1);
  }
  const shard_server::Ledger& ledger = parts_.records.ledger();
  // Places of an earlier phase are all committed, because that phase is complete.
  if (settled.phase != 0 && settled.phase == ledger.phase().number &&
      ledger.phase().kind == shard_server::PhaseKind::kTrain) {
    for (const membership::BasePlace& p : settled.places) {
      to_ledger.places.push_back({p.member, p.place, p.lost});
      if (p.lost) parts_.suspicions.add_last_steps(p.member, p.place, work);
    }
  }
  parts_.suspicions.forget_members();
  parts_.records.step(to_ledger, work);
  if (parts_.suspicions.end_job_if_shared(work)) return;
  const auto first = ledger.holders().find(to_ledger.members.front().worker);
  if (first == ledger.holders().end() || first->second.generation != settled.generation) {
    return work.then(lifecycle::JobFailed{
        ExitClass::kProgram, 1,
        fmt::format("generation {} does not fit the ledger (its log line names the member): the "
                    "trainer counted records that it was never granted",
                    settled.generation)});
  }
  settled_ = true;
  parts_.times.group_formed(to_ledger.members, work.now);
  work.remember({parts_.history.settled(settled, parts_.membership.lineage())});
  work.then(control::GroupFormed{group, parts_.members.rests_of(to_ledger.members)});
  work.then(SettlePlanned{settled});
}

wire::Settle RingGroup::settle_of(Member member, Step step) const {
  wire::Settle settle{step, parts_.controlling.plan_of(member.worker)};
  if (!parts_.is_hybrid()) return settle;
  settle.servers = parts_.servers.roster();
  settle.servers->sync = parts_.config.spec.sync;
  settle.group = parts_.servers.generation();
  return settle;
}

void RingGroup::on(const SettlePlanned& e, Work& work) {
  // there can be no plan, and the reason was reported
  if (parts_.controller.plan().entries.empty()) return;
  work.save_image();
  std::vector<Member> members;
  for (const ExpectedMember& expected : e.settled.members) {
    const Member m = expected.member;
    members.push_back(m);
    work.send(m, e.settled.generation, settle_of(m, e.settled.step));
  }
  parts_.watching.expect_steps(work);
  work.then(
      lifecycle::GenerationSettled{e.settled.generation, std::move(members), e.settled.collective});
}

// ---------------------------------------------------------------- the trained model

void RingGroup::name_writer(wire::PhaseStart& finish) const {
  const auto& group = parts_.membership.members();
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    if (group[rank].member == model_writer_) finish.writer = static_cast<std::uint32_t>(rank);
  }
  finish.tries = model_tries_;
}

// Another member writes the model: the next one on another host, if there is one, because the disk
// of this host may be the cause. A single member writes it once more: what could not be stored is
// removed. The members hear of it with the next tick.
void RingGroup::model_failed() {
  const std::vector<ExpectedMember>& group = parts_.membership.members();
  if (group.empty()) return;  // who joins writes it
  const auto writes = std::ranges::find_if(
      group, [&](const ExpectedMember& e) { return e.member == model_writer_; });
  const std::size_t now = writes == group.end() ? 0 : writes - group.begin();
  std::size_t next = (now + 1) % group.size();
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t other = (now + i) % group.size();
    if (group[other].host == group[now].host) continue;
    next = other;
    break;
  }
  model_writer_ = group[next].member;
  ++model_tries_;
  parts_.phases.say_finish_soon();
}

void RingGroup::say_finish_again(Work& work) {
  parts_.members.send_to_group(parts_.phases.as_it_stands(parts_.lifecycle.phase()), work);
}

// ------------------------------------------------------------------------ beginnings

Result<Beginning> RingGroup::beginning(const CheckpointFound& found) const {
  return from_checkpoint(parts_, found);
}

bool RingGroup::tries_again(const CheckpointFound& found, Work& work) {
  if (!parts_.membership.could_not_read(found.directory)) return false;
  work.then(membership::TrainingBegun{parts_.membership.lineage(), found.directory});
  return true;
}

Beginning from_checkpoint(const Parts& parts, const CheckpointFound& found) {
  Beginning then{found.ledger_image, found.accounts_image, found.step.value,
                 "nobody holds the training state"};
  if (found.directory.empty()) {
    then.ledger = shard_server::Ledger(parts.config.ledger).image();
    then.accounts = parts.records.accounts().before_training().image();
  }
  return then;
}

}  // namespace antdt::ctl::job
