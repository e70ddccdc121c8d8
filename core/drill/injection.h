// Deliberate slowness, for drills, tests and simulations ([[inject]] in job.toml and
// `antdt inject`): who is slowed down, when and how much. Pure and seeded: a worker,
// a server and the simulation answer alike. docs/injection.md says what it means.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/drill/trace.h"
#include "core/ids.h"

namespace antdt::drill {

// One entry. Moments count from where the process began to train, or from where a
// rule that is given to a running job arrived.
struct Rule {
  // Of whom: ids ("w1", "s0") or "*" for all workers; and of what runs on this host.
  // Both: who is both. No names: all on the host, workers and servers.
  std::vector<std::string> workers;
  std::string host;

  // When: in [from, until). With `every` that time is cut in windows of this length:
  // of each one `lasts` (0: all of it) at a random moment in it, if chance picks the
  // window. Without, chance picks single steps.
  Duration from{};
  Duration until{};  // 0: to the end
  Duration every{};
  Duration lasts{};
  double chance = 1;

  // What.
  double slowdown = 1;          // computing takes this many times as long, delays included
  Duration delay{};             // more for each batch, or each request of a server
  Duration delay_per_sample{};  // more for each sample
  Duration data_delay{};        // more for getting the data of each batch
  std::string trace;            // path of a trace of slowdowns (trace.h); "": none
  Duration trace_every{};       // how long a row of it lasts; 0: one step
  Duration latency{};           // more for each message that is sent
  std::uint64_t bandwidth = 0;  // of what is sent, in bytes a second; 0: no bound
  double throttle = 1;          // the part of the time that the process may run
  bool kill = false;            // SIGKILL when the rule begins to hold

  bool operator==(const Rule&) const = default;
};

// Who is asked about.
struct Target {
  WorkerId worker;
  std::string host;
  Attempt attempt = Attempt{1};
};
[[nodiscard]] bool names(const Rule& rule, const Target& target);

// What is done to one process. A value; cheap to copy where it has no traces.
class Injection {
 public:
  Injection() = default;
  // Of `rules` those that name the target count. `seed` is the job's.
  Injection(const std::vector<Rule>& rules, const Target& target, std::uint64_t seed,
            const Traces& traces = {});

  struct Batch {
    Duration began{};        // since training began
    Duration took{};         // by itself
    std::uint64_t step = 0;  // number of the step, or of the server's request
    std::uint64_t samples = 0;
  };
  // How much longer the batch must take. Delays add up; slowdowns multiply.
  [[nodiscard]] Duration delay(const Batch& batch) const;

  // How much longer getting the data of a batch takes.
  [[nodiscard]] Duration data_delay(Duration at, std::uint64_t step) const;

  // Whether any message ever takes longer.
  [[nodiscard]] bool slows_links() const;
  // How much longer a message of so many bytes takes to be sent, at `at` in `step`.
  [[nodiscard]] Duration link_delay(Duration at, std::uint64_t step, std::uint64_t bytes) const;

  // The part of the time that the process may run.
  [[nodiscard]] double throttle(Duration at) const;

  // Whether the process is to die at a moment in (after, until]. A rule without
  // windows kills a first attempt only: the next one lives.
  [[nodiscard]] bool kills(Duration after, Duration until) const;

  [[nodiscard]] bool empty() const { return rules_.empty(); }

 private:
  struct Active {
    Rule rule;
    std::uint64_t seed = 0;                  // of the rule for this target
    const std::vector<double>* slowdowns{};  // of the target in the trace, by row
  };
  [[nodiscard]] static bool holds(const Active& a, Duration at, std::uint64_t step);

  std::vector<Active> rules_;
  Attempt attempt_ = Attempt{1};
  Traces traces_;
};

}  // namespace antdt::drill
