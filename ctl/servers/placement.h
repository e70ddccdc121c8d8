// The server processes that have joined, and which of them is which server of the group.
//
// A server has a seat. Where servers are two processes, or while one is moved, the seat's view says
// which process is the primary and which the backup:
//
//   alone ──another process has joined──> joining ──the primary says that it is backed──> backed
//     ^                                      │                                              │
//     └────────(the one that joins is lost)──┴──────────(either of the two is lost)─────────┘
//
// Each change but the one to backed begins the next view. The loss of a primary without a backup is
// not a change of its seat: the group is over (server_group.h).
//
// The seats and the processes are durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "ctl/servers/group_events.h"
#include "ctl/servers/group_image.h"
#include "ctl/servers/roll.h"

namespace antdt::ctl::servers {

class Placement {
 public:
  Placement(std::uint32_t count, std::uint32_t replicas) : count_(count), replicas_(replicas) {}

  // Of servers.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  void set_count(std::uint32_t count) { count_ = count; }
  // The server that this process is, or would be.
  [[nodiscard]] std::uint32_t seat_of(WorkerId server) const;

  // ---- processes that have joined
  [[nodiscard]] const std::vector<GroupServer>& joined() const { return joined_; }
  [[nodiscard]] const GroupServer* find(Member server) const;
  // One that has joined.
  [[nodiscard]] const GroupServer& process(WorkerId server) const;
  // In place of an earlier attempt.
  void add(const GroupServer& server);
  void remove(Member server);

  // ---- seats
  [[nodiscard]] const std::vector<ServerSeat>& seats() const { return seats_; }
  // Whether some process of each server has joined.
  [[nodiscard]] bool can_seat(const Roll& roll) const;
  // The first process of a server becomes its primary, the second one its backup.
  void seat(const Roll& roll);
  void clear_seats() { seats_.clear(); }
  // Null: it has no part in the group.
  [[nodiscard]] const ServerSeat* seat_with(Member server) const;
  // Whether this process, in any attempt, has a part in the group.
  [[nodiscard]] bool is_seated(WorkerId server) const;
  // The processes that have a part in it.
  [[nodiscard]] std::vector<GroupServer> seated() const;
  [[nodiscard]] Member primary_of(const ServerSeat& seat) const;

  // Whether its server goes on if this process is lost: it has a backup, or this one only joins.
  [[nodiscard]] bool survives(Member lost) const;
  // From: backed, joining. To: alone, in the next view. Nothing is reported of one that only joins.
  [[nodiscard]] std::optional<ReportSwitch> switch_from(Member lost);
  // From: alone. To: joining, for each server of which another process has joined. Answers these
  // processes.
  [[nodiscard]] std::vector<Member> let_join(const Roll& roll);
  // From: joining. To: backed, if the primary says so in this view.
  [[nodiscard]] std::optional<ReportBackup> count_backup(Member primary, std::uint64_t backed_view);
  // Whether all processes are those with which the group began.
  [[nodiscard]] bool is_as_it_began() const;

  // ---- for people and for workers
  // "primary", "backup", "alone", "joining"; "" if it has no part in the group.
  [[nodiscard]] std::string role_of(Member server) const;
  // The other process of its server, if either of the two may be lost.
  [[nodiscard]] std::optional<WorkerId> other_of(Member server) const;
  // Whether it serves as the first of the servers.
  [[nodiscard]] bool is_first(Member server) const;
  [[nodiscard]] std::vector<std::string> endpoints() const;  // of the primaries, by index
  // The backups, by index. Empty without any entry: no server ever had one.
  [[nodiscard]] std::vector<std::optional<Member>> backups() const;

  // Takes over what a journal says. Answers whether that can be.
  [[nodiscard]] bool restore(const ServerGroupImage& image, bool with_seats, const Roll& roll);
  void check_invariants() const;

 private:
  [[nodiscard]] bool is_sound() const;

  std::uint32_t count_;
  std::uint32_t replicas_;
  std::vector<GroupServer> joined_;  // by worker
  std::vector<ServerSeat> seats_;    // by index; empty while no group is formed
};

}  // namespace antdt::ctl::servers
