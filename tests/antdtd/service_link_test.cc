#include "antdtd/agent/service_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Duration kLimit = milliseconds(400);
constexpr Duration kPatience = seconds(20);

TEST(SpeaksForLoopTest, OnlyForALateLoopThatWaitsForADevice) {
  constexpr Duration kHalf = kLimit / 2;
  EXPECT_FALSE(speaks_for_loop(kHalf, kLimit, true)) << "the loop is not late";
  EXPECT_TRUE(speaks_for_loop(kLimit * 3 / 4, kLimit, true));
  EXPECT_TRUE(speaks_for_loop(kLimit * 100, kLimit, true)) << "as long as the disk takes";
  EXPECT_FALSE(speaks_for_loop(kLimit * 3 / 4, kLimit, false))
      << "it computes, or waits for a lock";
}

// The test is the manager, and its thread runs the loop.
class ServiceLinkTest : public testing::Test {
 protected:
  ServiceLinkTest() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(mkfifo(disk_.c_str(), 0600), 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = settings_.socket;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // The next datagram; "" if none comes in time.
  std::string next(Duration patience = kPatience) {
    pollfd item{fd_.get(), POLLIN, 0};
    const auto ms = std::chrono::duration_cast<milliseconds>(patience).count();
    if (poll(&item, 1, static_cast<int>(ms)) != 1) return "";
    std::array<char, 4096> text{};
    const ssize_t size = recv(fd_.get(), text.data(), text.size(), 0);
    return {text.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
  }

  // Until `said` holds, or nothing comes.
  std::string await_datagram(const std::function<bool(const std::string&)>& said) {
    std::string text;
    do text = next();
    while (!text.empty() && !said(text));
    return text;
  }

  // Waits in the kernel as one waits for a disk (state D), until disk_answers(): so waits who
  // starts a child by posix_spawn(), until that executes its program, and this one opens a pipe
  // first.
  void wait_like_for_a_disk() {
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, disk_.c_str(), O_RDONLY, 0);
    std::array<char, 5> program = {"true"};
    std::array<char*, 2> arguments = {program.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, "/bin/true", &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  }
  void disk_answers() const { const OwnedFd opened(open(disk_.c_str(), O_WRONLY | O_CLOEXEC)); }

  TempDir directory_;
  const std::string disk_ = directory_ / "disk";
  NotifySettings settings_{directory_ / "notify", kLimit};
  OwnedFd fd_;
  SteadyClock clock_;
  EventLoop loop_{clock_};
};

TEST_F(ServiceLinkTest, SaysNothingBeforeTheAgentIsReadyThenThatAndHowItIs) {
  ServiceLink link(clock_, settings_);
  EXPECT_EQ(next(kLimit), "");
  link.ready(loop_, [] { return std::string("1 job"); });
  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(next(), "STATUS=1 job");
  EXPECT_EQ(next(), "WATCHDOG=1");
  link.stopping();
  EXPECT_THAT(next(), StartsWith("STOPPING=1\n"));
}

TEST_F(ServiceLinkTest, TheLoopSaysThatItLivesTwiceInTheTime) {
  ServiceLink link(clock_, settings_);
  link.ready(loop_, [] { return std::string("idle"); });
  const MonoTime begun = clock_.now();
  constexpr int kPulses = 6;
  loop_.call_after(kLimit * kPulses / 2, [this] { loop_.stop(); });
  loop_.run();
  const double periods = to_seconds(clock_.now() - begun) / to_seconds(kLimit);
  int pulses = 0;
  for (std::string text = next(milliseconds(1)); !text.empty(); text = next(milliseconds(1))) {
    if (text == "WATCHDOG=1") ++pulses;
  }
  EXPECT_GE(pulses, kPulses - 1);
  EXPECT_LE(pulses, 2 * periods + 2);
}

TEST_F(ServiceLinkTest, AStatusIsToldWhenItHasChanged) {
  ServiceLink link(clock_, settings_);
  std::string status = "first";
  int asked = 0;
  link.ready(loop_, [&] {
    if (++asked == 3) status = "second";
    if (asked == 4) loop_.stop();
    return status;
  });
  loop_.run();
  std::vector<std::string> told;
  for (std::string text = next(milliseconds(1)); !text.empty(); text = next(milliseconds(1))) {
    if (text != "WATCHDOG=1") told.push_back(text);
  }
  EXPECT_THAT(told, testing::ElementsAre("READY=1", "STATUS=first", "STATUS=second"));
}

TEST_F(ServiceLinkTest, NobodySaysThatItLivesWhereNobodyWatches) {
  settings_.watchdog.reset();
  ServiceLink link(clock_, settings_);
  link.ready(loop_, [] { return std::string("idle"); });
  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(next(), "STATUS=idle");
  EXPECT_EQ(next(milliseconds(1)), "");
}

TEST_F(ServiceLinkTest, ALoopThatStandsStillWithoutADiskIsNotSpokenFor) {
  ServiceLink link(clock_, settings_);
  link.ready(loop_, [] { return std::string("idle"); });
  for (int i = 0; i < 3; ++i) EXPECT_NE(next(), "");
  EXPECT_EQ(next(kLimit * 3), "") << "this thread waits here, and not for a device";
}

TEST_F(ServiceLinkTest, ALoopThatWaitsForADiskIsSpokenForUntilItGoesOn) {
  ServiceLink link(clock_, settings_);
  link.ready(loop_, [] { return std::string("idle"); });
  std::atomic<int> spoken = 0;
  std::thread manager([&] {
    while (spoken < 3) {
      const std::string text = await_datagram(
          [](const std::string& said) { return said.find("disk") != std::string::npos; });
      if (text.empty()) break;
      EXPECT_THAT(text, HasSubstr("\nWATCHDOG=1"));
      ++spoken;
    }
    disk_answers();
  });
  wait_like_for_a_disk();
  manager.join();
  EXPECT_EQ(spoken, 3);
  loop_.call_after(kLimit * 2, [this] { loop_.stop(); });
  loop_.run();
  EXPECT_EQ(await_datagram([](const std::string& said) { return said.starts_with("STATUS="); }),
            "STATUS=idle")
      << "the status of before, which is news again";
}

TEST_F(ServiceLinkTest, AStartThatWaitsForADiskIsGivenMoreTime) {
  ServiceLink link(clock_, settings_);
  std::string said;
  std::thread manager([&] {
    said = next();
    disk_answers();
  });
  wait_like_for_a_disk();
  manager.join();
  EXPECT_THAT(said, HasSubstr("\nEXTEND_TIMEOUT_USEC=400000"));
}

TEST_F(ServiceLinkTest, WithoutAManagerNothingHappens) {
  ServiceLink nobody(clock_, {});
  nobody.ready(loop_, [] { return std::string("never asked"); });
  nobody.stopping();
  ServiceLink gone(clock_, {directory_ / "gone", kLimit});
  gone.ready(loop_, [] { return std::string("never asked"); });
  gone.stopping();
  EXPECT_EQ(next(milliseconds(1)), "");
}

}  // namespace
}  // namespace antdt::antdtd
