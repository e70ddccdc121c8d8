#include "core/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace antdt {
namespace {

using namespace std::chrono_literals;

// A loop that fails the test instead of running for ever.
class LoopTest : public testing::Test {
 protected:
  void run() {
    loop_.call_after(20s, [this] {
      ADD_FAILURE() << "the loop did not stop by itself";
      loop_.stop();
    });
    loop_.run();
  }
  SteadyClock clock_;
  EventLoop loop_{clock_};
};

struct Pipe {
  Pipe() {
    if (pipe(ends.data()) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  void fill() const { EXPECT_EQ(write(ends[1], "x", 1), 1); }
  void drain() const {
    char c = 0;
    EXPECT_EQ(read(ends[0], &c, 1), 1);
  }
  [[nodiscard]] int reading() const { return ends[0]; }
  std::array<int, 2> ends{};
};

TEST_F(LoopTest, RunsTimersInTheOrderOfTheirTimes) {
  std::vector<int> order;
  loop_.call_after(6ms, [&] {
    order.push_back(3);
    loop_.stop();
  });
  loop_.call_after(2ms, [&] { order.push_back(1); });
  loop_.call_after(4ms, [&] { order.push_back(2); });
  run();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(LoopTest, RunsTimersOfOneTimeInTheOrderTheyWereSet) {
  std::vector<int> order;
  const MonoTime when = loop_.now() + 1ms;
  for (int i = 0; i < 5; ++i) loop_.call_at(when, [&order, i] { order.push_back(i); });
  loop_.call_at(when, [&] { loop_.stop(); });
  run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(LoopTest, NeverRunsATimerBeforeItsTime) {
  const MonoTime when = loop_.now() + 5ms;
  MonoTime ran{};
  loop_.call_at(when, [&] {
    ran = loop_.now();
    loop_.stop();
  });
  run();
  EXPECT_GE(ran, when);
}

TEST_F(LoopTest, DoesNotRunACancelledTimer) {
  bool ran = false;
  const TimerId cancelled = loop_.call_after(1ms, [&] { ran = true; });
  loop_.call_after(5ms, [&] { loop_.stop(); });
  loop_.cancel(cancelled);
  loop_.cancel(cancelled);
  run();
  EXPECT_FALSE(ran);
}

TEST_F(LoopTest, ATimerMayCancelAnotherThatIsDueAsWell) {
  bool ran = false;
  const MonoTime when = loop_.now() + 1ms;
  TimerId second;
  loop_.call_at(when, [&] { loop_.cancel(second); });
  second = loop_.call_at(when, [&] { ran = true; });
  loop_.call_after(5ms, [&] { loop_.stop(); });
  run();
  EXPECT_FALSE(ran);
}

TEST_F(LoopTest, ATimerThatSetsItselfForNowDoesNotKeepDescriptorsWaiting) {
  Pipe pipe;
  std::function<void()> again = [&] { loop_.call_after(0s, again); };
  again();
  loop_.watch_fd(pipe.reading(), [&] { loop_.stop(); });
  pipe.fill();
  run();
}

TEST_F(LoopTest, AnEarlierTimerSetLaterComesFirst) {
  std::vector<int> order;
  const auto comes = [&](int which) {
    order.push_back(which);
    loop_.stop();
  };
  loop_.call_after(10s, [&] { comes(2); });
  loop_.call_after(1ms, [&] { loop_.call_after(1ms, [&] { comes(1); }); });
  run();
  EXPECT_EQ(order, std::vector{1});
}

TEST_F(LoopTest, ATimerForTheEndOfTimeNeverRuns) {
  loop_.call_after(Duration::max(), [] { FAIL(); });
  loop_.call_after(1ms, [&] { loop_.stop(); });
  run();
}

TEST_F(LoopTest, OffersWhatIsLeftUnreadAgain) {
  Pipe pipe;
  int calls = 0;
  pipe.fill();
  pipe.fill();
  loop_.watch_fd(pipe.reading(), [&] {
    pipe.drain();
    if (++calls == 2) loop_.stop();
  });
  run();
  EXPECT_EQ(calls, 2);
}

TEST_F(LoopTest, TellsWhenADescriptorCanBeWrittenTo) {
  const Pipe pipe;
  const std::string bytes(1 << 20, 'x');
  fcntl(pipe.ends[1], F_SETFL, O_NONBLOCK);
  EXPECT_GT(write(pipe.ends[1], bytes.data(), bytes.size()), 0);  // it is full
  bool emptied = false;
  loop_.watch_writable_fd(pipe.ends[1], [&] {
    EXPECT_TRUE(emptied);
    loop_.stop();
  });
  loop_.call_after(5ms, [&] {
    emptied = true;
    std::string into(1 << 20, '\0');
    EXPECT_GT(read(pipe.reading(), into.data(), into.size()), 0);
  });
  run();
}

TEST_F(LoopTest, ACallbackMayEndItsOwnWatch) {
  Pipe pipe;
  int calls = 0;
  loop_.watch_fd(pipe.reading(), [&] {
    ++calls;
    loop_.unwatch_fd(pipe.reading());
    loop_.call_after(2ms, [&] { loop_.stop(); });
  });
  pipe.fill();
  run();
  EXPECT_EQ(calls, 1);
}

TEST_F(LoopTest, ACallbackMayEndTheWatchOfAnotherThatIsReadyToo) {
  Pipe first;
  Pipe second;
  int calls = 0;
  const auto either = [&] {
    ++calls;
    loop_.unwatch_fd(first.reading());
    loop_.unwatch_fd(second.reading());
    loop_.call_after(2ms, [&] { loop_.stop(); });
  };
  loop_.watch_fd(first.reading(), either);
  loop_.watch_fd(second.reading(), either);
  first.fill();
  second.fill();
  run();
  EXPECT_EQ(calls, 1);
}

TEST_F(LoopTest, ADescriptorNumberUsedAgainInOneTurnIsNotMistakenForTheOldOne) {
  auto ready = std::make_unique<Pipe>();
  Pipe other;
  std::unique_ptr<Pipe> reused;
  bool wrong = false;
  const int number = ready->reading();
  const auto replace = [&] {
    if (reused) return;
    loop_.unwatch_fd(number);
    ready.reset();
    reused = std::make_unique<Pipe>();  // takes the lowest free number
    ASSERT_EQ(reused->reading(), number);
    loop_.watch_fd(number, [&] { wrong = true; });
    loop_.unwatch_fd(other.reading());
    loop_.call_after(2ms, [&] { loop_.stop(); });
  };
  loop_.watch_fd(other.reading(), replace);
  loop_.watch_fd(number, replace);
  other.fill();
  ready->fill();
  run();
  EXPECT_FALSE(wrong) << "nothing was written to the new pipe";
}

TEST_F(LoopTest, ServesTwoHundredDescriptorsInOneTurnOrAFew) {
  std::vector<std::unique_ptr<Pipe>> pipes;
  int calls = 0;
  int turns = 0;
  loop_.at_turn_end([&] { ++turns; });
  for (int i = 0; i < 200; ++i) {
    const Pipe* pipe = pipes.emplace_back(std::make_unique<Pipe>()).get();
    loop_.watch_fd(pipe->reading(), [&, pipe] {
      pipe->drain();
      if (++calls == 200) loop_.stop();
    });
    pipe->fill();
  }
  run();
  EXPECT_EQ(calls, 200);
  EXPECT_LE(turns, 5);
}

TEST_F(LoopTest, TurnEndRunsOnceAfterTheCallbacksOfATurn) {
  Pipe first;
  Pipe second;
  std::string order;
  const auto read = [&](const Pipe& pipe) {
    pipe.drain();
    order += 'r';
  };
  loop_.watch_fd(first.reading(), [&] { read(first); });
  loop_.watch_fd(second.reading(), [&] { read(second); });
  loop_.at_turn_end([&] {
    order += 'e';
    if (order.size() >= 3) loop_.stop();
  });
  first.fill();
  second.fill();
  run();
  EXPECT_EQ(order, "rre");
}

TEST_F(LoopTest, TellsWhenAChildEnds) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  bool ended = false;
  ASSERT_TRUE(loop_.watch_process(child, [&] {
    ended = true;
    loop_.stop();
  }));
  run();
  EXPECT_TRUE(ended);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child) << "the child is left to its parent to reap";
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(LoopTest, WatchingAProcessThatIsGoneIsAnError) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const Status watched = loop_.watch_process(child, [] { FAIL(); });
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().kind, ErrorKind::kUnreachable);
}

TEST_F(LoopTest, SignalsArriveInTheLoop) {
  std::vector<int> got;
  ASSERT_TRUE(loop_.watch_signals({SIGUSR1, SIGUSR2}, [&](int signal) {
    got.push_back(signal);
    if (got.size() == 2) loop_.stop();
  }));
  raise(SIGUSR1);
  raise(SIGUSR2);
  run();
  EXPECT_EQ(got, (std::vector{SIGUSR1, SIGUSR2}));
}

TEST_F(LoopTest, StopsFromAnotherThread) {
  std::thread other([&] { loop_.stop_from_any_thread(); });
  run();
  other.join();
}

TEST_F(LoopTest, RunsAgainAfterItWasStopped) {
  int runs = 0;
  for (int i = 0; i < 2; ++i) {
    loop_.call_after(1ms, [&] {
      ++runs;
      loop_.stop();
    });
    loop_.run();
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace antdt
