// The monitor's verdicts in words for people, and as events of the run when they begin, change and
// end. Pure.
//
// Only stragglers are reported: nobody waits for a leader. A verdict becomes an event when it was
// there at two looks in a row, so a brief one makes none. A process of which not enough is
// measured, as after a change of the plan, keeps the verdict that it had. The same verdict (kind
// and cause) of a worker becomes an event once in a persistent window, so one that comes and goes
// does not flood the log.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/monitor/view.h"

namespace antdt::ctl {

// "ok", or kind, severity and cause: "transient straggler, 3.0x slower (throttled)".
[[nodiscard]] std::string verdict_text(const Verdict& verdict);
[[nodiscard]] bool is_straggler(const Verdict& verdict);

class VerdictWatch {
 public:
  // What is new since the previous look, one sentence for each verdict.
  [[nodiscard]] std::vector<std::string> look(const ClusterView& view, MonoTime now);

 private:
  using Name = std::pair<VerdictKind, Cause>;
  struct Watched {
    Name seen{};  // the verdict at the previous look
    Name told{};
    std::map<Name, MonoTime> told_at{};
  };
  // View: a WorkerView or ServerView.
  template <class View>
  void look(const View& process, const ClusterView& view, MonoTime now,
            std::map<Member, Watched>& next, std::vector<std::string>& news);

  std::map<Member, Watched> watched_;
};

}  // namespace antdt::ctl
