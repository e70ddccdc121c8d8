// Tests what a strategy of synchronisation means for steps, records and replicas.
#include "trainer/worker/member/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A step in which members trained so many records, each of which has this weight.
class Steps {
 public:
  explicit Steps(std::size_t members) : places_(members) {}
  Agreement step(const std::vector<std::uint32_t>& records, double weight = 1) {
    std::vector<StepSlot> slots(records.size());
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
      slots[rank].records = records[rank];
      slots[rank].weight = weight * records[rank];
      slots[rank].place = places_[rank] += records[rank];
    }
    return agree(slots);
  }

 private:
  std::vector<std::uint64_t> places_;
};

TEST(StepExchange, SummedGradientsAreInAllReplicasOnceTheNextStepHasCompleted) {
  StepExchange exchange{GradientSum{}};
  exchange.begin(0, 2);
  EXPECT_THAT(exchange.course(Step{0}).mixes_with, IsEmpty());
  EXPECT_FALSE(exchange.course(Step{0}).local);
  EXPECT_EQ(exchange.divisor(8), 8);
  Steps steps(2);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5, 3})));
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0));
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({5, 3})));
  EXPECT_THAT(exchange.committable(), ElementsAre(5, 3));
}

TEST(StepExchange, AStepWithRecordsMakesReplicasDifferAndOneWithoutDoesNot) {
  StepExchange exchange{DsSync{7}};
  exchange.begin(1, 4);
  const auto course = exchange.course(Step{0});
  EXPECT_EQ(course.mixes_with.size(), 2U);
  EXPECT_TRUE(std::ranges::find(course.mixes_with, 1U) != course.mixes_with.end());
  EXPECT_TRUE(course.local);
  EXPECT_EQ(exchange.divisor(8), 2);  // its part of the weight, if all had the same
  Steps steps(4);
  EXPECT_TRUE(exchange.concluded(Step{0}, steps.step({1, 2, 3, 4})));
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(exchange.merged(std::vector<std::uint32_t>{1, 3}), ElementsAre(0, 2, 0, 4));
  exchange.consolidated();
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0, 0, 0)) << "others may not have done it";
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({0, 0, 0, 0})));
  EXPECT_THAT(exchange.committable(), ElementsAre(1, 2, 3, 4));
}

// They need no update, and follow records of the same member that may not be in every replica.
TEST(StepExchange, RecordsWithoutWeightCountAfterThoseBeforeThem) {
  StepExchange exchange{DsSync{7}};
  exchange.begin(0, 4);
  Steps steps(4);
  EXPECT_TRUE(exchange.concluded(Step{0}, steps.step({1, 1, 1, 1})));
  EXPECT_TRUE(exchange.concluded(Step{1}, steps.step({5, 0, 0, 0}, 0)));
  EXPECT_THAT(exchange.merged(std::vector<std::uint32_t>{0}), ElementsAre(6, 0, 0, 0));
  exchange.consolidated();
  EXPECT_FALSE(exchange.concluded(Step{2}, steps.step({0, 0, 0, 0})));
  EXPECT_THAT(exchange.committable(), ElementsAre(6, 1, 1, 1));
}

TEST(StepExchange, AloneAMemberMixesWithNobodyAndItsReplicaDiffersFromNone) {
  StepExchange exchange{DsSync{7}};
  exchange.begin(0, 1);
  EXPECT_EQ(exchange.course(Step{0}).mixes_with.size(), 1U);
  EXPECT_EQ(exchange.divisor(8), 8);
  Steps steps(1);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5})));
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({0})));
  EXPECT_THAT(exchange.committable(), ElementsAre(5));
}

}  // namespace
}  // namespace antdt::worker
