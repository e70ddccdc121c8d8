// When the end of a process whose shim is gone is told. The clock advances only when the test says
// so.
#include "antdtd/processes/endings.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace antdt::antdtd {
namespace {

class EndingsTest : public testing::Test {
 protected:
  // Always readable, so the loop never waits for the fake clock.
  EndingsTest() : pump_(eventfd(1, EFD_CLOEXEC)) {
    loop_.watch_fd(pump_, [this] { loop_.stop(); });
  }
  ~EndingsTest() override { close(pump_); }

  void make_sure(pid_t helper) {
    endings_.make_sure({"job-1", {{'w', 0}, Attempt{1}}}, {helper, "", [this] { ++told_; }});
  }
  void pass(Duration time) {
    clock_.advance(time);
    for (int turns = 0; turns < 3; ++turns) loop_.run();
  }
  // Runs the loop until `condition` holds, while the loop's clock stands still.
  template <class Condition>
  [[nodiscard]] bool comes_to(const Condition& condition) {
    const MonoTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) loop_.run();
    return condition();
  }
  static pid_t start_helper() {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }

  ManualClock clock_;
  EventLoop loop_{clock_};
  Endings endings_{loop_};
  int told_ = 0;

 private:
  int pump_;
};

TEST_F(EndingsTest, AnEndThatNobodyHelpsWithIsToldByTheLoopAndNotWithinTheCall) {
  make_sure(0);
  EXPECT_EQ(told_, 0);
  pass(Duration::zero());
  EXPECT_EQ(told_, 1);
}

TEST_F(EndingsTest, AnEndIsToldAsSoonAsItsHelperHasEndedWhichIsReaped) {
  const pid_t helper = start_helper();
  ASSERT_GT(helper, 0);
  make_sure(helper);
  pass(Duration::zero());
  EXPECT_EQ(told_, 0);
  kill(helper, SIGKILL);
  EXPECT_TRUE(comes_to([&] { return told_ == 1; }));
  EXPECT_NE(kill(helper, 0), 0);
  pass(Endings::kHelperPatience);
  EXPECT_EQ(told_, 1);
}

TEST_F(EndingsTest, AStoppedHelperDoesNotHoldTheLoopUpAndIsKilledWhenItsTimeIsOver) {
  const pid_t helper = start_helper();
  ASSERT_GT(helper, 0);
  kill(helper, SIGSTOP);
  make_sure(helper);
  pass(Endings::kHelperPatience - std::chrono::milliseconds(1));
  EXPECT_EQ(told_, 0);
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(told_, 1);
  EXPECT_TRUE(comes_to([&] { return kill(helper, 0) != 0; })) << "it is killed and reaped";
  EXPECT_EQ(told_, 1);
}

}  // namespace
}  // namespace antdt::antdtd
