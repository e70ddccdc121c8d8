#include "ctl/servers/placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::servers {

std::uint32_t Placement::index_of(WorkerId server) const {
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

// -------------------------------------------------------------------------- replica_sets

bool Placement::can_assign(const Roll& roll) const {
  std::set<std::uint32_t> there;
  for (const GroupServer& s : joined_) {
    if (roll.may_serve(s.member())) there.insert(index_of(s.worker));
  }
  return there.size() == count_;
}

void Placement::assign(const Roll& roll) {
  replica_sets_.assign(count_, {});
  std::vector<bool> taken(count_);
  for (const GroupServer& s : joined_) {
    if (!roll.may_serve(s.member())) continue;
    const std::uint32_t at = index_of(s.worker);
    ReplicaSet& set = replica_sets_[at];
    if (replicas_ > 1) set.view = 1;
    if (!taken[at]) {
      set.primary = s.worker;
    } else if (replicas_ > 1 && !set.backup) {
      set.backup = s.worker;
    }
    taken[at] = true;
  }
}

const ReplicaSet* Placement::replica_set_with(Member server) const {
  if (find(server) == nullptr) return nullptr;
  const auto set = std::ranges::find_if(replica_sets_,
                                        [&](const ReplicaSet& s) { return s.has(server.worker); });
  return set == replica_sets_.end() ? nullptr : &*set;
}

bool Placement::has_part(WorkerId server) const {
  return std::ranges::any_of(replica_sets_, [&](const ReplicaSet& set) { return set.has(server); });
}

std::vector<GroupServer> Placement::processes_with_part() const {
  std::vector<GroupServer> all;
  for (const GroupServer& s : joined_) {
    if (replica_set_with(s.member()) != nullptr) all.push_back(s);
  }
  return all;
}

Member Placement::primary_of(const ReplicaSet& set) const { return process(set.primary).member(); }

bool Placement::survives(Member lost) const {
  const ReplicaSet* const set = replica_set_with(lost);
  return set != nullptr && (set->backup || set->joining == lost.worker);
}

std::optional<ReportSwitch> Placement::switch_from(Member lost) {
  const std::uint32_t index = index_of(lost.worker);
  ReplicaSet& set = replica_sets_.at(index);
  ++set.view;
  if (set.joining == lost.worker) {
    set.joining.reset();
    return std::nullopt;
  }
  const bool promoted = lost.worker == set.primary;
  if (promoted) set.primary = *set.backup;
  set.backup.reset();
  return ReportSwitch{index, lost, primary_of(set), promoted};
}

std::vector<Member> Placement::let_join(const Roll& roll) {
  std::vector<Member> joining;
  for (const GroupServer& s : joined_) {
    ReplicaSet& set = replica_sets_.at(index_of(s.worker));
    if (set.other() || s.worker == set.primary || !roll.may_serve(s.member())) continue;
    set.joining = s.worker;
    ++set.view;
    joining.push_back(s.member());
  }
  return joining;
}

// A report that a primary sent in another view concerns another process, or none.
std::optional<ReportBackup> Placement::count_backup(Member primary, std::uint64_t backed_view) {
  const std::uint32_t index = index_of(primary.worker);
  ReplicaSet& set = replica_sets_.at(index);
  if (!set.joining || primary.worker != set.primary || backed_view != set.view) {
    return std::nullopt;
  }
  set.backup = std::exchange(set.joining, std::nullopt);
  return ReportBackup{index, primary, process(*set.backup).member()};
}

bool Placement::is_as_it_began() const {
  const std::uint64_t first = replicas_ > 1 ? 1 : 0;
  return std::ranges::all_of(replica_sets_, [&](const ReplicaSet& s) { return s.view <= first; });
}

// ------------------------------------------------------- for people and for workers

ServerRole Placement::role_of(Member server) const {
  const ReplicaSet* const set = replica_set_with(server);
  if (set == nullptr) return ServerRole::kNone;
  if (server.worker == set->backup) return ServerRole::kBackup;
  if (server.worker == set->joining) return ServerRole::kJoining;
  return set->backup ? ServerRole::kPrimary : ServerRole::kAlone;
}

std::optional<WorkerId> Placement::other_of(Member server) const {
  const ReplicaSet* const set = replica_set_with(server);
  if (set == nullptr || !set->backup) return std::nullopt;
  return server.worker == set->primary ? *set->backup : set->primary;
}

bool Placement::is_first(Member server) const {
  const ReplicaSet* const set = replica_set_with(server);
  return set != nullptr && set == &replica_sets_.front() && set->primary == server.worker;
}

std::vector<std::string> Placement::endpoints() const {
  std::vector<std::string> all;
  for (const ReplicaSet& set : replica_sets_) all.push_back(process(set.primary).endpoint);
  return all;
}

// For a server that had two processes and now has one, the entry is empty, so that workers forget
// the other one.
std::vector<std::optional<Member>> Placement::backups() const {
  std::vector<std::optional<Member>> all;
  const bool any =
      std::ranges::any_of(replica_sets_, [](const ReplicaSet& s) { return s.view > 0; });
  if (!any) return all;
  for (const ReplicaSet& set : replica_sets_) {
    all.push_back(set.backup ? std::optional(process(*set.backup).member()) : std::nullopt);
  }
  return all;
}

// ------------------------------------------------------------------- what is durable

bool Placement::restore(const ServerGroupImage& image, bool with_replica_sets, const Roll& roll) {
  if (image.count > 0) count_ = image.count;
  joined_ = image.servers;
  if (!with_replica_sets) return true;
  replica_sets_ = image.replica_sets;
  if (replica_sets_.empty() && can_assign(roll))
    assign(roll);  // the journal of an earlier release has none
  if (is_sound()) return true;
  replica_sets_.clear();
  return false;
}

bool Placement::is_sound() const {
  const auto joined = [&](WorkerId worker) {
    return std::ranges::find(joined_, worker, &GroupServer::worker) != joined_.end();
  };
  return replica_sets_.size() == count_ &&
         std::ranges::all_of(replica_sets_, [&](const ReplicaSet& s) {
           const bool one = !s.backup || !s.joining;
           return one && joined(s.primary) && (!s.other() || joined(*s.other()));
         });
}

void Placement::check_invariants() const {
  ANTDT_CHECK(
      replica_sets_.empty() || is_sound(),
      "{} replica_sets of {} servers: each needs a primary that has joined, and at most one other",
      replica_sets_.size(), count_);
}

}  // namespace antdt::ctl::servers
