#include "sim/run.h"

#include "sim/cluster.h"

namespace antdt::sim {
namespace {

// The run goes on for this long after the end of the job: whatever is still under way may change
// nothing.
constexpr Duration kAfterwards = std::chrono::seconds(2);

}  // namespace

RunReport run(const Options& options) {
  World world(options.seed, options.trace);
  Cluster cluster(world, options);
  cluster.begin();
  const Duration limit = options.faults_stop + options.end_within;
  std::optional<Duration> ended;
  while (!world.violation() && world.run_one()) {
    if (cluster.ended() && !ended) ended = world.elapsed();
    if (ended && world.elapsed() > *ended + kAfterwards) break;
    if (world.elapsed() > limit) {
      world.violate("it ends", fmt::format("not within {:.0f} s after the last fault:\n{}",
                                           to_seconds(options.end_within), cluster.describe()));
    }
  }
  return {world.violation(), world.events(), ended.value_or(world.elapsed()), world.transcript()};
}

}  // namespace antdt::sim
