// The hosts of a job: which are up, how many workers each takes, and which are better avoided for a
// while. Pure.
//
// A job goes on without a worker, and stands still without a server. So a server that waits to be
// started again keeps its room on its host, and one whose host is gone keeps room on some other:
// no worker gets it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/domain/domains.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl {

struct HostState {
  std::string host;  // end point of its agent
  std::string name;  // name shown to people
  std::uint32_t order = 0;
  std::uint32_t room = 0;  // how many workers it takes in all
  bool up = false;
  bool closed = false;  // an operator evicted it: it gets no more workers
  double penalty = 0;   // number of failures there, halved every kHalfLife
  double penalty_at_s = 0;
  std::string drained = {};  // "by WHO: why": its agent starts nothing; "": it is not drained
  [[nodiscard]] bool takes_processes() const { return up && !closed && drained.empty(); }
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("host", m.host);
    v("name", m.name);
    v("order", m.order);
    v("room", m.room);
    v("up", m.up);
    v("closed", m.closed);
    v("penalty", m.penalty);
    v("penalty_at_s", m.penalty_at_s);
    v("drained", m.drained);
  }
};

class Hosts {
 public:
  // A host with more recent failures than this is on probation: it gets workers only if no other
  // host has room.
  static constexpr double kProbation = 3;
  static constexpr double kHalfLifeSeconds = 600;

  // Records are pinned to these domains, so a worker stays in its own, and goes to no host that is
  // in none. It is in the domain of the host that it was on last.
  void keep_in(Domains domains) { domains_ = std::move(domains); }
  // `room` counts the workers of this job that run there already.
  void up(const HostState& host);
  void down(const std::string& host);
  void close(const std::string& host);
  void drain(const std::string& host, const std::string& by_whom);  // "": not any more
  void failed_on(const std::string& host, double now_s);

  [[nodiscard]] const HostState* find(const std::string& host) const;
  // Finds a host by end point or by name.
  [[nodiscard]] const HostState* named(const std::string& text) const;
  [[nodiscard]] double penalty(const HostState& host, double now_s) const;
  [[nodiscard]] bool on_probation(const HostState& host, double now_s) const;
  // Where to start `worker`: on a host with room, preferably not on probation, preferably the one
  // that it was asked to start on (WorkerProcess::goes_to), then the one it was on, otherwise the
  // one with the fewest failures, then with the most room. `not_on`: hosts that are excluded.
  [[nodiscard]] const HostState* choose(const WorkerProcess& worker,
                                        const std::vector<WorkerProcess>& all, double now_s,
                                        const std::vector<std::string>& not_on = {}) const;
  // Whether this is a server of the group that waits, and its host takes no processes.
  [[nodiscard]] bool is_homeless(const WorkerProcess& worker) const;
  // For how many more workers there is room on all hosts.
  [[nodiscard]] std::uint32_t room_left(const std::vector<WorkerProcess>& all) const;
  // The hosts that would take another worker now and are not on probation.
  struct Place {
    const HostState* host = nullptr;
    std::uint32_t room = 0;  // for how many more workers
  };
  [[nodiscard]] std::vector<Place> places(const std::vector<WorkerProcess>& all,
                                          double now_s) const;

  [[nodiscard]] const std::vector<HostState>& all() const { return hosts_; }
  void restore(std::vector<HostState> hosts);

 private:
  [[nodiscard]] HostState* find_mutable(const std::string& host);
  [[nodiscard]] bool is_in_domain_of(const WorkerProcess& worker, const HostState& host) const;
  std::vector<HostState> hosts_;
  Domains domains_;  // empty: no record is pinned
};

}  // namespace antdt::ctl
