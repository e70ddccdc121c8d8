#include "launcher/placement.h"

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

TEST(Placement, WhatIsNotAskedForAlwaysFits) {
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
            "  a has 2 cpus, 4.0GiB of memory, 0 devices free: room for 2\n"
            "  b has 1 cpus, 8.0GiB of memory, 1 devices free: room for 1\n"
            "lower roles.worker.count or roles.worker.resources, or add hosts to cluster.hosts");
}

TEST(Placement, ARangeOfWorkersTakesAsManyAsFit) {
  RoleSection role;
  role.min = 2;
  role.count = role.max = 8;
  role.resources.devices = 1;
  EXPECT_EQ(place({{"a", 1, 0, 3}, {"b", 1, 0, 2}}, role).value().size(), 5U);
  EXPECT_EQ(place({{"a", 1, 0, 30}}, role).value().size(), 8U);
  EXPECT_THAT(place({{"a", 1, 0, 1}}, role).error().message, HasSubstr("2 workers"));
}

}  // namespace
}  // namespace antdt::launcher
