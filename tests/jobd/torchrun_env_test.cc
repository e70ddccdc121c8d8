#include "jobd/programs/torchrun_env.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace antdt::jobd {
namespace {

std::string value(const std::vector<wire::EnvVar>& env, const std::string& name) {
  const auto found = std::ranges::find(env, name, &wire::EnvVar::name);
  return found == env.end() ? "(unset)" : found->value;
}

TEST(TorchrunEnvTest, RanksAreContiguousHostByHost) {
  const TorchrunJob job{"ctr-01", "worker", "10.0.0.1", 29500, 1, 3, "/run"};
  const std::vector<ctl::PlacedWorker> workers{
      {WorkerId{'w', 0}, "b", 4}, {WorkerId{'w', 1}, "a", 2}, {WorkerId{'w', 2}, "a", 2}};
  const auto env = torchrun_environment(job, workers);
  ASSERT_EQ(env.size(), 3U);
  EXPECT_EQ(value(env[1], "RANK"), "0");
  EXPECT_EQ(value(env[2], "RANK"), "1");
  EXPECT_EQ(value(env[0], "RANK"), "2");
  EXPECT_EQ(value(env[2], "LOCAL_RANK"), "1");
  EXPECT_EQ(value(env[2], "LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(value(env[0], "LOCAL_RANK"), "0");
  EXPECT_EQ(value(env[0], "GROUP_RANK"), "1");
  EXPECT_EQ(value(env[0], "GROUP_WORLD_SIZE"), "2");
  EXPECT_EQ(value(env[0], "WORLD_SIZE"), "3");
}

TEST(TorchrunEnvTest, SetsWhatTheScriptNeedsToFindItsGroup) {
  const TorchrunJob job{"ctr-01", "worker", "10.0.0.1", 29500, 1, 3, "/run"};
  const auto env = torchrun_environment(job, {{WorkerId{'w', 0}, "a", 0}}).at(0);
  EXPECT_EQ(value(env, "MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(value(env, "MASTER_PORT"), "29500");
  EXPECT_EQ(value(env, "TORCHELASTIC_RUN_ID"), "ctr-01");
  EXPECT_EQ(value(env, "TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_EQ(value(env, "TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_EQ(value(env, "ROLE_NAME"), "worker");
}

}  // namespace
}  // namespace antdt::jobd
