#include "trainer/ps/push_order.h"

#include <gtest/gtest.h>

#include <string>

#include "core/overloaded.h"

namespace antdt::ps::push_order_test {
namespace {

wire::PsCommit push(std::uint64_t number) {
  wire::PsCommit commit;
  commit.number = number;
  commit.phase = 1;
  commit.to = 10 * number;
  return commit;
}
wire::PsDecided applied(std::uint64_t number) { return {number, wire::PsFate::kApplied, number}; }

// Everything that must be sent now.
std::string said_now(PushOrder& order) {
  std::string all;
  while (const auto say = order.next()) {
    all += std::visit(
        Overloaded{
            [](const PushOrder::Stage& s) { return "stage " + std::to_string(s.number) + ";"; },
            [](const wire::PsCommit& c) { return "commit " + std::to_string(c.number) + ";"; }},
        *say);
  }
  return all;
}

TEST(PushOrder, APushIsStagedAndThenCommittedAndThenTaken) {
  PushOrder order;
  EXPECT_EQ(said_now(order), "");
  order.add(push(1));
  EXPECT_EQ(said_now(order), "stage 1;");
  EXPECT_EQ(said_now(order), "") << "once";
  EXPECT_EQ(order.said(), PushOrder::Said());
  order.staged(1);
  EXPECT_EQ(said_now(order), "commit 1;");
  EXPECT_EQ(order.said(), (PushOrder::Said{1, 10}));
  EXPECT_FALSE(order.take_decision());
  order.decided(1, applied(1));
  EXPECT_EQ(order.take_decision()->number, 1U);
  EXPECT_TRUE(order.empty());
}

TEST(PushOrder, OneAtATimeIsStagedAndNoneIsCommittedBeforeTheOneBeforeIsDecided) {
  PushOrder order;
  for (std::uint64_t number = 1; number <= 3; ++number) order.add(push(number));
  EXPECT_EQ(said_now(order), "stage 1;");
  order.staged(1);
  EXPECT_EQ(said_now(order), "commit 1;stage 2;");
  order.staged(2);
  EXPECT_EQ(said_now(order), "stage 3;");
  order.staged(3);
  EXPECT_EQ(said_now(order), "") << "the first is not decided";
  order.decided(1, applied(1));
  EXPECT_EQ(said_now(order), "commit 2;") << "whether or not the decision was taken";
  EXPECT_EQ(order.take_decision()->number, 1U);
  EXPECT_FALSE(order.take_decision());
  order.decided(2, applied(2));
  EXPECT_EQ(said_now(order), "commit 3;");
  EXPECT_EQ(order.said(), (PushOrder::Said{1, 30}));
}

}  // namespace
}  // namespace antdt::ps::push_order_test
