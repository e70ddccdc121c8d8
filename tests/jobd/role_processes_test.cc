#include "jobd/programs/role_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace antdt::jobd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1ULL << 30;

launcher::RolesSection roles(std::uint32_t workers, std::uint32_t servers) {
  launcher::RolesSection roles;
  roles.worker.count = roles.worker.min = roles.worker.max = workers;
  roles.server.count = servers;
  return roles;
}

std::vector<std::string> ids(const std::vector<ctl::PlacedWorker>& placed) {
  std::vector<std::string> ids;
  for (const ctl::PlacedWorker& p : placed) ids.push_back(to_string(p.worker) + "@" + p.host);
  return ids;
}

ctl::WorkerProcess process(char role, std::uint32_t index, const std::string& host,
                           ctl::WorkerProcess::State state) {
  ctl::WorkerProcess process;
  process.place = {WorkerId{role, index}, host, 0};
  process.state = state;
  return process;
}

wire::RunningProcess running(char role, std::uint32_t index) {
  return {WorkerId{role, index}, Attempt{1}, 1};
}

TEST(RoleProcessesTest, ServersFollowTheWorkers) {
  const auto placed = place_processes({{"local", 4, kGiB, 0}}, roles(2, 3));
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_THAT(ids(*placed),
              ElementsAre("w0@local", "w1@local", "s0@local", "s1@local", "s2@local"));
}

TEST(RoleProcessesTest, EachProcessKnowsItsHostsPlaceAmongTheHosts) {
  launcher::RolesSection both = roles(2, 2);
  both.worker.resources.cpus = both.server.resources.cpus = 1;
  const auto placed = place_processes({{"a:1", 2, kGiB, 0}, {"b:1", 2, kGiB, 0}}, both);
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_THAT(ids(*placed), ElementsAre("w0@a:1", "w1@b:1", "s0@a:1", "s1@b:1"));
  EXPECT_EQ(placed->at(1).host_order, 1U);
  EXPECT_EQ(placed->at(3).host_order, 1U);
}

TEST(RoleProcessesTest, AJobWhoseClientsComeByThemselvesStartsNothing) {
  EXPECT_THAT(place_processes({{"local", 4, kGiB, 0}}, roles(0, 0)).value(), ElementsAre());
}

TEST(RoleProcessesTest, ServersThatFitNowhereAreAnError) {
  launcher::RolesSection both = roles(1, 2);
  both.server.resources.memory_bytes = kGiB;
  const auto placed = place_processes({{"local", 4, kGiB, 0}}, both);
  ASSERT_FALSE(placed);
  EXPECT_THAT(placed.error().message, HasSubstr("2 servers"));
}

TEST(RoleProcessesTest, RoomIsForTheServersToComeAndTheWorkersBesideThem) {
  launcher::RolesSection both = roles(4, 2);
  both.worker.resources.memory_bytes = kGiB;
  both.server.resources.memory_bytes = 2 * kGiB;
  const launcher::HostResources free{"local", 8, 8 * kGiB, 0};
  EXPECT_EQ(room_on(free, both, 0, 2), 4U + 2U);
  EXPECT_EQ(room_on(free, both, 0, 0), 8U);
  // The running processes already have their part.
  EXPECT_EQ(room_on({"local", 4, 2 * kGiB, 0}, both, 5, 0), 2U + 5U);
  EXPECT_EQ(room_on({"local", 4, kGiB, 0}, both, 0, 2), 2U);
}

TEST(RoleProcessesTest, TheHostHasRoomForAllThatIsPlacedOnIt) {
  launcher::RolesSection both = roles(3, 1);
  both.worker.resources.cpus = 0.1;  // three of which are a little more than 0.3
  both.server.resources.cpus = 0.2;
  const launcher::HostResources free{"local", 0.5, kGiB, 0};
  const auto placed = place_processes({free}, both);
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_GE(room_on(free, both, 0, 1), placed->size());
}

