#include "launcher/start/start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

class StartTest : public testing::Test {
 protected:
  StartTest() {
    options_.socket_root = dir_ / "s";
    options_.run_dir = dir_ / "run";
    options_.state_dir = options_.run_dir;
    options_.job = "ctr-01M7XB8FZW7Y7JZ0KGYKCAZ0X8";
    options_.deadline = std::chrono::seconds(2);
    options_.programs.job_daemon = "/bin/true";
    EXPECT_TRUE(make_directories(options_.run_dir));
    EXPECT_TRUE(make_directories(options_.socket_root, 0700));
  }
  Error start_with_agent(const std::string& script) {
    options_.programs.agent = dir_ / "agent";
    EXPECT_TRUE(write_file_atomic(options_.programs.agent, "#!/bin/sh\n" + script, 0755));
    transport::Context context;
    const auto control = start_job(context, options_);
    EXPECT_FALSE(control);
    return control ? Error{} : control.error();
  }
  [[nodiscard]] bool sockets_are_gone() const {
    return ::rmdir(options_.socket_root.c_str()) == 0;  // it is empty
  }
  TempDir dir_;
  StartOptions options_;
};

TEST_F(StartTest, AnAgentThatEndsAtOnceIsToldWithTheEndOfItsLog) {
  const Error error = start_with_agent("echo no room on the disk >&2; exit 1\n");
  EXPECT_EQ(error.kind, ErrorKind::kUnreachable);
  EXPECT_THAT(error.message, HasSubstr("ended before it was ready"));
  EXPECT_THAT(error.message, HasSubstr("no room on the disk"));
  EXPECT_THAT(error.message, HasSubstr(options_.run_dir + "/agent.log"));
  EXPECT_TRUE(sockets_are_gone());
}

TEST_F(StartTest, AnAgentThatIsNeverReadyIsEndedAndLeavesNothing) {
  const Error error = start_with_agent("echo $$ > " + (dir_ / "pid") + "; exec sleep 600\n");
  EXPECT_THAT(error.message, HasSubstr("was not ready in time"));
  const auto pid = read_file(dir_ / "pid");
  ASSERT_TRUE(pid);
  EXPECT_NE(::kill(std::stoi(*pid), 0), 0);
  EXPECT_TRUE(sockets_are_gone());
}

TEST_F(StartTest, AnAgentRunsInASessionOfItsOwn) {
  start_with_agent("cut -d' ' -f6 /proc/$$/stat > " + (dir_ / "sid") + "; echo $$ > " +
                   (dir_ / "pid") + "; exit 0\n");
  EXPECT_EQ(std::stoi(read_file(dir_ / "sid").value()), std::stoi(read_file(dir_ / "pid").value()));
}

TEST(LastLines, AreTheEndOfAFileWithoutItsLastNewline) {
  TempDir dir;
  ASSERT_TRUE(write_file_atomic(dir / "log", "one\ntwo\nthree\n"));
  EXPECT_EQ(last_lines(dir / "log", 2), "two\nthree");
  EXPECT_EQ(last_lines(dir / "log", 9), "one\ntwo\nthree");
  EXPECT_EQ(last_lines(dir / "nothing", 2), "");
}

}  // namespace
}  // namespace antdt::launcher
