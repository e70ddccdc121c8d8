// Tests what a strategy of synchronisation means for steps, records and replicas.
#include "trainer/worker/member/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::worker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> in_no_domain(std::size_t members) {
  return std::vector<std::string>(members);
}

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
  exchange.begin(0, in_no_domain(2));
  EXPECT_FALSE(exchange.course(Step{0}).first);
  EXPECT_FALSE(exchange.course(Step{0}).begin.local);
  EXPECT_EQ(exchange.divisor(8), 8);
  Steps steps(2);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5, 3})));
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0));
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({5, 3})));
  EXPECT_THAT(exchange.committable(), ElementsAre(5, 3));
}

TEST(StepExchange, AStepWithRecordsMakesReplicasDifferAndOneWithoutDoesNot) {
  StepExchange exchange{DsSync{7}};
  exchange.begin(1, in_no_domain(4));
  const auto course = exchange.course(Step{0});
  const auto& group = std::get<Mix>(course.first.value()).group;
  EXPECT_EQ(group.size(), 2U);
  EXPECT_THAT(group, Contains(1U));
  EXPECT_TRUE(course.begin.local);
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
  exchange.begin(0, in_no_domain(4));
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
  exchange.begin(0, in_no_domain(1));
  EXPECT_FALSE(exchange.course(Step{0}).first);
  EXPECT_TRUE(exchange.course(Step{0}).begin.local);
  EXPECT_EQ(exchange.divisor(8), 8);
  Steps steps(1);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5})));
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({0})));
  EXPECT_THAT(exchange.committable(), ElementsAre(5));
}

// --------------------------------------------------------------------------- domains

const std::vector<std::string> kEastWestEast{"east", "west", "east"};

TEST(StepExchange, DomainsExchangeUpdatesBeforeTheirMembersSumGradients) {
  StepExchange exchange{Gaia{3}};
  exchange.begin(2, kEastWestEast);
  const auto course = exchange.course(Step{1});
  const auto& first = std::get<ExchangeUpdates>(course.first.value());
  ASSERT_EQ(first.domains.size(), 2U);
  EXPECT_EQ(first.domains[0].domain, "east");
  EXPECT_THAT(first.domains[0].ranks, ElementsAre(0, 2));
  EXPECT_EQ(first.domains[1].domain, "west");
  EXPECT_THAT(first.domains[1].ranks, ElementsAre(1));
  EXPECT_EQ(first.own, "east");
  EXPECT_FALSE(first.whole);
  EXPECT_FALSE(course.begin.local);
  EXPECT_THAT(course.begin.sums_with, ElementsAre(0, 2));
  EXPECT_EQ(exchange.divisor(8), 8) << "the updates of domains are added";
  EXPECT_TRUE(std::get<ExchangeUpdates>(exchange.course(Step{2}).first.value()).whole);
}

TEST(StepExchange, WhatADomainTrainedIsCommittedOneStepAfterAWholeExchange) {
  StepExchange exchange{Gaia{2}};
  exchange.begin(0, kEastWestEast);
  Steps steps(3);
  EXPECT_TRUE(exchange.concluded(Step{0}, steps.step({1, 2, 3})));
  EXPECT_TRUE(exchange.concluded(Step{1}, steps.step({1, 1, 1})));  // with a whole exchange
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0, 0));
  EXPECT_TRUE(exchange.concluded(Step{2}, steps.step({1, 1, 1})));
  EXPECT_THAT(exchange.committable(), ElementsAre(1, 2, 3));
  EXPECT_THAT(exchange.merged(std::vector<std::uint32_t>{2}), ElementsAre(3, 2, 5));
  EXPECT_THAT(exchange.merged(std::vector<std::uint32_t>{1}), ElementsAre(1, 4, 3));
  exchange.consolidated();
  EXPECT_FALSE(exchange.concluded(Step{3}, steps.step({0, 0, 0})));
  EXPECT_THAT(exchange.committable(), ElementsAre(3, 4, 5));
}

// Its whole exchange was taken back, and so says nothing of the records before it.
TEST(StepExchange, AStepThatIsDroppedTakesBackWhatWasExchanged) {
  StepExchange exchange{Gaia{2}};
  exchange.begin(0, kEastWestEast);
  Steps steps(3);
  EXPECT_TRUE(exchange.concluded(Step{0}, steps.step({1, 2, 3})));
  EXPECT_TRUE(exchange.concluded(Step{1}, steps.step({1, 1, 1}, 0)));
  EXPECT_TRUE(exchange.concluded(Step{2}, steps.step({1, 1, 1})));
  EXPECT_THAT(exchange.committable(), ElementsAre(0, 0, 0));
  EXPECT_THAT(exchange.merged(std::vector<std::uint32_t>{1}), ElementsAre(0, 4, 0));
}

TEST(StepExchange, OneDomainSumsTheGradientsOfAllAndItsReplicasAreEqual) {
  StepExchange exchange{Gaia{50}};
  exchange.begin(1, {"east", "east"});
  EXPECT_FALSE(exchange.course(Step{49}).first);
  EXPECT_THAT(exchange.course(Step{49}).begin.sums_with, IsEmpty());
  Steps steps(2);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5, 3})));
  EXPECT_FALSE(exchange.concluded(Step{1}, steps.step({5, 3})));
  EXPECT_THAT(exchange.committable(), ElementsAre(5, 3));
}

// In the new generation, ranks 1 and 2 of the old one are 0 and 3.
TEST(StepExchange, HoldersConsolidateByTheDomainsInWhichTheyTrained) {
  StepExchange exchange{Gaia{50}};
  exchange.begin(1, kEastWestEast);
  const Consolidate all = exchange.consolidation(std::vector<std::uint32_t>{1, 2}, {0, 3});
  EXPECT_THAT(all.holders, ElementsAre(0, 3));
  ASSERT_EQ(all.domains.size(), 2U);
  EXPECT_EQ(all.domains[0].domain, "west");
  EXPECT_THAT(all.domains[0].ranks, ElementsAre(0));
  EXPECT_EQ(all.domains[1].domain, "east");
  EXPECT_THAT(all.domains[1].ranks, ElementsAre(3));
}

}  // namespace
}  // namespace antdt::worker
