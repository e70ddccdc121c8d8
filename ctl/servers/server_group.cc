#include "ctl/servers/server_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace antdt::ctl {
namespace {

constexpr Duration kSayAgain = std::chrono::milliseconds(500);
constexpr Duration kAskForCutAgain = std::chrono::seconds(2);
constexpr Duration kReleaseAgain = std::chrono::seconds(2);
// A join is said again until it is answered: what comes sooner is the same trouble.
constexpr Duration kSameTrouble = std::chrono::seconds(5);
constexpr std::uint32_t kTroubles = 5;
// A process that begins reads programs and data first.
constexpr Duration kStartPatience = std::chrono::seconds(60);

wire::PsMember to_wire(Member member) { return {member.worker, member.attempt}; }
Member from_wire(const wire::PsMember& m) { return {m.worker, m.attempt}; }

template <class Members>
std::vector<wire::PsMember> all_to_wire(const Members& members) {
  std::vector<wire::PsMember> all;
  std::ranges::transform(members, std::back_inserter(all), to_wire);
  return all;
}

}  // namespace

servers::Effects ServerGroup::step(const servers::Event& event, MonoTime now) {
  now_ = now;
  Effects out;
  std::visit([&](const auto& e) { on(e, out); }, event);
  return out;
}

// ------------------------------------------------------------------------ image

ServerGroupImage ServerGroup::image() const {
  ServerGroupImage image;
  image.generation = generation_;
  image.state = static_cast<std::uint8_t>(state_);
  image.state_lost = state_lost_;
  image.servers = servers_;
  for (const auto& [member, worker] : workers_) image.workers.push_back(to_wire(member));
  image.leaving = all_to_wire(leaving_);
  image.number = number_;
  image.restore = restore_;
  image.version = version_;
  image.cut = cut_ ? cut_->number : 0;
  image.backups = backups_;
  image.rate = rate_;
  image.keys = keys_of_group();
  image.seats = seats_;
  image.keepers = all_to_wire(keepers_);
  image.count = count_;
  return image;
}

// Which servers have heard what is not known any more: a new number asks them all, and tells
// them that no checkpoint is the last.
void ServerGroup::restore(const ServerGroupImage& image, Generation at_least) {
  generation_ = std::max(image.generation, at_least);
  if (image.count > 0) count_ = image.count;
  state_ = image.generation == generation_ ? static_cast<State>(image.state) : State::kGathering;
  state_lost_ = image.state_lost;
  servers_ = image.servers;
  std::ranges::transform(image.keepers, std::back_inserter(keepers_), from_wire);
  if (state_ != State::kGathering) {
    seats_ = image.seats;
    if (seats_.empty() && can_seat()) seat_servers();  // written before there were any
    if (!seats_are_sound()) {
      state_lost_ = state_lost_ || state_ == State::kServing;
      state_ = State::kGathering;
      seats_.clear();
    }
  }
  number_ = image.number + 1;
  for (const wire::PsMember& m : image.workers) workers_[from_wire(m)].from_number = number_;
  std::ranges::transform(image.leaving, std::back_inserter(leaving_), from_wire);
  for (const wire::PsKey& k : image.keys) keys_[{k.worker, k.attempt}] = k.key;
  restore_ = image.restore;
  version_ = image.version;
  backups_ = image.backups;
  rate_ = image.rate;
  if (image.cut != 0) cut_ = Cut{image.cut, {}, {}};
}

// ------------------------------------------------------------------- membership

std::vector<Member> ServerGroup::workers() const {
  std::vector<Member> admitted;
  for (const auto& [member, worker] : workers_) {
    if (worker.admitted) admitted.push_back(member);
  }
  return admitted;
}

std::vector<Member> ServerGroup::present() const {
  std::vector<Member> all;
  for (const auto& [member, worker] : workers_) all.push_back(member);
  return all;
}

bool ServerGroup::is_admitted(Member worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.admitted;
}

std::string ServerGroup::key_of(Member member) const {
  const auto found = keys_.find(member);
  return found == keys_.end() ? std::string() : found->second;
}

