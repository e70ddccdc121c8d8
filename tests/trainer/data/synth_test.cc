#include "trainer/data/formats/synth.h"

#include "tests/sanitized.h"
#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

class SynthTest : public DataTest {};

TEST_F(SynthTest, TheSameSeedGivesTheSameBytesAndAnotherDoesNot) {
  const auto a = synthesize_criteo(2000, 7, directory_ / "a");
  const auto b = synthesize_criteo(2000, 7, directory_ / "b");
  const auto c = synthesize_criteo(2000, 8, directory_ / "c");
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_OK(c);
  EXPECT_EQ(*read_file(a->train_file), *read_file(b->train_file));
  EXPECT_EQ(*read_file(a->eval_file), *read_file(b->eval_file));
  EXPECT_NE(*read_file(a->train_file), *read_file(c->train_file));
  EXPECT_NE(*read_file(a->train_file), *read_file(a->eval_file));
  EXPECT_EQ(a->best_auc, b->best_auc);
}

TEST_F(SynthTest, EveryRowIsReadByTheCriteoReader) {
  const auto report = synthesize_criteo(1500, 3, directory_ / "s");
  ASSERT_OK(report);
  const auto train = index(config("criteo", report->train_file));
  const auto eval = index(config("criteo", report->eval_file));
  ASSERT_OK(train);
  ASSERT_OK(eval);
  EXPECT_EQ(train->records, 1500U);
  EXPECT_EQ(eval->records, report->eval_rows);
  EXPECT_EQ(report->eval_rows, 1000U);
}

TEST_F(SynthTest, AnySeedGivesARateNearAQuarterAndABestAucNearEighty) {
  for (std::uint64_t seed = 1; seed <= all_or_some(5U, 1U); ++seed) {
    const auto report = synthesize_criteo(40000, seed, directory_ / std::to_string(seed));
    ASSERT_OK(report);
    EXPECT_NEAR(report->base_rate, 0.25, 0.02) << "seed " << seed;
    EXPECT_NEAR(report->best_auc, 0.80, 0.02) << "seed " << seed;
    EXPECT_NEAR(report->best_log_loss, 0.45, 0.03) << "seed " << seed;
  }
}

TEST_F(SynthTest, AskingForNothingIsAnError) {
  EXPECT_FALSE(synthesize_criteo(0, 1, directory_ / "n"));
}

}  // namespace
}  // namespace antdt::data
