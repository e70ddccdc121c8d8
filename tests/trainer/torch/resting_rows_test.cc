// Rows of a table that an update leaves out, because nothing of them would change.
#include <gtest/gtest.h>

#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/engine_testing.h"
#include "trainer/torch/rows/awake_rows.h"

namespace antdt::trainer {
namespace {

TEST(AwakeRows, RunsHaveAllThatAreAwakeAndJoinOverSmallGaps) {
  AwakeRows rows(1000, 3);
  using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  const auto runs = [&] {
    Runs found;
    rows.for_each_run([&](std::uint64_t first, std::uint64_t n) { found.emplace_back(first, n); });
    return found;
  };
  EXPECT_TRUE(runs().empty());
  for (const std::uint64_t row : {0U, 5U, 63U, 64U, 70U, 999U}) rows.wake(row);
  EXPECT_EQ(runs(), (Runs{{0, 6}, {63, 2}, {70, 1}, {999, 1}}));
  rows.rest_all();
  std::vector<float> values(3000);
  values[3 * 200 + 2] = -1e-30F;
  values[3 * 300] = -0.0F;
  rows.wake_where_not_zero(values);
  EXPECT_EQ(runs(), (Runs{{200, 1}}));
}

// Rows that were in no batch yet are left out of an update, and nobody can tell: the state is the
// same to the last bit. `rows` decides whether members sum rows or the whole table.
class RestingRows : public ::testing::TestWithParam<std::tuple<std::string, std::uint64_t>> {
 protected:
  [[nodiscard]] TrainerConfig config(const std::string& how) const {
    TrainerConfig config = config_of("deepfm", std::get<0>(GetParam()));
    if (config.optimizer == "sgd") config.momentum = 0.9;
    config.embedding_gradients = how;
    return config;
  }
  data::DataShape shape_ = [] {
    data::DataShape shape = click_shape();
    shape.id_rows = std::get<1>(GetParam());
    return shape;
  }();
};
INSTANTIATE_TEST_SUITE_P(All, RestingRows,
                         ::testing::Combine(::testing::Values("sgd", "adam"),
                                            ::testing::Values(60, 5000)));

TEST_P(RestingRows, AreTheSameToTheLastBit) {
  for (const std::uint32_t members : {1U, 3U}) {
    std::vector<std::vector<float>> states;
    for (const std::string how : {"dense", "auto"}) {
      LocalGroup group(members);
      group.run([&](Collective& collective) {
        const auto engine = engine_of(config(how), shape_);
        // Rows wake in later steps, too: the first batches have ids below 10.
        for (unsigned i = 0; i < 6; ++i) {
          data::Examples batch = clicks(8, 10 * i + collective.rank());
          if (i < 3) {
            for (std::int64_t& id : batch.ids) id %= 10;
          }
          step(*engine, collective, {batch}, 8.0 * members);
        }
        if (collective.rank() == 0) states.push_back(state_of(*engine));
      });
    }
    EXPECT_EQ(states.at(0), states.at(1)) << members << " members";
  }
}

TEST_P(RestingRows, AreFoundInAStateThatIsTakenOver) {
  const auto whole = engine_of(config("dense"), shape_);
  const auto awake = engine_of(config("auto"), shape_);
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    // It has rows awake already, others than those of the state that it takes over.
    step(*awake, collective, {clicks(8, 50)}, 8);
    for (unsigned i = 0; i < 3; ++i) step(*whole, collective, {clicks(8, i)}, 8);
    take_over(*awake, *whole);
    for (unsigned i = 3; i < 6; ++i) {
      data::Examples batch = clicks(8, i);
      for (std::int64_t& id : batch.ids) id %= 10;
      step(*whole, collective, {batch}, 8);
      step(*awake, collective, {batch}, 8);
    }
  });
  EXPECT_EQ(state_of(*whole), state_of(*awake));
}

}  // namespace
}  // namespace antdt::trainer
