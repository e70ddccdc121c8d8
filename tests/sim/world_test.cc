#include "sim/world.h"

#include <gtest/gtest.h>

#include "sim/run.h"

namespace antdt::sim {
namespace {

using std::chrono::seconds;

TEST(WorldTest, ThingsHappenInTheOrderOfTheirTimesAndThenOfTheirMaking) {
  World world(1, false);
  std::string order;
  world.after(seconds(2), [&] { order += 'c'; });
  world.after(seconds(1), [&] { order += 'a'; });
  world.after(seconds(1), [&] { order += 'b'; });
  while (world.run_one()) {
  }
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(world.elapsed(), seconds(2));
}

TEST(WorldTest, EventsOfADeadProcessDoNotHappen) {
  World world(1, false);
  Life life;
  int happened = 0;
  world.after(life, seconds(1), [&] { ++happened; });
  world.after(life, seconds(3), [&] { ++happened; });
  world.after(seconds(2), [&] { life.end(); });
  world.after(seconds(2), [&] { world.after(life, seconds(2), [&] { happened += 10; }); });
  while (world.run_one()) {
  }
  EXPECT_EQ(happened, 11) << "it lives again after its end";
}

TEST(WorldTest, TheFirstViolationCounts) {
  World world(1, false);
  world.violate("first", "a");
  world.violate("second", "b");
  EXPECT_EQ(world.violation()->invariant, "first");
}

TEST(RunTest, OneSeedIsOneRun) {
  Options options;
  options.seed = 7;
  options.trace = true;
  set_faults("all", options.faults);
  const RunReport first = run(options);
  const RunReport second = run(options);
  EXPECT_FALSE(first.violation) << first.violation->detail;
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.transcript, second.transcript);
  options.seed = 8;
  EXPECT_NE(run(options).transcript, first.transcript);
}

TEST(RunTest, OneSeedIsOneRunAroundServersToo) {
  Options options;
  options.seed = 9;
  options.trace = true;
  options.sync = Sync::kServers;
  set_faults("all", options.faults);
  const RunReport first = run(options);
  EXPECT_FALSE(first.violation) << first.violation->detail;
  EXPECT_EQ(run(options).transcript, first.transcript);
  EXPECT_NE(first.transcript.find("ps-commit"), std::string::npos);
}

TEST(RunTest, TracingChangesNothing) {
  Options options;
  options.seed = 11;
  set_faults("all", options.faults);
  const RunReport silent = run(options);
  options.trace = true;
  EXPECT_EQ(run(options).events, silent.events);
}

}  // namespace
}  // namespace antdt::sim
