// Fault injection: deliberate slowness for drills, tests and simulations ([[inject]] in job.toml
// and `antdt inject`). It says which process is slowed down, when, and how much. Pure and seeded,
// so a worker, a server and the simulation compute the same. docs/injection.md is the
// specification.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/drill/trace.h"
#include "core/ids.h"

namespace antdt::drill {

// One rule. Times count from the moment when the process began to train or, for a rule that is
// given to a running job, from its arrival.
struct Rule {
  // Which processes: ids ("w1", "s0") or "*" for all workers, the host on which they run, and the
  // domain in which they are (core/domain). All that are given must match. Without ids: all workers
  // and servers there.
  std::vector<std::string> workers;
  std::string host;
  std::string domain;

  // A rule about pairs: to which processes, named in the same way, the processes above send the
  // messages that the rule slows. It has no effect but `latency` and `bandwidth`. Without any of
  // these: messages to all.
  std::vector<std::string> to_workers;
  std::string to_host;
  std::string to_domain;
  bool both_ways = false;  // messages in the other direction, too

  // When: in [from, until). With `every`, that time is cut into windows of this length. In each
  // window that `chance` selects, the rule applies for `lasts` (0: all of it), beginning at a
  // random moment. Without `every`, `chance` selects single steps.
  Duration from{};
  Duration until{};  // 0: to the end
  Duration every{};
  Duration lasts{};
  double chance = 1;

  // What is injected.
  double slowdown = 1;          // computing takes this many times as long, delays included
  Duration delay{};             // additional time for each batch, or for each request of a server
  Duration delay_per_sample{};  // additional time for each sample
  Duration data_delay{};        // additional time for getting the data of each batch
  std::string trace;            // path of a trace of slowdowns (trace.h); "": none
  Duration trace_every{};       // how long a row of the trace lasts; 0: one step
  Duration latency{};           // additional time for each message that is sent
  // bandwidth for messages that are sent, in bytes a second; 0: no bound
  std::uint64_t bandwidth = 0;
  double throttle = 1;  // the part of the time for which the process may run
  bool kill = false;    // SIGKILL when the rule begins to apply

  bool operator==(const Rule&) const = default;
};

// The process for which a rule is evaluated, or another one to which it sends.
struct Target {
  WorkerId worker;
  std::string host;
  Attempt attempt = Attempt{1};
  std::string domain = {};
};
[[nodiscard]] bool names(const Rule& rule, const Target& target);
// Whether the rule makes messages take longer.
[[nodiscard]] bool slows_links(const Rule& rule);
// The same, but between domains alone.
[[nodiscard]] bool slows_between_domains(const Rule& rule);

// How much longer a message takes. Rules for all messages of a process hold its thread back, as if
// it had one link, which takes one message after the other. Rules about pairs make the link to the
// other process long and narrow, and the sender goes on meanwhile.
struct LinkDelay {
  Duration held{};      // the sending thread waits
  Duration latency{};   // the message arrives later; those behind it need not
  Duration transfer{};  // for so long the link takes no other message
  [[nodiscard]] Duration sum() const { return held + latency + transfer; }
  bool operator==(const LinkDelay&) const = default;
};

// The effect of all rules on one process. A value; cheap to copy if it has no traces.
class Injection {
 public:
  Injection() = default;
  // Uses the rules that match the target. `seed` is the job's.
  Injection(const std::vector<Rule>& rules, const Target& target, std::uint64_t seed,
            const Traces& traces = {});

  struct Batch {
    Duration began{};        // when it began, since training began
    Duration took{};         // how long it took by itself
    std::uint64_t step = 0;  // number of the step, or of the server's request
    std::uint64_t samples = 0;
  };
  // How much longer the batch must take. Delays are added; slowdowns are multiplied.
  [[nodiscard]] Duration delay(const Batch& batch) const;

  // How much longer getting the data of a batch takes.
  [[nodiscard]] Duration data_delay(Duration at, std::uint64_t step) const;

  // Whether any message may ever take longer.
  [[nodiscard]] bool slows_links() const;
  // How much longer it takes to send a message of `bytes` bytes, at `at` in `step`. It is not known
  // to whom, so rules about pairs do not apply.
  [[nodiscard]] Duration link_delay(Duration at, std::uint64_t step, std::uint64_t bytes) const {
    return link_delay(at, step, bytes, nullptr).held;
  }
  // The same to `to`, by all rules. Null: as above.
  [[nodiscard]] LinkDelay link_delay(Duration at, std::uint64_t step, std::uint64_t bytes,
                                     const Target* to) const;

  // The part of the time for which the process may run.
  [[nodiscard]] double throttle(Duration at) const;

  // Whether the process must die at a moment in (after, until]. A rule without windows kills only a
  // first attempt, so that the next one lives.
  [[nodiscard]] bool kills(Duration after, Duration until) const;

  [[nodiscard]] bool empty() const { return rules_.empty(); }

 private:
  struct Active {
    Rule rule;
    std::uint64_t seed = 0;                  // seed of the rule for this target
    const std::vector<double>* slowdowns{};  // the target's column of the trace, by row
  };
  [[nodiscard]] static bool holds(const Active& a, Duration at, std::uint64_t step);

  std::vector<Active> rules_;
  Target self_;
  Traces traces_;
};

}  // namespace antdt::drill
