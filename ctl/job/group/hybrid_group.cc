#include "ctl/job/group/hybrid_group.h"

#include <utility>

#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

// Servers whose rows are kept may have left before the members.
bool HybridGroup::whole() const {
  return ring_.whole() && (parts_.servers.serving() || parts_.lifecycle.model_kept());
}

std::optional<std::vector<Member>> HybridGroup::restored() {
  auto group = ring_.restored();
  if (!parts_.servers.serving()) return std::nullopt;
  return group;
}

// The turn in which one of the two lost what it had may be the last of an incarnation.
void HybridGroup::recover(Work& work) {
  if (parts_.lifecycle.model_kept()) return ring_.recover(work);
  const bool has_base = parts_.membership.base() != Generation{};
  if (has_base && !parts_.servers.serving()) {
    const std::string why = "the servers that held the rows are given up";
    work.then(membership::StateLost{why});
    work.then(servers::RowsVoid{why});
  }
  ring_.recover(work);
}

void HybridGroup::expect(Work& work) {
  servers::ProcessesExpected expected;
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (!w.running()) continue;
    (w.is_server() ? expected.servers : expected.workers).push_back(w.member());
  }
  work.then(std::move(expected));
  work.then(membership::FormationAllowed{parts_.servers.serving()});
  ring_.expect(work);
}

void HybridGroup::join(Member member, Generation generation, const wire::Join& join, Work& work) {
  // What hinders a member in a generation that has settled are its servers, else the other members.
  // A join is repeated until all others have joined.
  bool of_servers = generation != Generation{} && generation == parts_.membership.base();
  if (member.worker.role != 's') {
    Joined& last = joined_[member];
    const bool is_known = last.let_in && last.generation == generation;
    of_servers = of_servers && !is_known;
    last = {generation, join, is_known};
  }
  work.then(servers::GroupJoinRequested{member, join.endpoint, join.key,
                                        of_servers ? join.problem : std::string(),
                                        servers::trouble_in(join)});
}

void HybridGroup::let_join(Member worker, Work& work) {
  const auto said = joined_.find(worker);
  if (said == joined_.end()) return;
  said->second.let_in = true;
  work.then(membership::MemberJoined{worker, said->second.generation, said->second.join});
}

void HybridGroup::release(const lifecycle::ReleaseWorker& gone, Work& work) {
  joined_.erase(gone.member);
  work.then(servers::GroupMemberLost{gone.member, gone.reason});
  if (gone.member.worker.role != 's') ring_.release(gone, work);
}

void HybridGroup::tick(Work& work) {
  work.then(servers::TimePassed{});
  ring_.tick(work);
}

bool HybridGroup::awaits(Member member) const {
  return parts_.servers.awaits(member) || ring_.awaits(member);
}

void HybridGroup::state_moves(Work& work) {
  work.then(servers::RestoreAdvanced{});
  ring_.state_moves(work);
}

void HybridGroup::order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) {
  work.then(servers::CutOrdered{order.number, false});
  ring_.order_checkpoint(order, work);
}

// The order to write the model, or to leave, may have been lost with an incarnation of the job
// daemon.
void HybridGroup::say_finish_again(Work& work) {
  if (parts_.lifecycle.model_kept()) {
    return parts_.members.send_to_group(wire::Leave{kDone, 0}, work);
  }
  ring_.say_finish_again(work);
  const std::uint64_t ordered = parts_.servers.cut();
  if (ordered != 0) parts_.members.send_to_group(wire::CheckpointOrder{ordered}, work);
}

// In the turn in which Membership begins again as well.
void HybridGroup::begin(const std::string& checkpoint, std::uint64_t version, Work& work) {
  work.then(servers::RestoreChosen{checkpoint, version});
}

// What the servers have read is of the checkpoint that the members could not read. If training goes
// on from another one, it is looked for when the servers have dropped that.
bool HybridGroup::tries_again(const CheckpointFound& found, Work& work) {
  const bool waits = parts_.membership.state() == Membership::State::kRestoring;
  if (!waits || !parts_.servers.serving()) return false;
  if (!ring_.tries_again(found, work)) {
    work.then(servers::RowsVoid{"no member can read what the rows belong to"});
  }
  return true;
}

// ------------------------------------------------------------------------ effects

void HybridGroup::carry_out(const membership::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 // The checkpoint is looked for when the servers have dropped their rows.
                 [&](const membership::RestoreState& e) {
                   if (!e.unread.empty()) return ring_.carry_out(e, work);
                   work.then(servers::RowsVoid{"no member holds the training state"});
                 },
                 // While the servers do not serve, nobody is let in.
                 [&](const membership::EndUnresponsive& e) {
                   if (parts_.servers.serving()) ring_.carry_out(e, work);
                 },
                 [&](const auto& e) { ring_.carry_out(e, work); },
             },
             effect);
}

void HybridGroup::carry_out(const servers::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 [&](const servers::PersistGroup&) { work.save_image(); },
                 [&](const servers::SendServe& e) {
                   work.send_to_reader(e.to, e.generation, e.serve, e.reads ? e.serve.restore : "");
                 },
                 [&](const servers::SendCut& e) { work.send(e.to, e.generation, e.cut); },
                 [&](const servers::OpenGroup& e) {
                   work.note("servers", fmt::format("{} servers hold the rows",
                                                    parts_.servers.roster().servers.size()));
                   work.then(membership::FormationAllowed{true});
                   for (const Member worker : e.workers) let_join(worker, work);
                 },
                 [&](const servers::AdmitWorker& e) { let_join(e.worker, work); },
                 // Membership settles which of its records count.
                 [&](const servers::SettleLeaver&) {},
                 [&](const servers::DissolveGroup& e) {
                   work.then(membership::FormationAllowed{false});
                   if (parts_.lifecycle.model_kept()) return;  // the workers leave
                   work.note("generation-broken",
                             fmt::format("the servers of group {} are given up: {}", e.generation,
                                         e.reason));
                   joined_.clear();
                   work.then(membership::StateLost{e.reason});
                 },
                 [&](const servers::RepeatDissolve&) {},  // Membership repeats its Abort
                 [&](const servers::EndSilentMember& e) {
                   parts_.members.end_silent(e.member, e.what, parts_.servers.missing(), work);
                 },
                 [&](const servers::ChooseRestore& e) {
                   if (parts_.lifecycle.outcome()) return;
                   work.say(FindCheckpoint{e.unread, e.checkpoint, e.damaged});
                 },
                 [&](const servers::ConcludeCut& e) { parts_.checkpoints.slices(e, work); },
                 // No server of such a job has two processes or is moved.
                 [&](const servers::ReportSwitch&) {},
                 [&](const servers::ReportBackup&) {},
                 [&](const servers::SendRosters&) {},
                 [&](const servers::ReportTrouble& e) { parts_.members.report(e, work); },
             },
             effect);
}

}  // namespace antdt::ctl::job
