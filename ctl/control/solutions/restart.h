// When to kill a persistent straggler and start it again elsewhere: the kill-restart of AntDT-ND
// (Xiao et al., arXiv:2404.09679).
//
// A worker is a candidate when its speed over the persistent window is more than kLambda times
// lower than the mean of the others', and its verdict is persistent. A restart is wished only when
//   - the cluster is not busy: another host has room now, and no worker waits for room;
//   - no worker of that host is slow as well, because a worker would be as slow there. The action
//     names that host, and the worker gets its room there if it is still free then: otherwise a
//     host with a slow worker might be chosen, and the slowness be taken for the worker's own;
//   - the rest of the job becomes shorter by at least kWorth times what the restart takes, and by
//   at
//     least kLeastGain of what the rest takes now. A restart takes what restarts of this job took
//     so far or, before the first one, what its workers took to start; the other workers train
//     meanwhile;
//   - it was not restarted kMost times before, and the last restart helped: a worker that is slow
//   again
//     on another host is slow for its own reasons.
//
// A parameter server is a candidate when a request takes it kLambda times as long as the mean of
// the others, for as long. The same conditions hold. The job gains at most the time that the server
// is busy and a faster one would not be. A batch waits for the slowest server, so if that server is
// busy most of the time, the gain is most of that time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ctl/control/solution.h"

namespace antdt::ctl::solutions {

class RestartJudge {
 public:
  static constexpr double kLambda = 1.3;
  static constexpr double kWorth = 1.5;
  static constexpr double kLeastGain = 0.05;
  static constexpr int kMost = 2;
  // Used while no start has been observed.
  static constexpr Duration kRestartTakes = std::chrono::seconds(30);

  // At most one process: the slowest worker, or else the slowest server.
  [[nodiscard]] Decision decide(const ClusterView& view);

 private:
  struct Tried {
    Attempt attempt;  // the attempt for which a restart was wished
    int times = 0;
    std::string from;
  };
  [[nodiscard]] Decision decide_worker(const ClusterView& view);
  [[nodiscard]] Decision decide_server(const ClusterView& view);
  [[nodiscard]] bool may_try(Member member, const std::string& host) const;
  void note_try(Member member, const std::string& host);

  std::map<WorkerId, Tried> tried_;
};

}  // namespace antdt::ctl::solutions
