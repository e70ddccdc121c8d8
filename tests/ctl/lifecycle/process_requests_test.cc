#include "ctl/lifecycle/process_requests.h"

#include "tests/ctl/lifecycle/lifecycle_fixture.h"

namespace antdt::ctl {
namespace {

class ProcessRequestsTest : public LifecycleTest {
 protected:
  void place(std::uint32_t count) {
    hosts();
    lifecycle::WorkersPlaced placed;
    for (std::uint32_t i = 0; i < count; ++i) placed.workers.push_back({w(i).worker, "a", 0});
    step(placed);
  }
  std::vector<ProcessRequests::Request> due() { return requests.due(life, clock.now()); }
  ProcessRequests requests;
};

TEST_F(ProcessRequestsTest, AStartIsAskedForAgainUntilTheAgentConfirmsIt) {
  place(1);
  requests.asked(w(0), clock.now());
  EXPECT_TRUE(due().empty());
  clock.advance(ProcessRequests::kAgainAfter);
  const auto again = due();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(std::get<lifecycle::StartWorker>(again[0]).member, w(0));
  step(lifecycle::WorkerStarted{w(0), 7});
  EXPECT_TRUE(due().empty());
}

TEST_F(ProcessRequestsTest, AnIncarnationThatNeverAskedAsksAtOnce) {
  place(1);
  EXPECT_EQ(due().size(), 1U);
}

TEST_F(ProcessRequestsTest, AProcessThatHadItsGraceIsKilledAgainAndAgain) {
  place(1);
  step(lifecycle::WorkerStarted{w(0), 7});
  step(lifecycle::WorkerHung{w(0), "it does not answer"});
  requests.asked(w(0), clock.now());
  clock.advance(std::chrono::seconds(3600));
  const auto again = due();
  ASSERT_EQ(again.size(), 1U);
  const auto& stop = std::get<lifecycle::StopWorker>(again[0]);
  EXPECT_EQ(stop.member, w(0));
  EXPECT_EQ(stop.grace, Duration::zero());
}

}  // namespace
}  // namespace antdt::ctl
