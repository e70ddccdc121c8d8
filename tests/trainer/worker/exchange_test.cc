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

// --------------------------------------------------------------------------- visits

const ExchangeUpdates& updates_of(const StepExchange::Course& course) {
  return std::get<ExchangeUpdates>(course.first.value());
}

// A step in which each domain sent 10 of 40 bytes, and a quarter of the records was not right in
// the guests.
Agreement visited(Steps& steps) {
  Agreement agreed = steps.step({4, 4, 4});
  agreed.sent_bytes = 20;
  agreed.dense_bytes = 80;
  agreed.visit = {12, 12, 9, 1.5, 3};
  return agreed;
}
Agreement trained(Steps& steps) {
  Agreement agreed = visited(steps);
  agreed.visit = {};
  return agreed;
}

TEST(StepExchange, ReplicasVisitOtherDomainsInEverySoManiethStep) {
  StepExchange exchange{Gaia{50, 3, 0.2}};
  exchange.begin(0, kEastWestEast);
  EXPECT_FALSE(updates_of(exchange.course(Step{1})).visits);
  EXPECT_TRUE(updates_of(exchange.course(Step{2})).visits);
  EXPECT_EQ(updates_of(exchange.course(Step{2})).threshold, 0.2);
  Steps steps(3);
  EXPECT_TRUE(exchange.concluded(Step{0}, trained(steps)));
  EXPECT_TRUE(exchange.concluded(Step{1}, trained(steps)));
  EXPECT_FALSE(exchange.visit());
  EXPECT_TRUE(exchange.concluded(Step{2}, visited(steps)));
  // Two steps were applied before it, and three exchanges preceded it, its own included.
  const wire::Visit first{Step{3}, 0.2, 2, 12, 12, 9, 1.5, 3, 60, 240};
  EXPECT_EQ(exchange.visit(), first);
  for (std::uint64_t step = 3; step < 5; ++step) {
    EXPECT_TRUE(exchange.concluded(Step{step}, trained(steps)));
  }
  EXPECT_EQ(exchange.visit(), first);
  EXPECT_TRUE(exchange.concluded(Step{5}, visited(steps)));
  EXPECT_EQ(exchange.visit(), (wire::Visit{Step{6}, 0.2, 3, 12, 12, 9, 1.5, 3, 60, 240}));
}

TEST(StepExchange, APlansThresholdIsOfTheNextStepsAndWhatWasMeasuredBeforeItDoesNotCount) {
  StepExchange exchange{Gaia{50, 4, 0.2}};
  exchange.begin(0, kEastWestEast);
  Steps steps(3);
  EXPECT_TRUE(exchange.concluded(Step{0}, trained(steps)));
  exchange.plan_threshold(0.1);
  EXPECT_EQ(updates_of(exchange.course(Step{1})).threshold, 0.1);
  EXPECT_TRUE(exchange.concluded(Step{1}, trained(steps)));
  exchange.plan_threshold(0.1);  // a plan that changes something else
  EXPECT_TRUE(exchange.concluded(Step{2}, trained(steps)));
  EXPECT_TRUE(exchange.concluded(Step{3}, visited(steps)));
  EXPECT_EQ(exchange.visit(), (wire::Visit{Step{4}, 0.1, 2, 12, 12, 9, 1.5, 3, 60, 240}));
  exchange.plan_threshold({});
  EXPECT_EQ(updates_of(exchange.course(Step{4})).threshold, 0.2) << "that of the job";
}

TEST(StepExchange, WhatIsDroppedOrFromBeforeAConsolidationIsNoPartOfAVisit) {
  StepExchange exchange{Gaia{50, 4, 0.2}};
  exchange.begin(0, kEastWestEast);
  Steps steps(3);
  EXPECT_TRUE(exchange.concluded(Step{0}, trained(steps)));
  exchange.consolidated();
  EXPECT_TRUE(exchange.concluded(Step{1}, trained(steps)));
  Agreement dropped = trained(steps);
  dropped.all_well = false;
  ASSERT_FALSE(dropped.applies());
  EXPECT_TRUE(exchange.concluded(Step{2}, dropped));
  EXPECT_TRUE(exchange.concluded(Step{3}, visited(steps)));
  EXPECT_EQ(exchange.visit(), (wire::Visit{Step{4}, 0.2, 1, 12, 12, 9, 1.5, 3, 40, 160}));
  exchange.begin(0, kEastWestEast);
  EXPECT_FALSE(exchange.visit()) << "another phase";
}

TEST(StepExchange, OneDomainHasNobodyToVisit) {
  StepExchange exchange{Gaia{50, 1, 0.2}};
  exchange.begin(0, {"east", "east"});
  EXPECT_FALSE(exchange.course(Step{0}).first);
  Steps steps(2);
  EXPECT_FALSE(exchange.concluded(Step{0}, steps.step({5, 3})));
  EXPECT_FALSE(exchange.visit());
}

}  // namespace
}  // namespace antdt::worker
