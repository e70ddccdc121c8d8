// For whom the others have waited too long. Nobody else notices that such a process hangs: one that
// has not joined reports nothing.
#pragma once

#include <map>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "ctl/servers/roll.h"

namespace antdt::ctl::servers {

class Patience {
 public:
  // A process that begins reads programs and data first.
  static constexpr Duration kStart = std::chrono::seconds(60);

  // Everybody is expected from now on who was not before.
  void expect(const Roll& roll, MonoTime now);
  // Something new is waited for, or what is waited for comes: all have their time again.
  void begin_anew(MonoTime now) { since_ = now; }
  // Those of `missing` that have been waited for so long; each is named again only after as long.
  [[nodiscard]] std::vector<Member> silent(const std::vector<Member>& missing, Duration patience,
                                           MonoTime now);

 private:
  std::map<Member, MonoTime> expected_since_;  // or named
  MonoTime since_{};
};

}  // namespace antdt::ctl::servers
