#include "shard_server/suspects/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::shard_server {
namespace {

using testing::ElementsAre;

SuspiciousDeath death(std::vector<Interval> held, std::uint32_t epoch = 0) {
  return {Epoch{epoch}, {WorkerId{'w', 0}, Attempt{1}}, std::move(held)};
}

TEST(Suspects, AreTheRecordsThatEnoughDeathsShare) {
  Suspects suspects;
  suspects.add(death({{100, 160}}));
  suspects.add(death({{120, 180}}));
  EXPECT_FALSE(suspects.shared_by(3));
  suspects.add(death({{20, 40}, {110, 150}}));
  EXPECT_EQ(suspects.shared_by(3), (Interval{120, 150}));
}

TEST(Suspects, DeathsElsewhereMakeNoSuspects) {
  Suspects suspects;
  for (const std::uint64_t at : {0U, 100U, 200U, 300U}) suspects.add(death({{at, at + 60}}));
  EXPECT_FALSE(suspects.shared_by(3));
}

TEST(Suspects, AreNotReportedAgainForADeathElsewhere) {
  Suspects suspects;
  for (int i = 0; i < 3; ++i) suspects.add(death({{100, 160}}));
  EXPECT_TRUE(suspects.shared_by(3));
  suspects.add(death({{500, 560}}));
  EXPECT_FALSE(suspects.shared_by(3));
}

TEST(Suspects, AreTheNewestOfALongEpoch) {
  Suspects suspects;
  for (std::uint64_t at = 0; at < 10 * Suspects::kMost; ++at) {
    suspects.add(death({{1000 * at, 1000 * at + 60}}));
  }
  EXPECT_EQ(suspects.deaths().size(), Suspects::kMost);
  const std::uint64_t last = 1000 * (10 * Suspects::kMost - 1);
  suspects.add(death({{last + 20, last + 40}}));
  EXPECT_EQ(suspects.shared_by(2), (Interval{last + 20, last + 40}));
}

TEST(Suspects, AreOfOneEpoch) {
  Suspects suspects;
  suspects.add(death({{100, 160}}, 0));
  suspects.add(death({{100, 160}}, 0));
  suspects.add(death({{100, 160}}, 1));
  EXPECT_FALSE(suspects.shared_by(2));
  EXPECT_EQ(suspects.deaths().size(), 1U);
}

TEST(HandOf, BeginsAtThePlaceAndEndsAfterSoManyRecords) {
  Holder holder;
  holder.place = 10;
  holder.grants = {{{100, 120}, 0}, {{300, 340}, 1}};
  EXPECT_THAT(held_by(holder, 10, 1000), ElementsAre(Interval{100, 120}, Interval{300, 340}));
  EXPECT_THAT(held_by(holder, 15, 20), ElementsAre(Interval{105, 120}, Interval{300, 305}));
  EXPECT_THAT(held_by(holder, 35, 10), ElementsAre(Interval{305, 315}));
  EXPECT_THAT(held_by(holder, 70, 10), ElementsAre());
}

}  // namespace
}  // namespace antdt::shard_server
