#include "launcher/slurm/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Allocation> read(std::map<std::string, std::string> values) {
  return read_allocation([values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  });
}

TEST(Allocation, IsReadFromTheVariablesOfSlurm) {
  const auto found = read({{"SLURM_JOB_ID", "17"},
                           {"SLURM_JOB_NODELIST", "n[1-3]"},
                           {"SLURM_JOB_CPUS_PER_NODE", "4(x2),3"},
                           {"SLURM_MEM_PER_NODE", "2048"}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->job, 17U);
  EXPECT_EQ(found->node_list, "n[1-3]");
  EXPECT_THAT(found->cpus, ElementsAre(4U, 4U, 3U));
  EXPECT_EQ(found->memory_bytes, 2ULL << 30);
}

TEST(Allocation, OutsideOfOneTheErrorSaysHowToGetOne) {
  const auto found = read({});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(found.error().message, HasSubstr("sbatch"));
}

TEST(Allocation, ANumberOfTheJobThatIsNoneIsRefused) {
  EXPECT_FALSE(read({{"SLURM_JOB_ID", "17_3"}, {"SLURM_JOB_NODELIST", "n1"}}).has_value());
}

TEST(Allocation, CountsOfCpusThatSlurmDoesNotWriteAreRefused) {
  for (const char* text : {"x", "4(x", "4(x2", "4(x0)", "0", "4(x4000000000)", "-1", "4,,4"}) {
    EXPECT_FALSE(cpus_of_nodes(text).has_value()) << text;
  }
}

TEST(Allocation, NodesAreReadWithTheAddressThatSlurmUses) {
  const auto nodes = read_nodes(
      "NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=h1\nNodeName=n2 State=IDLE\n");
  ASSERT_TRUE(nodes.has_value());
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ(nodes->at(0).address, "10.0.0.1");
  EXPECT_EQ(nodes->at(1).address, "n2");
  EXPECT_FALSE(read_nodes("Node n9 not found\n").has_value());
}

TEST(Allocation, TheNodesThatItHasNowAreThoseOfTheJob) {
  const auto list =
      present_nodes("JobId=7 NumNodes=2 ReqNodeList=n[1-3] NodeList=n[1-2] Batch=n1\n");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(*list, "n[1-2]");
  EXPECT_FALSE(present_nodes("JobId=7 JobState=PENDING NodeList=(null)\n").has_value());
  EXPECT_FALSE(present_nodes("").has_value());
}

TEST(Allocation, CpusBelongToNodesInTheOrderInWhichItBegan) {
  Allocation allocation;
  allocation.cpus = {4, 4, 3};
  const auto cpus = cpus_by_name(allocation, "n1\nn2\nn9\n");
  ASSERT_TRUE(cpus.has_value());
  EXPECT_EQ(cpus->at("n9"), 3U);
  const auto fewer = cpus_by_name(allocation, "n1\nn2\n");
  ASSERT_FALSE(fewer.has_value());
  EXPECT_THAT(fewer.error().message, HasSubstr("counts 3 nodes, and SLURM_JOB_NODELIST names 2"));
}

TEST(Allocation, PortsOfNeighbouringJobsDiffer) {
  EXPECT_NE(agent_port(17), agent_port(18));
  EXPECT_LT(agent_port(4'294'967'295U), 30'000);
  EXPECT_GE(agent_port(0), 20'000);
}

}  // namespace
}  // namespace antdt::launcher
