// When a persistent straggler is better killed and started again elsewhere: the
// kill-restart of AntDT-ND (Xiao et al., arXiv:2404.09679).
//
// A worker is one when its speed over the persistent window is more than kLambda
// times lower than the mean of the others', and its verdict says that this has
// lasted. It is wished away only when
//   - the cluster is not busy: another host has room now, and nobody waits for
//     a place;
//   - nobody of that host is slow as well: it would be as slow there;
//   - the time that the rest of the job then takes less is worth kWorth times what
//     the restart takes, and at least kLeastGain of what the rest takes now. A
//     restart takes what restarts of this job took so far, or before the first
//     one what its workers took to start; the others train meanwhile;
//   - it was not restarted kMost times before, and the last time helped: who is
//     slow again on another host is slow for its own reasons.
//
// A parameter server is one when a request takes it kLambda times as long as the others
// in the mean, for as long. The same conditions hold. What the job gains is at most the time
// that the server is busy with what a faster one had done already; a batch waits for the
// slowest server, so where it is busy most of the time that is most of it.
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
  // Where nobody has been seen to start yet.
  static constexpr Duration kRestartTakes = std::chrono::seconds(30);

  // At most one process: the slowest worker, or else the slowest server.
  [[nodiscard]] Decision decide(const ClusterView& view);

 private:
  struct Tried {
    Attempt attempt;  // that was wished away
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