const GroupServer* ServerGroup::find_server(Member member) const {
  const auto found = std::ranges::find(servers_, member, &GroupServer::member);
  return found == servers_.end() ? nullptr : &*found;
}

bool ServerGroup::is_expected(Member member) const {
  const auto& all = member.worker.role == 's' ? expected_servers_ : expected_workers_;
  return std::ranges::find(all, member) != all.end();
}

bool ServerGroup::may_join(Member member) const {
  return is_expected(member) || std::ranges::find(added_, member) != added_.end();
}

std::vector<Member> ServerGroup::missing() const {
  std::vector<Member> missing;
  if (state_ == State::kGathering) {
    for (const Member m : expected_servers_) {
      if (find_server(m) == nullptr) missing.push_back(m);
    }
    for (const Member m : expected_workers_) {
      if (!joined_.contains(m)) missing.push_back(m);
    }
  } else {
    for (const GroupServer& s : seated()) {
      const auto heard = heard_.find(s.member());
      if (heard == heard_.end() || heard->second < number_) missing.push_back(s.member());
    }
  }
  return missing;
}

std::string ServerGroup::waiting_for() const {
  const std::vector<Member> members = missing();
  if (members.empty() || (state_ == State::kServing && leaving_.empty())) return "";
  std::string text;
  for (const Member m : members) text += fmt::format("{} ", m.worker);
  return text + (state_ == State::kGathering ? "to join" : "to answer who is in the group");
}

void ServerGroup::on(const servers::Expect& e, Effects& out) {
  expected_servers_ = e.servers;
  expected_workers_ = e.workers;
  added_ = e.added;
  std::erase_if(expected_since_, [&](const auto& known) { return !is_expected(known.first); });
  for (const Member m : e.servers) expected_since_.try_emplace(m, now_);
  for (const Member m : e.workers) expected_since_.try_emplace(m, now_);
  begin_if_complete(out);
}

// They hear of it as of everything else, and the step that is open may be complete.
void ServerGroup::on(const servers::SetBackups& e, Effects& out) {
  if (e.count == backups()) return;
  backups_ = e.count;
  tell_of_change(out);
}

void ServerGroup::on(const servers::SetRate& e, Effects& out) {
  if (e.rate == rate_) return;
  rate_ = e.rate;
  tell_of_change(out);
}

void ServerGroup::tell_of_change(Effects& out) {
  if (state_ == State::kGathering) {
    out.emplace_back(servers::Changed{});
  } else {
    tell_servers(out);
  }
}

void ServerGroup::on(const servers::Joined& e, Effects& out) {
  if (!may_join(e.member)) return;
  if (!e.key.empty()) keys_[e.member] = e.key;
  if (e.member.worker.role == 's') {
    if (find_server(e.member) != nullptr) {  // it has not heard what it is to serve
      if (find_seat(e.member) != nullptr) say(*find_server(e.member), out);
      return;
    }
    const bool seated = std::ranges::any_of(
        seats_, [&](const ServerSeat& seat) { return seat.has(e.member.worker); });
    if (seated) over("a server began anew", out);
    std::erase_if(servers_, [&](const GroupServer& s) { return s.worker == e.member.worker; });
    forget_rows_of_lost();
    servers_.push_back({e.member.worker, e.member.attempt, e.endpoint});
    std::ranges::sort(servers_, {}, &GroupServer::worker);
    out.emplace_back(servers::Changed{});
    let_join(out);
    return begin_if_complete(out);
  }
  joined_.insert(e.member);
  if (state_ == State::kGathering) return begin_if_complete(out);
  const auto known = workers_.find(e.member);
  if (known == workers_.end()) {
    workers_[e.member].from_number = number_ + 1;
    return tell_servers(out);
  }
  if (!known->second.admitted) return;
  if (!e.problem.empty()) note_trouble(e.member, e.problem, out);
  out.emplace_back(servers::Admit{e.member});
}

void ServerGroup::note_trouble(Member member, const std::string& problem, Effects& out) {
  Worker& worker = workers_.at(member);
  if (worker.troubles > 0 && now_ - worker.troubled < kSameTrouble) return;
  worker.troubled = now_;
  out.emplace_back(servers::Trouble{member, problem, ++worker.troubles == kTroubles});
}

