// Tests when messages are sent: turns that wait, and orders that wait for a checkpoint.
#include <gtest/gtest.h>

#include "jobd/held_orders.h"
#include "jobd/outbox.h"

namespace antdt::jobd {
namespace {

constexpr MonoTime kNow{std::chrono::seconds(100)};

std::vector<Outgoing> to(const std::string& endpoint) { return {{{endpoint, ""}, {}}}; }

std::vector<std::string> endpoints(const std::vector<Outgoing>& messages) {
  std::vector<std::string> names;
  for (const Outgoing& m : messages) names.push_back(m.route.endpoint);
  return names;
}
using Names = std::vector<std::string>;

TEST(HeldTurns, ATurnThatWaitsForNothingIsSentAtOnceAndOnce) {
  HeldTurns turns;
  turns.add(to("a"));
  EXPECT_EQ(endpoints(turns.take_due(kNow)), Names{"a"});
  EXPECT_TRUE(turns.take_due(kNow).empty());
}

TEST(HeldTurns, LaterTurnsWaitBehindOneWhoseHistoryIsNotKept) {
  HeldTurns turns;
  const std::uint64_t settled = turns.add_waiting(to("a"), kNow);
  turns.add(to("b"));
  EXPECT_TRUE(turns.take_due(kNow).empty());
  turns.history_kept(settled);
  EXPECT_EQ(endpoints(turns.take_due(kNow)), (Names{"a", "b"}));
}

TEST(HeldTurns, AHistoryThatIsNotKeptHoldsUpTrainingForTwoSecondsAtMost) {
  HeldTurns turns;
  std::ignore = turns.add_waiting(to("a"), kNow);
  EXPECT_TRUE(turns.take_due(kNow + HeldTurns::kPatience - std::chrono::milliseconds(1)).empty());
  EXPECT_EQ(endpoints(turns.take_due(kNow + HeldTurns::kPatience)), Names{"a"});
}

TEST(HeldTurns, AResultThatIsHeldAfterItsTurnWasSentChangesNoLaterTurn) {
  HeldTurns turns;
  const std::uint64_t first = turns.add_waiting(to("a"), kNow);
  std::ignore = turns.take_due(kNow + HeldTurns::kPatience);
  const std::uint64_t second = turns.add_waiting(to("b"), kNow + HeldTurns::kPatience);
  turns.history_kept(first);
  EXPECT_TRUE(turns.take_due(kNow + HeldTurns::kPatience).empty());
  turns.history_kept(second);
  EXPECT_EQ(endpoints(turns.take_due(kNow + HeldTurns::kPatience)), Names{"b"});
}

const Member kReader{{'w', 0}, Attempt{1}};

TEST(HeldOrders, ARepeatedOrderReplacesTheFirstAndFetchesNothingAgain) {
  HeldOrders orders;
  const auto number = orders.hold(kReader, "checkpoints/7", {{"first", ""}, {}});
  ASSERT_TRUE(number);
  EXPECT_FALSE(orders.hold(kReader, "checkpoints/7", {{"again", ""}, {}}));
  const auto order = orders.release(kReader, *number);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->route.endpoint, "again");
  EXPECT_FALSE(orders.release(kReader, *number)) << "once";
}

TEST(HeldOrders, AnOrderForAnotherCheckpointEndsTheEarlierOne) {
  HeldOrders orders;
  const auto first = orders.hold(kReader, "checkpoints/7", {{"a", ""}, {}});
  const auto second = orders.hold(kReader, "checkpoints/9", {{"b", ""}, {}});
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(orders.release(kReader, *first));
  EXPECT_TRUE(orders.release(kReader, *second));
}

TEST(HeldOrders, AMemberThatIsToldToLeaveHearsNoLaterOrder) {
  HeldOrders orders;
  const auto number = orders.hold(kReader, "checkpoints/7", {{"a", ""}, {}});
  orders.drop(kReader);
  EXPECT_FALSE(orders.release(kReader, number.value_or(0)));
}

}  // namespace
}  // namespace antdt::jobd
