// The workers of a group of parameter servers.
//
//   (joins) ──> named to the servers ──(all have heard of it, its predecessor is settled)──>
//   admitted named, admitted ──(is lost)──> leaving ──(its home says what of it is applied)──>
//   settled, gone
//
// Who is in the group and who leaves it is durable; who is admitted is found anew.
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
  // A join is repeated until it is answered: what comes sooner is the same trouble.
  static constexpr Duration kSameTrouble = std::chrono::seconds(5);
  static constexpr std::uint32_t kMostTroubles = 5;

  // A new group begins with these, or the group is over and has none.
  void begin(const std::vector<Member>& workers);
  void clear();
  // `from`: who has heard this order knows the worker.
  void add(Member worker, std::uint64_t from);
  [[nodiscard]] bool has(Member worker) const { return workers_.contains(worker); }

  void admit_all();
  // Admits all that are known to servers that have heard the order `heard`; answers them.
  [[nodiscard]] std::vector<Member> admit(std::uint64_t heard);

  // To: leaving. Answers whether it was in the group.
  bool lose(Member worker);
  // It was of no group that is formed.
  void forget(Member worker) { workers_.erase(worker); }
  // To: settled. Answers whether it was leaving.
  bool settle(Member worker);
  [[nodiscard]] const std::vector<Member>& leaving() const { return leaving_; }

  // An admitted worker could not begin. Nothing: it said so a moment ago.
  [[nodiscard]] std::optional<ReportTrouble> note_trouble(Member worker, const std::string& problem,
                                                          MonoTime now);

  // Those that may hear of the servers, rising.
  [[nodiscard]] std::vector<Member> admitted() const;
  [[nodiscard]] bool is_admitted(Member worker) const;
  // All of the group: with those that are still to hear of the servers.
  [[nodiscard]] std::vector<Member> present() const;

  void restore(const std::vector<Member>& present, const std::vector<Member>& leaving,
               std::uint64_t from);
  void check_invariants() const;

 private:
  enum class State : std::uint8_t { kNamed, kAdmitted };
  struct Worker {
    State state = State::kNamed;
    std::uint64_t from = 0;
    std::uint32_t troubles = 0;  // in this group
    MonoTime troubled{};         // the last time
  };

  std::map<Member, Worker> workers_;
  std::vector<Member> leaving_;
};

}  // namespace antdt::ctl::servers