void ServerGroup::begin_if_complete(Effects& out) {
  if (state_ != State::kGathering || expected_workers_.empty()) return;
  if (!can_seat() || !missing().empty()) return;
  if (state_lost_) {
    if (!std::exchange(lost_said_, true)) out.emplace_back(servers::StateLost{});
    return;
  }
  generation_ = generation_.next();
  state_ = State::kForming;
  number_ = 0;
  workers_.clear();
  leaving_.clear();
  seat_servers();
  for (const Member m : expected_workers_) workers_[m].from_number = 1;
  tell_servers(out);
}

void ServerGroup::on(const servers::Begin& e, Effects& out) {
  restore_ = e.restore;
  version_ = e.version;
  state_lost_ = lost_said_ = false;
  out.emplace_back(servers::Changed{});
  begin_if_complete(out);
}

// ------------------------------------------------------------- what servers know

wire::PsServe ServerGroup::serve_for(const GroupServer& server) const {
  wire::PsServe serve;
  serve.number = number_;
  serve.index = seat_of(server.worker);
  serve.servers = endpoints();
  serve.sync = config_.sync;
  serve.backups = backups();
  serve.rate = rate_;
  serve.last_cut = last_cut_;
  serve.keep = std::ranges::find(keepers_, server.member()) != keepers_.end();
  for (const auto& [member, worker] : workers_) serve.workers.push_back(to_wire(member));
  serve.leaving = all_to_wire(leaving_);
  serve.restore = restore_;
  serve.version = version_;
  serve.keys = keys_to_tell();
  const ServerSeat& seat = seats_.at(serve.index);
  serve.view = seat.view;
  if (seat.other()) {
    const bool primary = server.worker == seat.primary;
    const GroupServer& other = process(primary ? *seat.other() : seat.primary);
    serve.replica = primary ? "primary" : seat.backup ? "backup" : "joining";
    serve.other = other.endpoint;
    serve.other_key = key_of(other.member());
  }
  return serve;
}

// A server reads its slices once in a group, after it has heard of the group. So the checkpoint
// of one that has answered is on its host already, and whoever joins a group that serves is given
// the rows by its primary.
bool ServerGroup::is_to_read(const wire::PsServe& serve, Member server) const {
  return state_ == State::kForming && !serve.restore.empty() && !serve.keep &&
         !heard_.contains(server);
}

void ServerGroup::say(const GroupServer& server, Effects& out) {
  const Member to = server.member();
  said_[to] = now_;
  const wire::PsServe serve = serve_for(server);
  out.emplace_back(servers::SendServe{to, generation_, serve, is_to_read(serve, to)});
}

void ServerGroup::tell_servers(Effects& out) {
  ++number_;
  since_ = now_;
  out.emplace_back(servers::Changed{});
  for (const GroupServer& server : seated()) say(server, out);
}

std::uint64_t ServerGroup::heard_by_all() const {
  std::uint64_t least = number_;
  for (const GroupServer& s : seated()) {
    const auto heard = heard_.find(s.member());
    least = std::min(least, heard == heard_.end() ? 0 : heard->second);
  }
  return least;
}

void ServerGroup::on(const servers::Serving& e, Effects& out) {
  if (state_ == State::kGathering || e.generation != generation_) return;
  if (find_seat(e.server) == nullptr || e.said.number > number_) return;
  for (const wire::PsPlaces& places : e.said.left) {
    if (std::erase(leaving_, Member{places.worker, places.attempt}) == 0) continue;
    out.emplace_back(servers::Changed{});
    out.emplace_back(servers::Left{places});
  }
  std::uint64_t& heard = heard_[e.server];
  heard = std::max(heard, e.said.number);
  go_on_if_heard(out);
  if (cut_ && !cut_->said && cut_->number == last_cut_) say_cut(out);
  count_backup(e, out);
}

