#include "ctl/job/observers/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using ::testing::HasSubstr;

constexpr Generation kGeneration{4};

wire::StepRun run(std::uint64_t first, std::uint64_t steps, std::uint64_t place = 0) {
  return {Step{first}, steps, 1, {place, place}, {8, 8}};
}

class StepWatchTest : public testing::Test {
 protected:
  StepWatchTest() { watch.begin(kGeneration, 2, Step{10}); }
  // The first steps of the runs that are new; the error if it is refused.
  std::string hears(std::vector<wire::StepRun> runs, Step step = Step{1000}) {
    const auto fresh = watch.hear({kGeneration, std::move(runs)}, step);
    if (!fresh) return fresh.error().message;
    std::string text;
    for (const wire::StepRun& r : *fresh) text += fmt::format("{}+{} ", r.first, r.steps);
    return text;
  }
  StepWatch watch;
};

TEST_F(StepWatchTest, HearsWhatIsNew) {
  EXPECT_EQ(hears({run(11, 5)}), "11+5 ");
  EXPECT_EQ(hears({run(11, 5)}), "");
  EXPECT_EQ(hears({run(11, 7), run(18, 1)}), "11+7 18+1 ") << "a run grew";
  EXPECT_EQ(hears({run(18, 1)}), "");
}

TEST_F(StepWatchTest, OnlyWhatIsSafeIsAcknowledged) {
  EXPECT_EQ(watch.kept_through(), Step{10});
  hears({run(11, 5)});
  EXPECT_EQ(watch.kept_through(), Step{10});
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{15});
}

// A message was lost. Its steps are reported again, and are forgotten only after that.
TEST_F(StepWatchTest, NothingBehindAGapIsAcknowledged) {
  hears({run(11, 5)});
  EXPECT_EQ(hears({run(18, 3)}), "18+3 ");
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{15});
  hears({run(16, 2), run(18, 3)});
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{20});
}

TEST_F(StepWatchTest, AnotherGenerationSaysNothing) {
  const auto fresh = watch.hear({Generation{3}, {run(11, 5)}}, Step{1000});
  ASSERT_TRUE(fresh);
  EXPECT_TRUE(fresh->empty());
  StepWatch none;
  EXPECT_TRUE(none.hear({{}, {run(1, 1)}}, Step{1})->empty());
}

TEST_F(StepWatchTest, AfterARestartItGoesOnFromWhatIsToldFirst) {
  watch.resume(kGeneration, 2);
  EXPECT_EQ(watch.kept_through(), Step{});
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{});
  hears({run(501, 9)});
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{509});
}

TEST_F(StepWatchTest, AnImpossibleReportIsRefusedAndChangesNothing) {
  wire::StepRun three = run(11, 1);
  three.records.push_back(8);
  EXPECT_THAT(hears({three}), HasSubstr("2 places and 3 parts, of 2 members"));
  EXPECT_THAT(hears({run(11, 0)}), HasSubstr("0 steps"));
  EXPECT_THAT(hears({run(0, 3)}), HasSubstr("cannot be"));
  EXPECT_THAT(hears({run(11, 5)}, Step{14}), HasSubstr("training is at 14"));
  EXPECT_THAT(hears({run(11, 5), run(15, 5)}), HasSubstr("follow on 15"));
  EXPECT_THAT(hears({run(11, std::uint64_t(1) << 62)}), HasSubstr("cannot be"));
  EXPECT_THAT(hears({run(11, 1, std::uint64_t(1) << 61)}), HasSubstr("cannot be"));
  wire::StepRun large = run(11, 1000);
  large.records = {std::uint64_t(1) << 59, 8};
  EXPECT_THAT(hears({large}, Step{2000}), HasSubstr("cannot be"));
  watch.kept(watch.mark());
  EXPECT_EQ(watch.kept_through(), Step{10});
}

TEST_F(StepWatchTest, MoreThanAMessageMayHoldIsRefused) {
  std::vector<wire::StepRun> runs;
  for (std::uint64_t i = 0; i <= wire::StepHistory::kMaxNumbers / 4; ++i) {
    runs.push_back(run(11 + i, 1));
  }
  EXPECT_THAT(hears(runs, Step{1U << 30}), HasSubstr("cannot be"));
  runs.pop_back();
  EXPECT_THAT(hears(runs, Step{1U << 30}), ::testing::Not(HasSubstr("cannot be")));
}

}  // namespace
}  // namespace antdt::ctl
