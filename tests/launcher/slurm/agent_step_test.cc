#include "launcher/slurm/agent_step.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "core/os/fs.h"
#include "core/os/pipe.h"
#include "core/os/spawn.h"

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::Not;

const AgentStep kStep{"/opt/antdtd", "n2", "10.0.0.2:20017", 4, 0, false};

TEST(AgentStep, IsOneTaskOnItsNodeBesideOtherSteps) {
  const auto arguments = srun_arguments(kStep);
  for (const char* wanted : {"--nodelist=n2", "--nodes=1", "--ntasks=1", "--overlap",
                             "--cpus-per-task=4", "10.0.0.2:20017", "/opt/antdtd"}) {
    EXPECT_THAT(arguments, Contains(wanted));
  }
  EXPECT_THAT(arguments, Not(Contains("--allow-root")));
  EXPECT_THAT(arguments, Not(Contains("--memory")));
}

TEST(AgentStep, MemoryIsBoundedIfSlurmBoundsIt) {
  AgentStep step = kStep;
  step.memory_bytes = 1 << 20;
  EXPECT_THAT(srun_arguments(step), Contains("1048576"));
}

TEST(AgentStep, AStepWithoutTheProgramSaysWhatTheLauncherLooksFor) {
  EXPECT_THAT(srun_arguments(kStep), Contains(testing::HasSubstr(kNoProgram)));
}

// An agent touches what is in its directory of state, so that no cleaner of /tmp removes it. If the
// job's public key went, the agent would cut the job's link.
TEST(AgentStep, TheKeysAreInTheAgentsDirectoryOfState) {
  const TempDir directory;
  AgentStep step = kStep;
  step.program = directory / "antdtd";
  ASSERT_TRUE(write_file_atomic(step.program, R"(#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --keys) keys=$2 ;; --state-dir) state=$2 ;; esac
  shift
done
case $keys in "$state"/*) echo within ;; esac
cat "$keys/agent.key" "$keys/authorized/job.pub"
)",
                                0700));
  const std::vector<std::string> all = srun_arguments(step);
  const auto shell = std::ranges::find(all, "/bin/sh");
  ASSERT_NE(shell, all.end());
  Pipe keys;
  ASSERT_TRUE(keys.open());
  const OwnedFd out(open((directory / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Spawn what;
  what.program = *shell;
  what.arguments.assign(shell + 1, all.end());
  what.environment = {"PATH=/usr/bin:/bin", "TMPDIR=" + directory.path()};
  what.standard_input = keys.read.get();
  what.standard_output = out.get();
  const auto started = spawn(what);
  ASSERT_TRUE(started) << started.error().message;
  const std::string text = handover("secret", "public");
  ASSERT_EQ(write(keys.write.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(waitpid(started->pid, nullptr, 0), started->pid);
  EXPECT_EQ(read_file(directory / "out").value_or("?"), "within\nsecret\npublic\n");
}

TEST(AgentStep, EachKeyEndsWithALineOfItsOwn) {
  EXPECT_EQ(handover("secret\n", "public"), "secret\n.\npublic\n.\n");
}

}  // namespace
}  // namespace antdt::launcher