void ServerGroup::go_on_if_heard(Effects& out) {
  const std::uint64_t heard = heard_by_all();
  if (state_ == State::kForming) {
    if (heard < number_) return;
    state_ = State::kServing;
    for (auto& [member, worker] : workers_) worker.admitted = true;
    out.emplace_back(servers::Changed{});
    out.emplace_back(servers::Formed{generation_, workers()});
    return let_join(out);
  }
  for (auto& [member, worker] : workers_) {
    // Its predecessor's records are in the model or free, and nobody's.
    const bool follows = std::ranges::any_of(
        leaving_, [id = member.worker](Member left) { return left.worker == id; });
    if (worker.admitted || worker.from_number > heard || follows) continue;
    worker.admitted = true;
    out.emplace_back(servers::Admit{member});
  }
}

// ------------------------------------------------------------------------ losses

void ServerGroup::on(const servers::Gone& e, Effects& out) {
  joined_.erase(e.member);
  keys_.erase(e.member);
  // It may have no successor; where it has one, that is expected next.
  std::erase(expected_workers_, e.member);
  if (e.member.worker.role == 's') return lose_server(e.member, e.reason, out);
  if (workers_.erase(e.member) == 0 || state_ == State::kGathering) return;
  leaving_.push_back(e.member);
  if (cut_) cut_failed(fmt::format("{} was lost while it was written", e.member.worker), out);
  tell_servers(out);
}

// Nothing was pushed to a group that never served.
void ServerGroup::over(const std::string& reason, Effects& out) {
  if (cut_) cut_failed(reason, out);
  last_cut_ = 0;
  const bool served = state_ == State::kServing;
  if (served) keep_rows();
  state_ = State::kGathering;
  since_ = released_ = now_;
  state_lost_ = state_lost_ || served;
  servers::Over effect{generation_, {}, reason};
  for (const auto& [member, worker] : workers_) effect.workers.push_back(member);
  if (served) joined_.clear();
  workers_.clear();
  leaving_.clear();
  heard_.clear();
  seats_.clear();
  out.emplace_back(servers::Changed{});
  if (served) out.emplace_back(std::move(effect));
}

void ServerGroup::on(const servers::StateMoves&, Effects&) { since_ = now_; }

void ServerGroup::on(const servers::Tick&, Effects& out) {
  name_the_silent(out);
  if (state_ == State::kGathering) {
    release_again(out);
    return begin_if_complete(out);
  }
  for (const GroupServer& server : seated()) {
    const auto heard = heard_.find(server.member());
    // What its home said of who leaves may have been lost, and a later answer heard.
    // And a primary says when it is backed.
    const ServerSeat& seat = *find_seat(server.member());
    const bool says_more = !leaving_.empty() || (seat.joining && server.worker == seat.primary);
    const bool knows = heard != heard_.end() && heard->second >= number_ && !says_more;
    if (!knows && now_ - said_[server.member()] >= kSayAgain) say(server, out);
  }
  say_moved(out);
  const bool said = cut_ && cut_->said && now_ - *cut_->said < kAskForCutAgain;
  if (cut_ && !said) say_cut(out);
}

// A worker that has not heard it waits for servers that are gone.
void ServerGroup::release_again(Effects& out) {
  if (generation_ == Generation{} || now_ - released_ < kReleaseAgain) return;
  released_ = now_;
  servers::OverAgain again{generation_, {}};
  std::ranges::copy_if(expected_workers_, std::back_inserter(again.workers),
                       [&](Member m) { return !joined_.contains(m); });
  if (!again.workers.empty()) out.emplace_back(std::move(again));
}

// Nobody else says that it hangs: who has not joined reports nothing.
void ServerGroup::name_the_silent(Effects& out) {
  const bool starts = state_ == State::kGathering;
  const Duration patience =
      starts ? std::max(config_.hang_after, kStartPatience) : config_.hang_after;
  for (const Member member : missing()) {
    MonoTime& asked = expected_since_[member];
    if (now_ - std::max(since_, asked) < patience) continue;
    asked = now_;  // named again only after as long
    out.emplace_back(servers::Silent{
        member, fmt::format("the others have waited {:.0f} s for it {}", to_seconds(patience),
                            starts ? "to join" : "to answer who is in the group")});
  }
}

}  // namespace antdt::ctl
