#include "launcher/slurm/agent_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(AgentStep, EachKeyEndsWithALineOfItsOwn) {
  EXPECT_EQ(handover("secret\n", "public"), "secret\n.\npublic\n.\n");
}

}  // namespace
}  // namespace antdt::launcher
