#include "trainer/ps/cut_orders.h"

#include <gtest/gtest.h>

namespace antdt::ps::cut_orders_test {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST(CutOrdersTest, ACheckpointThatWasBegunIsWrittenUntilItHasAnOutcome) {
  CutOrders cuts;
  cuts.know(5);
  EXPECT_EQ(cuts.outcome(5), nullptr);
  EXPECT_EQ(cuts.writing(), Numbers{});
  EXPECT_TRUE(cuts.begun(5, 12).empty());
  EXPECT_EQ(cuts.writing(), Numbers{5});
  cuts.written(5, {});
  EXPECT_EQ(cuts.writing(), Numbers{});
  ASSERT_NE(cuts.outcome(5), nullptr);
  EXPECT_EQ(cuts.outcome(5)->version, 12U);
  EXPECT_TRUE(cuts.outcome(5)->error.empty());
}

TEST(CutOrdersTest, ALaterOneThatIsBegunEndsThoseThatWereNotBegun) {
  CutOrders cuts;
  cuts.know(4);
  cuts.know(5);
  cuts.know(6);
  ASSERT_TRUE(cuts.begun(4, 9).empty());
  const auto passed = cuts.begun(6, 12);
  ASSERT_EQ(passed.size(), 1U) << "4 was begun in time";
  EXPECT_EQ(passed[0].number, 5U);
  EXPECT_EQ(passed[0].error, CutOrders::kOvertaken);
  ASSERT_NE(cuts.outcome(5), nullptr);
  EXPECT_EQ(cuts.writing(), (Numbers{4, 6}));
}

TEST(CutOrdersTest, AnOutcomeStaysEvenIfTheCheckpointIsBegunAfterIt) {
  CutOrders cuts;
  cuts.failed(5, "no room");
  ASSERT_TRUE(cuts.begun(5, 12).empty());
  EXPECT_EQ(cuts.writing(), Numbers{});
  ASSERT_NE(cuts.outcome(5), nullptr);
  EXPECT_EQ(cuts.outcome(5)->error, "no room");
}

TEST(CutOrdersTest, OneThatIsBeingWrittenIsNotForgottenToMakeRoom) {
  CutOrders cuts;
  ASSERT_TRUE(cuts.begun(1, 2).empty());
  for (std::uint64_t n = 2; n <= CutOrders::kKept + 1; ++n) cuts.know(n);
  EXPECT_EQ(cuts.writing(), Numbers{1});
  EXPECT_TRUE(cuts.overtaken(2)) << "this one was forgotten";
}

// "begun" and "done" in an image are those of earlier versions.
TEST(CutOrdersTest, AnImageKeepsHowFarEachOneIs) {
  CutOrders cuts;
  cuts.know(1);
  cuts.failed(2, "no room");
  ASSERT_TRUE(cuts.begun(3, 9).size() == 1);
  ASSERT_TRUE(cuts.begun(4, 9).empty());
  cuts.written(3, {});
  const CutOrdersImage image = cuts.image();
  ASSERT_EQ(image.cuts.size(), 4U);
  const auto is = [&](std::size_t i, bool begun, bool done) {
    return image.cuts[i].begun == begun && image.cuts[i].done == done;
  };
  EXPECT_TRUE(is(0, false, true) && is(1, false, true) && is(2, true, true) && is(3, true, false));
  CutOrders restored;
  ASSERT_TRUE(restored.restore(image));
  EXPECT_EQ(restored.writing(), Numbers{4});
  EXPECT_NE(restored.outcome(3), nullptr);
  EXPECT_EQ(restored.image().cuts[2].begun, true);
}

}  // namespace
}  // namespace antdt::ps::cut_orders_test
