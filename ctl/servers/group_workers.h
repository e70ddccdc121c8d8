// The workers of a group of parameter servers.
//
//   (joins) ──> named to the servers ──(all have heard, its predecessor is settled)──> admitted
//   named, admitted ──(is lost)──> leaving ──(its home answers what is applied)──> settled, gone
//
// Which workers are in the group and which of them leave is durable; which are admitted is
// determined again after a restart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/servers/group_events.h"

namespace antdt::ctl::servers {

class GroupWorkers {
 public:
  // A join is repeated until it is answered, so a report within this time is of the same trouble.
  // After this time the worker may try again.
  static constexpr Duration kSameTrouble = std::chrono::seconds(5);
  static constexpr std::uint32_t kMostTroubles = 5;
  // A worker that has reached its servers for this time and `host_lost_after` has begun in between,
  // so that one it cannot reach then is another trouble. Not so with a checkpoint: each try of all
  // workers may read it as a whole.
  static constexpr Duration kOtherTrouble = std::chrono::seconds(60);

  // A new group begins with these workers, or the group is over and has none.
  void begin(const std::vector<Member>& workers);
  void clear();
  // `from`: servers that have heard this order know the worker.
  void add(Member worker, std::uint64_t from);
  [[nodiscard]] bool has(Member worker) const { return workers_.contains(worker); }

  void admit_all();
  // Admits all workers that are known to every server that has heard the order `heard`, and returns
  // them.
  [[nodiscard]] std::vector<Member> admit(std::uint64_t heard);

  // To: leaving. Returns whether the worker was in the group.
  bool lose(Member worker);
  // The worker was not in any group that is formed.
  void forget(Member worker) { workers_.erase(worker); }
  // To: settled. Returns whether the worker was leaving.
  bool settle(Member worker);
  [[nodiscard]] const std::vector<Member>& leaving() const { return leaving_; }

  // An admitted worker could not begin. Empty if it reported that a moment ago. It is the last time
  // at the fifth trouble in succession, and if it is the servers, not before `host_lost_after`: one
  // that is on a silent host may be replaced.
  [[nodiscard]] std::optional<ReportTrouble> note_trouble(const GroupJoinRequested& said,
                                                          MonoTime now, Duration host_lost_after);

  // The workers that may be told where the servers are, in rising order.
  [[nodiscard]] std::vector<Member> admitted() const;
  [[nodiscard]] bool is_admitted(Member worker) const;
  // All workers of the group, including those that have not been told where the servers are.
  [[nodiscard]] std::vector<Member> present() const;

  void restore(const std::vector<Member>& present, const std::vector<Member>& leaving,
               std::uint64_t from);
  void check_invariants() const;

 private:
  enum class State : std::uint8_t { kNamed, kAdmitted };
  struct Worker {
    State state = State::kNamed;
    std::uint64_t from = 0;
    std::uint32_t troubles = 0;  // how many in succession, in this group
    MonoTime first_troubled{};
    MonoTime troubled{};  // when it last reported trouble
  };

  std::map<Member, Worker> workers_;
  std::vector<Member> leaving_;
};

}  // namespace antdt::ctl::servers
