#include "launcher/config/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1ULL << 30;

TEST(Placement, WorkersAreSpreadEvenlyAndNeighboursShareAHost) {
  const auto places = place({{"a", 4, 8 * kGiB, 0}, {"b", 4, 8 * kGiB, 0}}, 4, Resources{});
  EXPECT_THAT(places.value(), ElementsAre(0U, 0U, 1U, 1U));
}

TEST(Placement, AHostWithTwiceTheRoomTakesTwiceTheWorkers) {
  const auto places = place({{"a", 8, kGiB, 0}, {"b", 4, kGiB, 0}}, 6, Resources{.cpus = 1});
  EXPECT_THAT(places.value(), ElementsAre(0U, 0U, 0U, 0U, 1U, 1U));
}

TEST(Placement, AResourceThatIsNotRequestedAlwaysFits) {
  const auto places = place({{"a", 0, 0, 0}}, 5, Resources{});
  EXPECT_EQ(places.value().size(), 5U);
}

TEST(Placement, TheScarcestResourceDecides) {
  const auto places = place({{"a", 64, kGiB, 0}, {"b", 4, 16 * kGiB, 0}}, 4,
                            Resources{.cpus = 1, .memory_bytes = kGiB});
  EXPECT_THAT(places.value(), ElementsAre(0U, 1U, 1U, 1U));
}

TEST(Placement, FractionsOfACpuAddUp) {
  EXPECT_TRUE(place({{"a", 0.3, 0, 0}}, 3, Resources{.cpus = 0.1}));
  EXPECT_FALSE(place({{"a", 0.3, 0, 0}}, 4, Resources{.cpus = 0.1}));
}

TEST(Placement, MoreWorkersThanTheHostsCanTakeIsAnErrorThatNamesEachHost) {
  const auto places = place({{"a", 2, 4 * kGiB, 0}, {"b", 1, 8 * kGiB, 1}}, 5,
                            Resources{.cpus = 1, .memory_bytes = 2 * kGiB});
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().kind, ErrorKind::kUnreachable);
  EXPECT_EQ(places.error().message,
            "5 workers with 1 cpus, 2GiB of memory each are 2 more than the hosts can take:\n"
            "  a has 2 cpus, 4.0GiB of memory, 0 GPUs free: room for 2\n"
            "  b has 1 cpus, 8.0GiB of memory, 1 GPUs free: room for 1\n"
            "lower roles.worker.count or roles.worker.resources, or add hosts to cluster.hosts");
}

TEST(Placement, ARangeOfWorkersTakesAsManyAsFit) {
  RoleSection role;
  role.min = 2;
  role.count = role.max = 8;
  role.resources.gpus = 1;
  EXPECT_EQ(place({{"a", 1, 0, 3}, {"b", 1, 0, 2}}, role).value().size(), 5U);
  EXPECT_EQ(place({{"a", 1, 0, 30}}, role).value().size(), 8U);
  EXPECT_THAT(place({{"a", 1, 0, 1}}, role).error().message, HasSubstr("2 workers"));
}

RolesSection roles(std::uint32_t workers, const Resources& each, std::uint32_t servers,
                   const Resources& each_server) {
  RolesSection roles;
  roles.worker.count = roles.worker.min = roles.worker.max = workers;
  roles.worker.resources = each;
  roles.server.count = servers;
  roles.server.resources = each_server;
  return roles;
}

TEST(Placement, WithoutServersThePlacementOfWorkersIsUnchanged) {
  const auto places = place({{"a", 4, kGiB, 0}, {"b", 4, kGiB, 0}}, roles(4, {}, 0, {}));
  EXPECT_THAT(places.value().workers, ElementsAre(0U, 0U, 1U, 1U));
  EXPECT_THAT(places.value().servers, ElementsAre());
}

TEST(Placement, ServersThatAskForNothingMoveNoWorker) {
  const auto places =
      place({{"a", 4, kGiB, 0}, {"b", 4, kGiB, 0}}, roles(4, Resources{.cpus = 2}, 3, Resources{}));
  EXPECT_THAT(places.value().workers, ElementsAre(0U, 0U, 1U, 1U));
  EXPECT_THAT(places.value().servers, ElementsAre(0U, 0U, 1U));
}

TEST(Placement, WorkersHaveWhatTheServersLeave) {
  const HostResources host{"a", 4, 8 * kGiB, 0};
  const Resources big{.memory_bytes = 3 * kGiB};
  EXPECT_TRUE(place({host}, roles(2, Resources{.memory_bytes = kGiB}, 2, big)));
  const auto more = place({host}, roles(3, Resources{.memory_bytes = kGiB}, 2, big));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, ErrorKind::kUnreachable);
  EXPECT_EQ(more.error().message,
            "3 workers with 1GiB of memory each are 1 more than the hosts can take:\n"
            "  a has 4 cpus, 2.0GiB of memory, 0 GPUs free: room for 2\n"
            "lower roles.worker.count or roles.worker.resources, or add hosts to cluster.hosts\n"
            "(2 servers with 3GiB of memory each are counted as taken)");
}

TEST(Placement, ARangeOfWorkersIsContentWithWhatServersLeave) {
  RolesSection both = roles(8, Resources{.cpus = 1}, 2, Resources{.cpus = 1});
  both.worker.min = 1;
  const auto places = place({{"a", 6, kGiB, 0}}, both);
  EXPECT_EQ(places.value().workers.size(), 4U);
  EXPECT_EQ(places.value().servers.size(), 2U);
}

TEST(Placement, MoreServersThanTheHostsCanTakeIsAnErrorThatNamesTheirKeys) {
  const auto places = place({{"a", 2, 4 * kGiB, 0}}, roles(1, {}, 3, Resources{.cpus = 1}));
  ASSERT_FALSE(places);
  EXPECT_THAT(places.error().message,
              testing::AllOf(HasSubstr("3 servers with 1 cpus each are 1 more than"),
                             HasSubstr("lower roles.server.count or roles.server.resources")));
}

TEST(Placement, NoMoreIsAllocatedOnAHostThanItHas) {
  const HostResources left = without({"a", 2, kGiB, 1}, 3, {1, kGiB, 2});
  EXPECT_EQ(left.cpus, 0);
  EXPECT_EQ(left.memory_bytes, 0U);
  EXPECT_EQ(left.gpus, 0U);
  const HostResources some = without({"a", 2, 3 * kGiB, 5}, 2, {0.5, kGiB, 2});
  EXPECT_EQ(some.cpus, 1);
  EXPECT_EQ(some.memory_bytes, kGiB);
  EXPECT_EQ(some.gpus, 1U);
}

TEST(Placement, ProcessesThatShareGpusAreAsManyAsOtherResourcesAllow) {
  const Resources each{.cpus = 1, .gpus = 1, .shared_gpus = true};
  EXPECT_EQ(fits({"a", 4, 0, 0, 1}, each), 4U) << "others share it already";
  EXPECT_EQ(fits({"a", 4, 0, 0, 0}, each), 0U);
  EXPECT_EQ(fits({"a", 4, 0, 1, 2}, {.cpus = 1, .gpus = 1}), 1U) << "one alone cannot share";
  EXPECT_THAT(place({{"a", 4, 0, 0, 0}}, 1, each).error().message,
              HasSubstr("1 shared GPU each are 1 more than the hosts can take:\n"
                        "  a has 4 cpus, 0.0GiB of memory, 0 GPUs (0 if they are shared) free"));
}

}  // namespace
}  // namespace antdt::launcher
