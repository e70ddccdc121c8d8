// The server processes that have joined, and which of them forms which server of the group.
//
// Each server is a replica set. If servers are two processes, or while one is moved, the view
// number of the replica set says which process is the primary and which is the backup:
//
//   alone ──another process has joined──> joining ──the primary says that it is backed──> backed
//     ^                                      │                                              │
//     └────────(the one that joins is lost)──┴──────────(either of the two is lost)─────────┘
//
// Each change except the one to backed begins the next view. If a primary without a backup is lost,
// the replica set does not change: the group is over (server_group.h).
//
// The replica sets and the processes are durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/job_states.h"
#include "ctl/servers/group_events.h"
#include "ctl/servers/group_image.h"
#include "ctl/servers/roll.h"

namespace antdt::ctl::servers {

class Placement {
 public:
  Placement(std::uint32_t count, std::uint32_t replicas) : count_(count), replicas_(replicas) {}

  // Number of servers.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  void set_count(std::uint32_t count) { count_ = count; }
  // Index of the server to which this process belongs, or would belong.
  [[nodiscard]] std::uint32_t index_of(WorkerId server) const;

  // ---- processes that have joined
  [[nodiscard]] const std::vector<GroupServer>& joined() const { return joined_; }
  [[nodiscard]] const GroupServer* find(Member server) const;
  // A process that has joined.
  [[nodiscard]] const GroupServer& process(WorkerId server) const;
  // Adds a process; it replaces an earlier attempt.
  void add(const GroupServer& server);
  void remove(Member server);

  // ---- replica_sets
  [[nodiscard]] const std::vector<ReplicaSet>& replica_sets() const { return replica_sets_; }
  // Whether at least one process of each server has joined.
  [[nodiscard]] bool can_assign(const Roll& roll) const;
  // Makes the first process of each server its primary, and the second one its backup.
  void assign(const Roll& roll);
  void clear_seats() { replica_sets_.clear(); }
  // Null if the process has no part in the group.
  [[nodiscard]] const ReplicaSet* replica_set_with(Member server) const;
  // Whether this process, in any attempt, has a part in the group.
  [[nodiscard]] bool has_part(WorkerId server) const;
  // The processes that have a part in the group.
  [[nodiscard]] std::vector<GroupServer> processes_with_part() const;
  [[nodiscard]] Member primary_of(const ReplicaSet& set) const;

  // Whether the server goes on if this process is lost: the server has a backup, or this process is
  // only joining.
  [[nodiscard]] bool survives(Member lost) const;
  // From: backed, joining. To: alone, in the next view. Empty if the lost process was only joining.
  [[nodiscard]] std::optional<ReportSwitch> switch_from(Member lost);
  // From: alone. To: joining, for each server of which another process has joined. Returns these
  // processes.
  [[nodiscard]] std::vector<Member> let_join(const Roll& roll);
  // From: joining. To: backed, if the primary reports that in the present view.
  [[nodiscard]] std::optional<ReportBackup> count_backup(Member primary, std::uint64_t backed_view);
  // Whether all processes are the ones with which the group began.
  [[nodiscard]] bool is_as_it_began() const;

  // ---- for people and for workers
  [[nodiscard]] ServerRole role_of(Member server) const;
  // The other process of its server, if the loss of either one is tolerated.
  [[nodiscard]] std::optional<WorkerId> other_of(Member server) const;
  // Whether the process serves as the first of the servers.
  [[nodiscard]] bool is_first(Member server) const;
  [[nodiscard]] std::vector<std::string> endpoints() const;  // of the primaries, by index
  // The backups, by index. No entries at all if no server ever had a backup.
  [[nodiscard]] std::vector<std::optional<Member>> backups() const;

  // Takes over the state from a journal. Returns false if that state is impossible.
  [[nodiscard]] bool restore(const ServerGroupImage& image, bool with_replica_sets,
                             const Roll& roll);
  void check_invariants() const;

 private:
  [[nodiscard]] bool is_sound() const;

  std::uint32_t count_;
  std::uint32_t replicas_;
  std::vector<GroupServer> joined_;       // by worker
  std::vector<ReplicaSet> replica_sets_;  // by index; empty while no group is formed
};

}  // namespace antdt::ctl::servers
