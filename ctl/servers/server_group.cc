#include "ctl/servers/server_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "ctl/servers/serve_order.h"

namespace antdt::ctl::servers {
namespace {

constexpr Duration kReleaseAgain = std::chrono::seconds(2);
constexpr Duration kRostersAgain = std::chrono::seconds(2);

}  // namespace

ServerGroup::ServerGroup(ServerGroupConfig config)
    : config_(std::move(config)), placement_(config_.servers, config_.replicas) {}

void ServerGroup::step(const Input& input, MonoTime now, Effects& out) {
  now_ = now;
  std::visit([&](const auto& e) { on(e, out); }, input);
  check_invariants();
}

void ServerGroup::check_invariants() const {
  const bool seated = !placement_.replica_sets().empty();
  ANTDT_CHECK(seated == (state_ != State::kGathering) || placement_.count() == 0,
              "generation {}: {} replica_sets in state {}", generation_,
              placement_.replica_sets().size(), static_cast<int>(state_));
  ANTDT_CHECK(state_ == State::kGathering || rows_.is_known(),
              "generation {} was formed, and it is not known from where its rows are", generation_);
  ANTDT_CHECK(!closing() || state_ == State::kServing,
              "checkpoint {} is the last of generation {}, which does not serve", cut_.last(),
              generation_);
  placement_.check_invariants();
  workers_.check_invariants();
}

// ------------------------------------------------------------------------- image

ServerGroupImage ServerGroup::image() const {
  ServerGroupImage image;
  image.generation = generation_;
  image.state = static_cast<std::uint8_t>(state_);
  image.state_lost = !rows_.is_known();
  image.servers = placement_.joined();
  image.workers = all_to_wire(workers_.present());
  image.leaving = all_to_wire(workers_.leaving());
  image.number = briefing_.number();
  image.restore = rows_.restore();
  image.version = rows_.version();
  image.cut = cut_.number();
  image.backups = backups_;
  image.rate = rate_;
  std::vector<Member> members;
  for (const GroupServer& s : placement_.joined()) members.push_back(s.member());
  std::ranges::copy(workers_.present(), std::back_inserter(members));
  image.keys = roll_.keys_of(members);
  image.replica_sets = placement_.replica_sets();
  image.keepers = all_to_wire(rows_.keepers());
  image.count = placement_.count();
  image.fewest = fewest_;
  return image;
}

// If the image is of an impossible group, the group is over and what it held is lost.
void ServerGroup::restore(const ServerGroupImage& image, Generation at_least) {
  generation_ = std::max(image.generation, at_least);
  state_ = image.generation == generation_ ? static_cast<State>(image.state) : State::kGathering;
  rows_.restore_image(image);
  if (!placement_.restore(image, state_ != State::kGathering, roll_)) {
    if (state_ == State::kServing) rows_.lose();
    state_ = State::kGathering;
  }
  briefing_.restore(image.number);
  workers_.restore(all_from_wire(image.workers), all_from_wire(image.leaving), briefing_.number());
  for (const wire::PsKey& k : image.keys) roll_.note_key({k.worker, k.attempt}, k.key);
  backups_ = image.backups;
  rate_ = image.rate;
  cut_.restore(image.cut);
  fewest_ = image.fewest;
}

// -------------------------------------------------------------------- its members

void ServerGroup::on(const ProcessesExpected& e, Effects& out) {
  roll_.expect(e);
  patience_.expect(roll_, now_);
  form_if_complete(out);
}

void ServerGroup::on(const GroupJoinRequested& e, Effects& out) {
  if (!roll_.may_join(e.member)) return;
  roll_.note_key(e.member, e.key);
  if (e.member.worker.role == 's') return server_joined(e, out);
  if (e.fewest_servers > fewest_) {
    fewest_ = e.fewest_servers;
    out.emplace_back(PersistGroup{});
  }
  roll_.worker_joined(e.member);
  if (state_ == State::kGathering) return form_if_complete(out);
  if (!workers_.has(e.member)) {
    workers_.add(e.member, briefing_.number() + 1);
    return tell_servers(out);
  }
  if (!workers_.is_admitted(e.member)) return;
  if (!e.problem.empty()) {
    if (rows_.may_ask_again(e.trouble)) return slices_unread(e, out);
    auto trouble = workers_.note_trouble(e, now_, config_.host_lost_after);
    // It tries again a while later, and repeats its join until then.
    if (!trouble) return;
    out.emplace_back(std::move(*trouble));
  }
  out.emplace_back(AdmitWorker{e.member});
}

// From: any. To: the same; kGathering, if it is a new attempt of a process of the group.
void ServerGroup::server_joined(const GroupJoinRequested& e, Effects& out) {
  if (const GroupServer* known = placement_.find(e.member)) {
    // The process has not heard which group it serves.
    if (placement_.replica_set_with(e.member) != nullptr) say(*known, out);
    return;
  }
  if (placement_.has_part(e.member.worker)) dissolve("a server began anew", out);
  placement_.add({e.member.worker, e.member.attempt, e.endpoint});
  if (state_ == State::kGathering) {
    rows_.forget_keepers([&](Member m) { return placement_.find(m) == nullptr; });
  }
  out.emplace_back(PersistGroup{});
  let_join(out);
  form_if_complete(out);
}

// From: kGathering, when all expected processes have joined. To: kForming; kGathering, until it is
// known where its rows come from.
void ServerGroup::form_if_complete(Effects& out) {
  if (state_ != State::kGathering || roll_.workers().empty()) return;
  if (!placement_.can_assign(roll_) || !missing().empty()) return;
  if (!rows_.is_known()) {
    if (rows_.ask_once()) out.emplace_back(std::exchange(question_, {}));
    return;
  }
  generation_ = generation_.next();
  state_ = State::kForming;
  briefing_.begin_group();
  placement_.assign(roll_);
  workers_.begin(roll_.workers());
  tell_servers(out);
}

void ServerGroup::on(const RestoreChosen& e, Effects& out) {
  rows_.choose(e);
  out.emplace_back(PersistGroup{});
  form_if_complete(out);
}

// From: any. To: kGathering; the next group begins with a checkpoint.
void ServerGroup::on(const RowsVoid& e, Effects& out) {
  if (state_ != State::kGathering) dissolve(e.reason, out);
  rows_.lose();
  out.emplace_back(PersistGroup{});
  form_if_complete(out);
}

void ServerGroup::on(const GroupMemberLost& e, Effects& out) {
  roll_.lose(e.member);
  if (e.member.worker.role == 's') return lose_server(e, out);
  if (state_ == State::kGathering) return workers_.forget(e.member);
  if (!workers_.lose(e.member)) return;
  give_up_cut(fmt::format("{} was lost while it was written", e.member.worker), out);
  tell_servers(out);
}

// From: kServing. To: kGathering. The next group begins with a checkpoint, also those servers that
// kept rows: some may have read theirs, and some worker may have trained with them.
void ServerGroup::slices_unread(const GroupJoinRequested& e, Effects& out) {
  question_ = {fmt::format("servers cannot read the checkpoint {}: {}", rows_.restore(), e.problem),
               rows_.restore(), e.trouble == Trouble::kCheckpoint};
  dissolve(question_.unread, out);
  rows_.keep({});
  roll_.worker_joined(e.member);
  form_if_complete(out);
}

// ------------------------------------------------------------------------- losses

// From: kServing. To: kServing, with the other process of its server; otherwise kGathering. From:
// kForming. To: kGathering, because the other process may not have heard what the lost one had.
void ServerGroup::lose_server(const GroupMemberLost& e, Effects& out) {
  if (placement_.find(e.member) == nullptr) return;
  const bool goes_on = state_ == State::kServing && placement_.survives(e.member);
  if (!goes_on && placement_.replica_set_with(e.member) != nullptr) dissolve(e.reason, out);
  if (goes_on) {
    const auto report = placement_.switch_from(e.member);
    if (report && report->promoted) {
      // No answer is lost, but the checkpoint that a primary was writing is.
      give_up_cut(fmt::format("{} was lost while it was written", e.member.worker), out);
    }
    if (report) out.emplace_back(*report);
  }
  placement_.remove(e.member);
  if (state_ == State::kGathering) {
    rows_.forget_keepers([&](Member m) { return placement_.find(m) == nullptr; });
  }
  out.emplace_back(PersistGroup{});
  if (!goes_on) return;
  tell_servers(out);
  let_join(out);
}

// From: kForming, kServing. To: kGathering. A group that never served has lost nothing.
void ServerGroup::dissolve(const std::string& reason, Effects& out) {
  give_up_cut(reason, out);
  cut_.end_group();
  const bool served = state_ == State::kServing;
  if (served) {
    std::vector<Member> keepers;
    for (const ReplicaSet& set : placement_.replica_sets()) {
      if (config_.keeps_rows) keepers.push_back(placement_.primary_of(set));
    }
    rows_.keep(std::move(keepers));
    rows_.lose();
    roll_.forget_joins();
  }
  state_ = State::kGathering;
  released_ = now_;
  patience_.begin_anew(now_);
  DissolveGroup over{generation_, workers_.present(), reason};
  workers_.clear();
  briefing_.end_group();
  placement_.clear_seats();
  out.emplace_back(PersistGroup{});
  if (served) out.emplace_back(std::move(over));
}

std::vector<Member> ServerGroup::keepers() const {
  std::vector<Member> there;
  for (const Member m : rows_.keepers()) {
    if (placement_.find(m) != nullptr && roll_.may_serve(m)) there.push_back(m);
  }
  return there;
}

// A server that is a single process gets another one, if one has joined.
void ServerGroup::let_join(Effects& out) {
  if (state_ != State::kServing) return;
  const std::vector<Member> joining = placement_.let_join(roll_);
  for (const Member m : joining) briefing_.forget(m);
  if (!joining.empty()) tell_servers(out);
}

// ---------------------------------------------------------------- how they work

void ServerGroup::on(const TermsSet& e, Effects& out) {
  const bool changed =
      e.backups.value_or(backups()) != backups() || e.rate.value_or(rate_) != rate_;
  if (!changed) return;
  if (e.backups) backups_ = e.backups;
  rate_ = e.rate.value_or(rate_);
  tell_servers(out);
}

// ------------------------------------------------------------------- checkpoints

void ServerGroup::on(const CutOrdered& e, Effects& out) {
  give_up_cut("another one was ordered", out);
  cut_.order(e.number);
  if (state_ != State::kServing) return give_up_cut("no servers serve the model now", out);
  if (e.last) {
    cut_.make_last();
    return tell_servers(out);
  }
  out.emplace_back(PersistGroup{});
  say_cut(out);
}

void ServerGroup::on(const SlicesSaved& e, Effects& out) {
  const bool ours =
      cut_.is_under_way() && e.said.number == cut_.number() && e.generation == generation_;
  if (!ours || state_ != State::kServing || placement_.replica_set_with(e.server) == nullptr)
    return;
  auto done = cut_.save(e.server, e.said, placement_.replica_sets().size(), generation_);
  if (!done) return;
  out.emplace_back(PersistGroup{});
  out.emplace_back(std::move(*done));
}

void ServerGroup::give_up_cut(const std::string& why, Effects& out) {
  if (!cut_.is_under_way()) return;
  ConcludeCut done = cut_.give_up(why);
  out.emplace_back(PersistGroup{});
  out.emplace_back(std::move(done));
}

// From: any. To: kGathering, with another number of servers. Rows that a server kept would belong
// to other slices than the ones that it is to have.
void ServerGroup::on(const GroupResized& e, Effects& out) {
  const bool formed = state_ != State::kGathering;
  if (formed) dissolve(fmt::format("it is placed on {} servers now", e.count), out);
  placement_.set_count(e.count);
  rows_.forget_keepers([](Member) { return true; });
  out.emplace_back(PersistGroup{});
}

void ServerGroup::on(const ResizeAbandoned&, Effects& out) {
  if (cut_.abandon_last()) tell_servers(out);
}

// ------------------------------------------------------------- what servers know

// All servers of the group have to hear something new. If no group is formed, they hear it in the
// next one.
void ServerGroup::tell_servers(Effects& out) {
  out.emplace_back(PersistGroup{});
  if (state_ == State::kGathering) return;
  briefing_.begin_next();
  patience_.begin_anew(now_);
  for (const GroupServer& server : placement_.processes_with_part()) say(server, out);
}

void ServerGroup::say(const GroupServer& server, Effects& out) {
  const Member to = server.member();
  const ServeTerms terms{config_.sync, briefing_.number(), backups(), rate_, cut_.last()};
  const wire::PsServe serve = serve_order(server, terms, placement_, workers_, rows_, roll_);
  // A server reads its slices only once in a group, when it first hears of the group. So if it has
  // answered once, the checkpoint is on its host already. A server that joins while the group
  // serves receives the rows from its primary.
  const bool reads = state_ == State::kForming && !serve.restore.empty() && !serve.keep &&
                     !briefing_.has_heard_any(to);
  briefing_.said(to, now_);
  out.emplace_back(SendServe{to, generation_, serve, reads});
}

void ServerGroup::on(const ServeAnswered& e, Effects& out) {
  if (state_ == State::kGathering || e.generation != generation_) return;
  if (placement_.replica_set_with(e.server) == nullptr || e.said.number > briefing_.number())
    return;
  for (const wire::PsPlaces& places : e.said.left) {
    if (!workers_.settle({places.worker, places.attempt})) continue;
    out.emplace_back(PersistGroup{});
    out.emplace_back(SettleLeaver{places});
  }
  briefing_.heard(e.server, e.said.number);
  serve_or_admit(out);
  if (cut_.is_last() && !cut_.is_said()) say_cut(out);
  if (state_ != State::kServing) return;
  const auto backed = placement_.count_backup(e.server, e.said.backed);
  if (!backed) return;
  out.emplace_back(*backed);
  tell_servers(out);
  rosters_said_.reset();
  say_rosters(out);
}

// From: kForming, when all servers have heard of the group. To: kServing. From: kServing. To: the
// same; admits the workers of which all servers have heard.
void ServerGroup::serve_or_admit(Effects& out) {
  const std::uint64_t heard = briefing_.heard_by_all(placement_.processes_with_part());
  if (state_ == State::kServing) {
    for (const Member m : workers_.admit(heard)) out.emplace_back(AdmitWorker{m});
    return;
  }
  if (heard < briefing_.number()) return;
  state_ = State::kServing;
  workers_.admit_all();
  out.emplace_back(PersistGroup{});
  out.emplace_back(OpenGroup{generation_, workers_.admitted()});
  let_join(out);
}

// Sent to the primaries that have not written it.
void ServerGroup::say_cut(Effects& out) {
  if (!workers_.leaving().empty()) return;
  const bool all_know =
      briefing_.heard_by_all(placement_.processes_with_part()) >= briefing_.number();
  if (cut_.is_last() && !all_know) return;
  cut_.said(now_);
  for (const ReplicaSet& set : placement_.replica_sets()) {
    const Member server = placement_.primary_of(set);
    if (cut_.has_saved(server)) continue;
    out.emplace_back(SendCut{server, generation_, cut_.order_in(generation_)});
  }
}

// If no process was replaced, workers know where the servers are.
void ServerGroup::say_rosters(Effects& out) {
  if (state_ != State::kServing || placement_.is_as_it_began()) return;
  if (rosters_said_ && now_ - *rosters_said_ < kRostersAgain) return;
  rosters_said_ = now_;
  out.emplace_back(SendRosters{workers_.admitted()});
}

wire::PsRoster ServerGroup::roster() const {
  wire::PsRoster roster;
  roster.servers = placement_.endpoints();
  for (const ReplicaSet& set : placement_.replica_sets()) {
    roster.keys.push_back(roll_.key_of(placement_.primary_of(set)));
  }
  for (const std::optional<Member> backup : placement_.backups()) {
    roster.others.push_back(backup ? placement_.find(*backup)->endpoint : std::string());
    roster.other_keys.push_back(backup ? roll_.key_of(*backup) : std::string());
  }
  roster.number = briefing_.number();
  return roster;
}

// --------------------------------------------------------------------------- time

std::vector<Member> ServerGroup::missing() const {
  std::vector<Member> missing;
  if (state_ == State::kGathering) {
    std::ranges::copy_if(roll_.servers(), std::back_inserter(missing),
                         [&](Member m) { return placement_.find(m) == nullptr; });
    std::ranges::copy(roll_.absent_workers(), std::back_inserter(missing));
    return missing;
  }
  for (const GroupServer& s : placement_.processes_with_part()) {
    if (!briefing_.has_heard_newest(s.member())) missing.push_back(s.member());
  }
  return missing;
}

bool ServerGroup::awaits(Member member) const {
  if (state_ != State::kGathering) return false;
  const std::vector<Member> members = missing();
  return std::ranges::find(members, member) != members.end();
}

std::string ServerGroup::waiting_for() const {
  const std::vector<Member> members = missing();
  const bool nobody_waits = state_ == State::kServing && workers_.leaving().empty();
  if (members.empty() && state_ == State::kGathering && rows_.is_asked_for()) {
    return "the checkpoint from which training goes on";
  }
  if (members.empty() || nobody_waits) return "";
  std::string text;
  for (const Member m : members) text += fmt::format("{} ", m.worker);
  return text + (state_ == State::kGathering ? "to join" : "to answer who is in the group");
}

void ServerGroup::on(const RestoreAdvanced&, Effects&) { patience_.begin_anew(now_); }

void ServerGroup::on(const TimePassed&, Effects& out) {
  const bool gathers = state_ == State::kGathering;
  const Duration patience =
      gathers ? std::max(config_.hang_after, Patience::kStart) : config_.hang_after;
  for (const Member member : patience_.silent(missing(), patience, now_)) {
    out.emplace_back(EndSilentMember{
        member, fmt::format("the others have waited {:.0f} s for it {}", to_seconds(patience),
                            gathers ? "to join" : "to answer who is in the group")});
  }
  if (!gathers) return repeat_orders(out);
  // A worker that has not heard that the group is over waits for servers that are gone.
  if (generation_ != Generation{} && now_ - released_ >= kReleaseAgain) {
    released_ = now_;
    RepeatDissolve again{generation_, roll_.absent_workers()};
    if (!again.workers.empty()) out.emplace_back(std::move(again));
  }
  form_if_complete(out);
}

void ServerGroup::repeat_orders(Effects& out) {
  for (const GroupServer& server : placement_.processes_with_part()) {
    const Member to = server.member();
    const ReplicaSet& set = *placement_.replica_set_with(to);
    // A home's answer about a leaving worker may have been lost although a later answer was heard.
    // Also, a primary reports here when it is backed.
    const bool has_more_to_say =
        !workers_.leaving().empty() || (set.joining && server.worker == set.primary);
    const bool knows = briefing_.has_heard_newest(to) && !has_more_to_say;
    if (!knows && briefing_.is_repeat_due(to, now_)) say(server, out);
  }
  say_rosters(out);
  if (cut_.is_due(now_)) say_cut(out);
}

}  // namespace antdt::ctl::servers
