#include "antdtd/agent/setup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "antdtd/host/host.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

namespace fs = std::filesystem;

// Makes the files of a private agent that has ended.
class RemoveTracesTest : public ::testing::Test {
 protected:
  RemoveTracesTest() {
    flags.is_private = true;
    flags.socket_dir = dir / "s";
    flags.state_dir = dir / "s/state";
    fs::create_directories(dir / "s/state/jobs");
  }
  void leave(const std::string& file) {
    ASSERT_TRUE(write_file_atomic(dir / ("s/" + file), file)) << file;
  }

  const TempDir dir;
  AgentFlags flags;
};

TEST_F(RemoveTracesTest, NothingIsLeftOfAJobWhoseDaemonWasKilledAtItsVeryEnd) {
  for (const char* file :
       {"agent.sock", "agent.sock.lock", "workers.sock", "workers.sock.lock", "jobd.sock",
        "jobd.sock.lock", "p-7.1", "p-7.1.lock", "state/environment.part"}) {
    leave(file);
  }
  remove_traces(flags);
  EXPECT_FALSE(fs::exists(dir / "s"));
}

TEST_F(RemoveTracesTest, FilesOfOthersStay) {
  leave("notes");
  remove_traces(flags);
  EXPECT_EQ(read_file(dir / "s/notes").value_or("?"), "notes");
}

// What its unit gives up, and what it tries again.
class FailedStartTest : public ::testing::Test {
 protected:
  FailedStartTest() {
    flags.listen = "127.0.0.1:0";
    flags.keys = "keys";
  }
  ErrorKind kind_of_metrics(const std::string& at) {
    flags.metrics = at;
    const auto server = open_metrics(loop, flags, std::nullopt);
    return server ? ErrorKind::kInternal : server.error().kind;
  }

  const SteadyClock clock;
  EventLoop loop{clock};
  AgentFlags flags;
};

TEST_F(FailedStartTest, FlagsThatAreMissingAreAMistake) {
  EXPECT_EQ(complete({}).error().kind, ErrorKind::kUsage);
  flags.keys = "";
  EXPECT_EQ(complete(flags).error().kind, ErrorKind::kUsage);
}

TEST_F(FailedStartTest, MetricsAtNoAddressAreAMistakeAndAtOneOfAnotherMachineAreNot) {
  EXPECT_EQ(kind_of_metrics("9401"), ErrorKind::kUsage);
  EXPECT_EQ(kind_of_metrics("192.0.2.1:9401"), ErrorKind::kUnreachable);
}

TEST_F(FailedStartTest, ADirectoryThatIsNoCgroupIsAMistakeAndOneThatIsNotThereYetIsNot) {
  const TempDir dir;
  flags.cgroup = dir.path();
  const auto wrong = cgroups_of(flags);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
  flags.cgroup = dir / "slice-of-the-boot";
  const auto later = cgroups_of(flags);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().kind, ErrorKind::kIo);
  EXPECT_NE(later.error().message.find("is no directory of a cgroup file system"),
            std::string::npos)
      << later.error().message;
}

// They may share the user's home directory.
TEST_F(FailedStartTest, AgentsOfTwoHostsKeepTheirProcessesApart) {
  ::setenv("XDG_STATE_HOME", "/states", 1);
  ::unsetenv("STATE_DIRECTORY");
  flags.socket_dir = "/sockets";
  flags.listen = "127.0.0.1:7700";
  const auto complete_flags = complete(flags);
  ::unsetenv("XDG_STATE_HOME");
  ASSERT_TRUE(complete_flags) << complete_flags.error().message;
  if (::geteuid() == 0) {
    EXPECT_EQ(complete_flags->state_dir, "/var/lib/antdt/agent-7700");
  } else {
    EXPECT_EQ(complete_flags->state_dir, "/states/antdt/" + host_name() + "/agent-7700");
  }
}

TEST_F(FailedStartTest, AnInterfaceThatHasNoAddressYetIsNoMistake) {
  flags.interface = "nosuch0";
  EXPECT_EQ(complete(flags).error().kind, ErrorKind::kUnreachable);
}

}  // namespace
}  // namespace antdt::antdtd
