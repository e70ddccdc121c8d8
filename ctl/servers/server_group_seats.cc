// The processes that a group's servers are, and what it means to lose one.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ctl/servers/server_group.h"

namespace antdt::ctl {
namespace {

constexpr Duration kMovedAgain = std::chrono::seconds(2);

}  // namespace

// ---------------------------------------------------------------- who is which

// What a journal says is looked at before it is believed.
bool ServerGroup::seats_are_sound() const {
  const auto joined = [&](WorkerId worker) {
    return std::ranges::find(servers_, worker, &GroupServer::worker) != servers_.end();
  };
  return seats_.size() == count_ && std::ranges::all_of(seats_, [&](const ServerSeat& s) {
           const bool one = !s.backup || !s.joining;
           return one && joined(s.primary) && (!s.other() || joined(*s.other()));
         });
}

const GroupServer& ServerGroup::process(WorkerId worker) const {
  return *std::ranges::find(servers_, worker, &GroupServer::worker);
}

std::vector<GroupServer> ServerGroup::seated() const {
  std::vector<GroupServer> all;
  for (const GroupServer& s : servers_) {
    if (find_seat(s.member()) != nullptr) all.push_back(s);
  }
  return all;
}

const ServerSeat* ServerGroup::find_seat(Member server) const {
  if (find_server(server) == nullptr) return nullptr;
  const auto seat =
      std::ranges::find_if(seats_, [&](const ServerSeat& s) { return s.has(server.worker); });
  return seat == seats_.end() ? nullptr : &*seat;
}

std::string ServerGroup::role_of(Member server) const {
  const ServerSeat* const seat = find_seat(server);
  if (seat == nullptr) return {};
  if (server.worker == seat->backup) return "backup";
  if (server.worker == seat->joining) return "joining";
  return seat->backup ? "primary" : "alone";
}

std::optional<WorkerId> ServerGroup::other_of(Member server) const {
  const ServerSeat* const seat = find_seat(server);
  if (seat == nullptr || !seat->backup) return std::nullopt;
  return server.worker == seat->primary ? *seat->backup : seat->primary;
}

// Not who is to leave. After a restart it is not known yet who is expected.
bool ServerGroup::may_sit(const GroupServer& server) const {
  return expected_servers_.empty() || is_expected(server.member());
}

// Some process of each server has joined.
bool ServerGroup::can_seat() const {
  std::set<std::uint32_t> there;
  for (const GroupServer& s : servers_) {
    if (may_sit(s)) there.insert(seat_of(s.worker));
  }
  return there.size() == count_;
}

// The first of a server is its primary.
void ServerGroup::seat_servers() {
  seats_.assign(count_, {});
  std::vector<bool> taken(count_);
  for (const GroupServer& s : servers_) {
    if (!may_sit(s)) continue;
    const std::uint32_t at = seat_of(s.worker);
    ServerSeat& seat = seats_[at];
    if (config_.replicas > 1) seat.view = 1;
    if (!taken[at]) {
      seat.primary = s.worker;
    } else if (config_.replicas > 1 && !seat.backup) {
      seat.backup = s.worker;
    }
    taken[at] = true;
  }
}

// -------------------------------------------------------------- where they are

std::vector<std::string> ServerGroup::endpoints() const {
  std::vector<std::string> all;
  for (const ServerSeat& seat : seats_) all.push_back(process(seat.primary).endpoint);
  return all;
}

std::vector<std::string> ServerGroup::server_keys() const {
  std::vector<std::string> all;
  for (const ServerSeat& seat : seats_) all.push_back(key_of(process(seat.primary).member()));
  return all;
}

// Or had: what is said of the others then is that there is none.
bool ServerGroup::has_two_processes() const {
  return std::ranges::any_of(seats_, [](const ServerSeat& s) { return s.view > 0; });
}

std::vector<std::string> ServerGroup::other_endpoints() const {
  std::vector<std::string> all;
  if (!has_two_processes()) return all;
  for (const ServerSeat& seat : seats_) {
    all.push_back(seat.backup ? process(*seat.backup).endpoint : std::string());
  }
  return all;
}

std::vector<std::string> ServerGroup::other_keys() const {
  std::vector<std::string> all;
  if (!has_two_processes()) return all;
  for (const ServerSeat& seat : seats_) {
    all.push_back(seat.backup ? key_of(process(*seat.backup).member()) : std::string());
  }
  return all;
}

// Not those of who leaves: nothing more is heard from it.
std::vector<wire::PsKey> ServerGroup::keys_of_group() const {
  std::vector<wire::PsKey> all;
  const auto add = [&](Member m) {
    const auto found = keys_.find(m);
    if (found != keys_.end()) all.push_back({m.worker, m.attempt, found->second});
  };
  for (const GroupServer& s : servers_) add(s.member());
  for (const auto& [member, worker] : workers_) add(member);
  return all;
}

// A primary is let in as the server that it is.
std::vector<wire::PsKey> ServerGroup::keys_to_tell() const {
  std::vector<wire::PsKey> all;
  for (const wire::PsKey& k : keys_of_group()) {
    const Member member{k.worker, k.attempt};
    if (k.worker.role != 's') {
      all.push_back(k);
    } else if (const ServerSeat* seat = find_seat(member); seat && seat->primary == k.worker) {
      all.push_back({WorkerId{'s', seat_of(k.worker)}, k.attempt, k.key});
    }
  }
  return all;
}

// ------------------------------------------------------------------------ losses

void ServerGroup::lose_server(Member member, const std::string& reason, Effects& out) {
  if (find_server(member) == nullptr) return;
  const ServerSeat* const seat = find_seat(member);
  const bool goes_on = seat != nullptr && state_ == State::kServing &&
                       (seat->backup || seat->joining == member.worker);
  // What a group that does not serve yet has heard, its other process may not have.
  if (seat != nullptr && !goes_on) over(reason, out);
  if (goes_on) switch_seat(seats_.at(seat_of(member.worker)), member, out);
  std::erase_if(servers_, [&](const GroupServer& s) { return s.member() == member; });
  forget_rows_of_lost();
  out.emplace_back(servers::Changed{});
  if (!goes_on) return;
  tell_servers(out);
  let_join(out);
}

// Of a group that served they have all rows; of one that did not, those that had them before.
void ServerGroup::keep_rows() {
  keepers_.clear();
  if (!config_.keeps_rows) return;
  for (const ServerSeat& seat : seats_) keepers_.push_back(process(seat.primary).member());
}

// What the next group goes on from was found with these: it is found anew.
void ServerGroup::forget_rows_of_lost() {
  if (state_ != State::kGathering) return;
  const auto lost = [&](Member m) { return find_server(m) == nullptr; };
  if (std::erase_if(keepers_, lost) == 0) return;
  state_lost_ = true;
  lost_said_ = false;
}

std::vector<Member> ServerGroup::keepers() const {
  std::vector<Member> there;
  for (const Member m : keepers_) {
    const GroupServer* const server = find_server(m);
    if (server != nullptr && may_sit(*server)) there.push_back(m);
  }
  return there;
}

// Nothing that was answered is lost; but what a primary was writing is.
void ServerGroup::switch_seat(ServerSeat& seat, Member lost, Effects& out) {
  ++seat.view;
  if (seat.joining == lost.worker) return seat.joining.reset();
  const bool promoted = lost.worker == seat.primary;
  if (promoted) {
    seat.primary = *seat.backup;
    if (cut_) cut_failed(fmt::format("{} was lost while it was written", lost.worker), out);
  }
  seat.backup.reset();
  out.emplace_back(
      servers::Switched{seat_of(lost.worker), lost, process(seat.primary).member(), promoted});
}

// --------------------------------------------------------------------- new backups

// Another process of a server that is alone.
void ServerGroup::let_join(Effects& out) {
  if (state_ != State::kServing) return;
  bool changed = false;
  for (const GroupServer& s : servers_) {
    ServerSeat& seat = seats_.at(seat_of(s.worker));
    if (seat.other() || s.worker == seat.primary || !may_sit(s)) continue;
    seat.joining = s.worker;
    ++seat.view;
    heard_.erase(s.member());
    changed = true;
  }
  if (changed) tell_servers(out);
}

// What its primary said in another view is about another process, or about none.
void ServerGroup::count_backup(const servers::Serving& e, Effects& out) {
  ServerSeat& seat = seats_.at(seat_of(e.server.worker));
  const bool counts = state_ == State::kServing && seat.joining &&
                      e.server.worker == seat.primary && e.said.backed == seat.view;
  if (!counts) return;
  seat.backup = std::exchange(seat.joining, std::nullopt);
  out.emplace_back(
      servers::Backed{seat_of(e.server.worker), e.server, process(*seat.backup).member()});
  tell_servers(out);
  moved_.reset();
  say_moved(out);
}

// Where nothing was replaced they have heard it already.
void ServerGroup::say_moved(Effects& out) {
  const std::uint64_t first = config_.replicas > 1 ? 1 : 0;
  const bool as_it_began =
      std::ranges::all_of(seats_, [&](const auto& s) { return s.view <= first; });
  if (state_ != State::kServing || as_it_began) return;
  if (moved_ && now_ - *moved_ < kMovedAgain) return;
  moved_ = now_;
  out.emplace_back(servers::Moved{workers()});
}

}  // namespace antdt::ctl
