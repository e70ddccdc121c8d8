// Stragglers on purpose in a job that runs: from an operator to the job daemon, and
// from there to its workers. docs/injection.md.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/message.h"

namespace antdt::wire {

// An operator's order. What was ordered before ends.
struct InjectRules {
  std::string rules;  // a list as "inject" of job.json; "[]": nothing is injected any more
  std::string who;
  std::uint64_t duration_ms = 0;  // then nothing is injected any more; 0: to the job's end
  ANTDT_MESSAGE("inject-rules") {
    v("rules", m.rules);
    v("who", m.who);
    v("duration_ms", m.duration_ms);
  }
};

// Job daemon to worker: these rules hold beside those of job.toml, from now on and in
// place of what an earlier number said. A number that is not higher changes nothing.
struct Injected {
  std::uint64_t number = 0;
  std::string rules;  // as above; their times count from the arrival
  std::uint64_t duration_ms = 0;
  bool again = false;  // to a process that came later: what kills once has killed
  ANTDT_MESSAGE("injected") {
    v("number", m.number);
    v("rules", m.rules);
    v("duration_ms", m.duration_ms);
    v("again", m.again);
  }
};

}  // namespace antdt::wire
