// The number of parameter servers changes while a simulated job trains without other faults: then
// no record is trained again.
#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "tests/sanitized.h"

namespace antdt::sim {
namespace {

using std::chrono::seconds;

struct Played {
  World world;
  Cluster cluster;

  explicit Played(std::uint64_t seed) : world(seed, true), cluster(world, options(seed)) {
    cluster.begin();
  }
  static Options options(std::uint64_t seed) {
    Options o;
    o.seed = seed;
    o.sync = Sync::kServers;
    o.workers = 3;
    o.evaluate = false;
    o.epochs = 12;
    o.faults_stop = seconds(1000);
    return o;
  }
  template <class Condition>
  bool until(const char* what, Condition condition) {
    const MonoTime end = world.now() + seconds(120);
    while (cluster.ended() || !condition()) {
      const bool goes_on = !cluster.ended() && !world.violation() && world.now() <= end;
      if (goes_on && world.run_one()) continue;
      ADD_FAILURE() << "not until: " << what << "\n"
                    << (world.violation() ? world.violation()->detail : cluster.describe());
      return false;
    }
    return true;
  }
  // How many records are committed, in a stream over all epochs.
  [[nodiscard]] std::uint64_t committed() const {
    const ctl::JobMachine& m = *cluster.machine();
    return m.ledger().phase().epoch.value * 1'000'000ULL + m.ledger().committed();
  }
  [[nodiscard]] std::uint64_t lineage() const {
    return cluster.machine()->membership().lineage().value;
  }
  bool becomes(std::uint32_t count) {
    const std::uint64_t before = lineage();
    std::uint64_t most = 0;
    cluster.daemon()->feed_soon(ctl::lifecycle::ServerCountRequested{count, "a test"});
    const bool changed = until("the servers are others", [&] {
      if (lineage() == before) most = std::max(most, committed());
      return lineage() > before;
    });
    if (!changed) return false;
    EXPECT_GE(committed(), most) << "nothing is trained again";
    const bool serves = until("they serve", [&] {
      return cluster.machine()->server_group().serving() && committed() > most;
    });
    EXPECT_EQ(cluster.machine()->server_group().placement().endpoints().size(), count);
    return serves;
  }
};

TEST(ServerCountSimulation, ServersComeAndGoAndNoRecordIsTrainedAgain) {
  int played = 0;
  for (std::uint64_t seed = 1; seed <= 40 && played < all_or_some(15, 2); ++seed) {
    SCOPED_TRACE(seed);
    Played job(seed);
    const auto trains = [&] {
      return job.cluster.machine() != nullptr && job.cluster.machine()->server_group().serving() &&
             job.cluster.machine()->ledger().committed() > 20;
    };
    if (!job.until("it trains", trains)) return;
    const auto servers = static_cast<std::uint32_t>(
        job.cluster.machine()->server_group().placement().endpoints().size());
    const auto more =
        job.cluster.machine()->check(ctl::lifecycle::ServerCountRequested{servers + 1, "a test"});
    if (!more) continue;  // no room
    ++played;
    ASSERT_TRUE(job.becomes(servers + 1));
    ASSERT_TRUE(job.becomes(1));
    while (!job.cluster.ended() && !job.world.violation()) ASSERT_TRUE(job.world.run_one());
    ASSERT_FALSE(job.world.violation()) << job.world.violation()->detail;
    EXPECT_EQ(job.cluster.outcome()->state, JobEnd::kDone);
    EXPECT_EQ(job.world.transcript().find("note hang"), std::string::npos);
  }
  EXPECT_GT(played, 0);
}

}  // namespace
}  // namespace antdt::sim