TEST(RoleProcessesTest, BeforeAnythingIsPlacedAllServersAreToCome) {
  EXPECT_EQ(servers_to_come(roles(2, 3), {}, "local", {}), 3U);
  EXPECT_EQ(servers_to_come(roles(2, 0), {}, "local", {}), 0U);
}

TEST(RoleProcessesTest, ServersThatRunAreThereAndAWorkerIsNone) {
  using Process = ctl::WorkerProcess;
  const std::vector<Process> known = {
      process('w', 0, "local", Process::kJoined), process('s', 0, "local", Process::kJoined),
      process('s', 1, "local", Process::kWaiting), process('s', 2, "other", Process::kJoined)};
  const auto both = roles(1, 3);
  EXPECT_EQ(servers_to_come(both, known, "local", {running('w', 0), running('s', 0)}), 1U);
  EXPECT_EQ(servers_to_come(both, known, "local", {running('w', 0)}), 2U);
  EXPECT_EQ(servers_to_come(both, known, "other", {running('s', 2)}), 0U);
}

launcher::JobConfig two_roles() {
  launcher::JobConfig config;
  config.job.directory = "/jobs/ctr";
  config.roles = roles(4, 2);
  config.roles.worker.command = {"antdt-trainer"};
  config.roles.worker.protocol = "torchrun";
  config.roles.server.command = {"/usr/bin/antdt-server", "--x"};
  config.roles.server.protocol = "antdt";
  config.roles.server.env = {{"A", "b"}};
  config.roles.server.resources = {0.5, 2 * kGiB, 0};
  config.failure.orphan_timeout = std::chrono::seconds(7);
  config.logs.max_bytes = 123;
  return config;
}

std::string value(const wire::StartProcess& start, const std::string& name) {
  const auto found = std::ranges::find(start.env, name, &wire::EnvVar::name);
  return found == start.env.end() ? "(unset)" : found->value;
}

TEST(RoleProcessesTest, AServerIsStartedAsItsOwnTableSays) {
  const wire::StartProcess start = start_order(two_roles(), 's', {});
  EXPECT_EQ(start.role, "server");
  EXPECT_THAT(start.command, ElementsAre("/usr/bin/antdt-server", "--x"));
  EXPECT_EQ(value(start, "A"), "b");
  EXPECT_EQ(value(start, "ANTDT_PROTOCOL"), "antdt");
  EXPECT_EQ(start.cpus, 0.5);
  EXPECT_EQ(start.memory_bytes, 2 * kGiB);
  EXPECT_EQ(start.working_directory, "/jobs/ctr");
  EXPECT_EQ(start.orphan_timeout_ms, 7000U);
  EXPECT_EQ(start.log_bytes, 123U);
}

TEST(RoleProcessesTest, AWorkerIsStartedWithWhatIsAddedToItsEnvironment) {
  const wire::StartProcess start = start_order(two_roles(), 'w', {{"RANK", "3"}});
  EXPECT_EQ(start.role, "worker");
  EXPECT_THAT(start.command, ElementsAre("antdt-trainer"));
  EXPECT_EQ(value(start, "RANK"), "3");
  EXPECT_EQ(value(start, "A"), "(unset)");
  EXPECT_EQ(value(start, "ANTDT_PROTOCOL"), "torchrun");
}

// A host's nccl.conf overrides no variable.
TEST(RoleProcessesTest, WhereAJobUsesNcclNoFileOfTheHostMakesItsCallsBlock) {
  launcher::JobConfig config = two_roles();
  EXPECT_EQ(value(start_order(config, 'w', {}), "NCCL_COMM_BLOCKING"), "(unset)");
  config.trainer.collective = "nccl";
  EXPECT_EQ(value(start_order(config, 'w', {}), "NCCL_COMM_BLOCKING"), "0");
  EXPECT_EQ(value(start_order(config, 's', {}), "NCCL_COMM_BLOCKING"), "(unset)");
  config.roles.worker.env = {{"NCCL_COMM_BLOCKING", "1"}};  // which the worker refuses
  EXPECT_EQ(value(start_order(config, 'w', {}), "NCCL_COMM_BLOCKING"), "1");
}

}  // namespace
}  // namespace antdt::jobd
