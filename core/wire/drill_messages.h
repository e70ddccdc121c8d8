// Fault injections into a running job: from an operator to the job daemon, and from there to its
// workers. docs/injection.md.
#pragma once

#include <cstdint>
#include <string>

#include "core/wire/message.h"

namespace antdt::wire {

// An operator's order. It replaces the previous one.
struct InjectRules {
  std::string rules;  // a list like "inject" in job.json; "[]": nothing is injected any more
  std::string who;
  // time after which nothing is injected any more; 0: until the job's end
  std::uint64_t duration_ms = 0;
  ANTDT_MESSAGE("inject-rules") {
    v("rules", m.rules);
    v("who", m.who);
    v("duration_ms", m.duration_ms);
  }
};

// Job daemon to worker: from now on these rules apply beside those of job.toml, and replace those
// of an earlier number. A number that is not higher changes nothing.
struct Injected {
  std::uint64_t number = 0;
  std::string rules;  // as above; their times count from the arrival of this message
  std::uint64_t duration_ms = 0;
  // the order is repeated to a process that came later, so a rule that kills once has had its
  // effect
  bool again = false;
  ANTDT_MESSAGE("injected") {
    v("number", m.number);
    v("rules", m.rules);
    v("duration_ms", m.duration_ms);
    v("again", m.again);
  }
};

}  // namespace antdt::wire
