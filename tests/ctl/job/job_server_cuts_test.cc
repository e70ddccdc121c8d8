// What the job waits for while its parameter servers write a checkpoint.
#include <gmock/gmock.h>

#include "ctl/processes/io_watch.h"
#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobServerCutsTest : public JobServersTest {
 protected:
  JobServerCutsTest() {
    start();
    fetch(w(0), 0, 40);
  }
  // A second passes in which all work; `on_disk`: how many bytes of its slices s0 has written.
  job::Effects second(std::uint64_t on_disk) {
    clock.advance(std::chrono::seconds(1));
    wire::Metrics works;
    works.sum.activity = "compute";
    works.sum.step = Step{++step_};
    for (const Member m : {w(0), w(1), s(1)}) says(m, works);
    works.sum.io = kWritesCheckpoint;
    works.sum.io_path = "/run/checkpoints/.tmp-1-g1";
    works.sum.io_done_bytes = on_disk;
    works.sum.io_total_bytes = 1'000'000;
    says(s(0), works);
    return feed(job::TimePassed{});
  }

 private:
  std::uint64_t step_ = 0;
};

TEST_F(JobServerCutsTest, AStopWaitsForItsCheckpointAsLongAsAServerWritesBytes) {
  feed(lifecycle::StopRequested{"asked by me", std::chrono::seconds(30)});
  for (std::uint64_t n = 1; n <= 300; ++n) {
    ASSERT_THAT(all<lifecycle::StopWorker>(second(n)), IsEmpty()) << n;
  }
  int waited = 1;
  while (waited < 60 && all<lifecycle::StopWorker>(second(300)).empty()) ++waited;
  EXPECT_EQ(waited, 10) << "after the last byte";
}

TEST_F(JobServerCutsTest, NoOtherIsOrderedWhileAServerWritesOneForAnHour) {
  const auto orders = sent<wire::PsCut>(order_checkpoint());
  ASSERT_THAT(orders, SizeIs(2));
  const std::uint64_t ordered = orders[0].second.number;
  for (std::uint64_t n = 1; n <= 3600; ++n) {
    const auto outputs = second(n);
    ASSERT_THAT(all<lifecycle::StopWorker>(outputs), IsEmpty()) << n;
    for (const auto& [server, again] : sent<wire::PsCut>(outputs)) {
      ASSERT_EQ(again.number, ordered) << n;
    }
  }
  says(s(0), wire::PsSaved{ordered, 2, 0, {}, {places(w(0), 1, 8)}, ""});
  const auto last = says(s(1), wire::PsSaved{ordered, 2, 0, {}, {}, ""});
  EXPECT_THAT(all<job::StoreCheckpoint>(last), SizeIs(1));
}

}  // namespace
}  // namespace antdt::ctl
