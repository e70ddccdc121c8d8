#include "ctl/servers/placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::servers {

std::uint32_t Placement::seat_of(WorkerId server) const {
  return server.index % std::max(count_, 1U);
}

// ---------------------------------------------------------------------- processes

const GroupServer* Placement::find(Member server) const {
  const auto found = std::ranges::find(joined_, server, &GroupServer::member);
  return found == joined_.end() ? nullptr : &*found;
}

const GroupServer& Placement::process(WorkerId server) const {
  const auto found = std::ranges::find(joined_, server, &GroupServer::worker);
  ANTDT_CHECK(found != joined_.end(), "{} has a part in the group, and has not joined", server);
  return *found;
}

void Placement::add(const GroupServer& server) {
  std::erase_if(joined_, [&](const GroupServer& s) { return s.worker == server.worker; });
  joined_.push_back(server);
  std::ranges::sort(joined_, {}, &GroupServer::worker);
}

void Placement::remove(Member server) {
  std::erase_if(joined_, [&](const GroupServer& s) { return s.member() == server; });
}

// -------------------------------------------------------------------------- seats

bool Placement::can_seat(const Roll& roll) const {
  std::set<std::uint32_t> there;
  for (const GroupServer& s : joined_) {
    if (roll.may_serve(s.member())) there.insert(seat_of(s.worker));
  }
  return there.size() == count_;
}

void Placement::seat(const Roll& roll) {
  seats_.assign(count_, {});
  std::vector<bool> taken(count_);
  for (const GroupServer& s : joined_) {
    if (!roll.may_serve(s.member())) continue;
    const std::uint32_t at = seat_of(s.worker);
    ServerSeat& seat = seats_[at];
    if (replicas_ > 1) seat.view = 1;
    if (!taken[at]) {
      seat.primary = s.worker;
    } else if (replicas_ > 1 && !seat.backup) {
      seat.backup = s.worker;
    }
    taken[at] = true;
  }
}

const ServerSeat* Placement::seat_with(Member server) const {
  if (find(server) == nullptr) return nullptr;
  const auto seat =
      std::ranges::find_if(seats_, [&](const ServerSeat& s) { return s.has(server.worker); });
  return seat == seats_.end() ? nullptr : &*seat;
}

bool Placement::is_seated(WorkerId server) const {
  return std::ranges::any_of(seats_, [&](const ServerSeat& seat) { return seat.has(server); });
}

std::vector<GroupServer> Placement::seated() const {
  std::vector<GroupServer> all;
  for (const GroupServer& s : joined_) {
    if (seat_with(s.member()) != nullptr) all.push_back(s);
  }
  return all;
}

Member Placement::primary_of(const ServerSeat& seat) const {
  return process(seat.primary).member();
}

bool Placement::survives(Member lost) const {
  const ServerSeat* const seat = seat_with(lost);
  return seat != nullptr && (seat->backup || seat->joining == lost.worker);
}

std::optional<ReportSwitch> Placement::switch_from(Member lost) {
  const std::uint32_t index = seat_of(lost.worker);
  ServerSeat& seat = seats_.at(index);
  ++seat.view;
  if (seat.joining == lost.worker) {
    seat.joining.reset();
    return std::nullopt;
  }
  const bool promoted = lost.worker == seat.primary;
  if (promoted) seat.primary = *seat.backup;
  seat.backup.reset();
  return ReportSwitch{index, lost, primary_of(seat), promoted};
}

std::vector<Member> Placement::let_join(const Roll& roll) {
  std::vector<Member> joining;
  for (const GroupServer& s : joined_) {
    ServerSeat& seat = seats_.at(seat_of(s.worker));
    if (seat.other() || s.worker == seat.primary || !roll.may_serve(s.member())) continue;
    seat.joining = s.worker;
    ++seat.view;
    joining.push_back(s.member());
  }
  return joining;
}

// What a primary said in another view is about another process, or about none.
std::optional<ReportBackup> Placement::count_backup(Member primary, std::uint64_t backed_view) {
  const std::uint32_t index = seat_of(primary.worker);
  ServerSeat& seat = seats_.at(index);
  if (!seat.joining || primary.worker != seat.primary || backed_view != seat.view) {
    return std::nullopt;
  }
  seat.backup = std::exchange(seat.joining, std::nullopt);
  return ReportBackup{index, primary, process(*seat.backup).member()};
}

bool Placement::is_as_it_began() const {
  const std::uint64_t first = replicas_ > 1 ? 1 : 0;
  return std::ranges::all_of(seats_, [&](const ServerSeat& s) { return s.view <= first; });
}

// ------------------------------------------------------- for people and for workers

std::string Placement::role_of(Member server) const {
  const ServerSeat* const seat = seat_with(server);
  if (seat == nullptr) return {};
  if (server.worker == seat->backup) return "backup";
  if (server.worker == seat->joining) return "joining";
  return seat->backup ? "primary" : "alone";
}

std::optional<WorkerId> Placement::other_of(Member server) const {
  const ServerSeat* const seat = seat_with(server);
  if (seat == nullptr || !seat->backup) return std::nullopt;
  return server.worker == seat->primary ? *seat->backup : seat->primary;
}

bool Placement::is_first(Member server) const {
  const ServerSeat* const seat = seat_with(server);
  return seat != nullptr && seat == &seats_.front() && seat->primary == server.worker;
}

std::vector<std::string> Placement::endpoints() const {
  std::vector<std::string> all;
  for (const ServerSeat& seat : seats_) all.push_back(process(seat.primary).endpoint);
  return all;
}

// A server that had two processes and has one is said to have none, so that workers forget it.
std::vector<std::optional<Member>> Placement::backups() const {
  std::vector<std::optional<Member>> all;
  const bool any = std::ranges::any_of(seats_, [](const ServerSeat& s) { return s.view > 0; });
  if (!any) return all;
  for (const ServerSeat& seat : seats_) {
    all.push_back(seat.backup ? std::optional(process(*seat.backup).member()) : std::nullopt);
  }
  return all;
}

// ------------------------------------------------------------------- what is durable

bool Placement::restore(const ServerGroupImage& image, bool with_seats, const Roll& roll) {
  if (image.count > 0) count_ = image.count;
  joined_ = image.servers;
  if (!with_seats) return true;
  seats_ = image.seats;
  if (seats_.empty() && can_seat(roll)) seat(roll);  // written before there were any
  if (is_sound()) return true;
  seats_.clear();
  return false;
}

bool Placement::is_sound() const {
  const auto joined = [&](WorkerId worker) {
    return std::ranges::find(joined_, worker, &GroupServer::worker) != joined_.end();
  };
  return seats_.size() == count_ && std::ranges::all_of(seats_, [&](const ServerSeat& s) {
           const bool one = !s.backup || !s.joining;
           return one && joined(s.primary) && (!s.other() || joined(*s.other()));
         });
}

void Placement::check_invariants() const {
  ANTDT_CHECK(seats_.empty() || is_sound(),
              "{} seats of {} servers: each needs a primary that has joined, and at most one other",
              seats_.size(), count_);
}

}  // namespace antdt::ctl::servers
