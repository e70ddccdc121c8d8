// Programs that are told an event, well and badly.
#include "jobd/monitoring/event_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/os/fs.h"
#include "core/os/process.h"

namespace antdt::jobd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class EventHookTest : public testing::Test {
 protected:
  EventHookTest() { ignore_sigpipe(); }  // as every program of ours does

  std::unique_ptr<EventHook> start(const std::string& script, const std::string& line) {
    auto hook = EventHook::start({"/bin/sh", "-c", script}, directory_.path(), line);
    EXPECT_TRUE(hook) << hook.error().message;
    return hook ? std::move(*hook) : nullptr;
  }
  // Ticks until `done`, as the daemon's loop does.
  void tick_until(EventHook& hook, const std::function<bool()>& done) {
    const MonoTime deadline = clock_.now() + seconds(60);
    while (!done()) {
      ASSERT_LT(clock_.now(), deadline);
      ended_ = hook.tick([this](const std::string& words) { words_ += words; });
      if (!ended_) std::this_thread::sleep_for(milliseconds(5));
    }
  }
  // How it ended.
  std::string run(const std::string& script, const std::string& line) {
    const auto hook = start(script, line);
    if (hook != nullptr) tick_until(*hook, [this] { return ended_.has_value(); });
    return ended_.value_or("it runs");
  }

  SteadyClock clock_;
  TempDir directory_;
  std::optional<std::string> ended_;
  std::string words_;
};

TEST_F(EventHookTest, ItReadsTheEventAndThenTheEnd) {
  EXPECT_EQ(run("cat > told; echo out; echo err >&2", "an event\n"), "");
  EXPECT_EQ(read_file(directory_ / "told").value_or(""), "an event\n");
  EXPECT_THAT(words_, HasSubstr("out\n"));
  EXPECT_THAT(words_, HasSubstr("err\n"));
}

TEST_F(EventHookTest, AnEventThatIsLargerThanAPipeArrivesWhole) {
  EXPECT_EQ(run("wc -c", std::string(4 << 20, 'x')), "");
  EXPECT_THAT(words_, HasSubstr("4194304"));
}

TEST_F(EventHookTest, OneThatDoesNotReadIsNoFailure) {
  EXPECT_EQ(run("exec < /dev/null; exit 0", std::string(4 << 20, 'x')), "");
}

TEST_F(EventHookTest, AnExitCodeOrASignalIsToldInWords) {
  EXPECT_EQ(run("exit 3", "x\n"), "ended with code 3");
  ended_.reset();
  EXPECT_EQ(run("kill -9 $$", "x\n"), "was ended by signal 9");
}

TEST_F(EventHookTest, WhatItStartedEndsWithIt) {
  auto hook = start("sleep 1000 & echo $! > pid; sleep 1000", "x\n");
  ASSERT_NE(hook, nullptr);
  const std::string file = directory_ / "pid";
  tick_until(*hook, [&] { return read_file(file).value_or("").ends_with('\n'); });
  EXPECT_FALSE(ended_);
  const auto child = static_cast<pid_t>(std::stol(*read_file(file)));
  const pid_t pid = hook->pid();
  hook.reset();
  const MonoTime deadline = clock_.now() + seconds(20);
  const auto lives = [](pid_t process) {
    const std::string stat = read_file(fmt::format("/proc/{}/stat", process)).value_or("");
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  };
  while ((!reaped(pid) || lives(child)) && clock_.now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_FALSE(lives(child));
}

TEST_F(EventHookTest, AProgramThatIsNotThereIsAnError) {
  const auto hook = EventHook::start({"/no/such/hook"}, directory_.path(), "x\n");
  ASSERT_FALSE(hook);
  EXPECT_THAT(hook.error().message, HasSubstr("/no/such/hook"));
}

}  // namespace
}  // namespace antdt::jobd
