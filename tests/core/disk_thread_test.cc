#include "core/threads/disk_thread.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <csignal>
#include <future>
#include <vector>

namespace antdt {
namespace {

using testing::ElementsAre;

constexpr Duration kDeadline = std::chrono::seconds(10);

class DiskThreadTest : public testing::Test {
 protected:
  // Delivers until `count` results have come.
  void deliver(std::size_t count) {
    while (said_.size() < count) {
      pollfd item{disk_.ready_fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&item, 1, 10'000), 1) << "no result came";
      disk_.deliver();
    }
  }
  DiskThread::Job says(int number) {
    return [this, number] { return [this, number] { said_.push_back(number); }; };
  }
  // A job that waits until let_go() is called.
  DiskThread::Job stands_still(std::promise<void>& began) {
    return [&began, until = until_.get_future().share()]() -> DiskThread::Then {
      began.set_value();
      until.wait();
      return {};
    };
  }
  void let_go() { until_.set_value(); }

  SteadyClock real_;
  std::vector<int> said_;
  std::promise<void> until_;
  DiskThread disk_{real_, 2};
};

TEST_F(DiskThreadTest, ResultsComeInTheOrderOfTheJobs) {
  for (int i = 0; i < 100; ++i) disk_.run("a job", says(i));
  deliver(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(said_.at(static_cast<std::size_t>(i)), i);
}

TEST_F(DiskThreadTest, NothingIsDeliveredBeforeTheLoopAsks) {
  disk_.run("a job", says(1));
  ASSERT_TRUE(disk_.await_idle(kDeadline));
  EXPECT_TRUE(said_.empty());
  disk_.deliver();
  EXPECT_THAT(said_, ElementsAre(1));
}

TEST_F(DiskThreadTest, WorkThatAResultRequestsIsDone) {
  disk_.run("a job", [this] { return [this] { disk_.run("another", says(2)); }; });
  deliver(1);
  EXPECT_THAT(said_, ElementsAre(2));
}

TEST_F(DiskThreadTest, AJobThatStandsStillIsSeenWithWhatWaitsBehindIt) {
  EXPECT_FALSE(disk_.present());
  std::promise<void> began;
  disk_.run("syncing", stands_still(began));
  began.get_future().wait();
  disk_.run("behind it", says(1));
  const auto present = disk_.present();
  ASSERT_TRUE(present);
  EXPECT_EQ(present->what, "syncing");
  EXPECT_EQ(present->waiting, 1U);
  EXPECT_FALSE(disk_.await_idle(std::chrono::milliseconds(1)));
  EXPECT_FALSE(disk_.end(std::chrono::milliseconds(1)));
  let_go();
  deliver(1);
  EXPECT_TRUE(disk_.end(kDeadline));
}

TEST_F(DiskThreadTest, AJobThatMakesProgressDoesNotStandStill) {
  std::promise<void> began;
  disk_.run("reading", stands_still(began));
  began.get_future().wait();
  while (disk_.present()->still < std::chrono::milliseconds(5)) {
  }
  disk_.progress();
  EXPECT_LT(disk_.present()->still, std::chrono::milliseconds(5));
  let_go();
}

TEST_F(DiskThreadTest, WritesThatMayBeLostAreRefusedWhenTooManyWait) {
  std::promise<void> began;
  disk_.run("syncing", stands_still(began));
  began.get_future().wait();
  EXPECT_TRUE(disk_.offer("a line", says(1)));
  EXPECT_TRUE(disk_.offer("a line", says(2)));
  EXPECT_FALSE(disk_.offer("a line", says(3)));
  EXPECT_EQ(disk_.refused(), 1U);
  disk_.run("what may not be lost", says(4));
  let_go();
  deliver(3);
  EXPECT_THAT(said_, ElementsAre(1, 2, 4));
}

TEST_F(DiskThreadTest, SignalsAreNotForIt) {
  sigset_t blocked;
  sigemptyset(&blocked);
  disk_.run("looking", [&blocked] {
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return DiskThread::Then();
  });
  ASSERT_TRUE(disk_.await_idle(kDeadline));
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
}

}  // namespace
}  // namespace antdt
