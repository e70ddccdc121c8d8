// The monitor's verdicts as people read them: in words, and as events of the run when
// they begin, change and end. Pure.
//
// Stragglers only: a leader makes nobody wait. A verdict is told when it was there at
// two looks in a row, so what lasted a moment makes no event; and the same one (kind and
// cause) of a worker once in a persistent window, so one that comes and goes is no flood.
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
  // What is new since the look before, a sentence each.
  [[nodiscard]] std::vector<std::string> look(const ClusterView& view, MonoTime now);

 private:
  using Name = std::pair<VerdictKind, Cause>;
  struct Watched {
    Name seen{};  // at the look before
    Name told{};
    std::map<Name, MonoTime> told_at{};
  };
  void look(const Member& who, const std::string& host, const Verdict& verdict,
            const ClusterView& view, MonoTime now, std::map<Member, Watched>& next,
            std::vector<std::string>& news);

  std::map<Member, Watched> watched_;
};

}  // namespace antdt::ctl
