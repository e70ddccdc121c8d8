// For which processes the others have waited too long. Nothing else finds such a process when it
// hangs, because one that has not joined sends no reports.
#pragma once

#include <map>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/servers/roll.h"

namespace antdt::ctl::servers {

class Patience {
 public:
  // A process that starts first loads its program and data.
  static constexpr Duration kStart = std::chrono::seconds(60);

  // From now on these processes are expected, too.
  void expect(const Roll& roll, MonoTime now);
  // Something new is waited for, or progress was made: the patience with all begins anew.
  void begin_anew(MonoTime now) { since_ = now; }
  // The processes of `missing` that were waited for too long. Each is returned again only after the
  // same time.
  [[nodiscard]] std::vector<Member> silent(const std::vector<Member>& missing, Duration patience,
                                           MonoTime now);

 private:
  std::map<Member, MonoTime> expected_since_;  // or since when it was last returned
  MonoTime since_{};
};

}  // namespace antdt::ctl::servers
