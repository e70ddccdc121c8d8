// The model that waits for the time of an emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/trainer/local_group.h"
#include "trainer/emulated/emulated_engine.h"
#include "trainer/emulated/emulated_ps_model.h"

namespace antdt::trainer {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::HasSubstr;

class EmulatedTest : public testing::Test {
 protected:
  EmulatedTest() {
    emulation_.parameters = 4;
    drill::Device device;
    device.name = "fast";
    device.workers = {"w1"};
    device.flat = milliseconds(2);
    device.flat_until = 2;
    device.per_sample = microseconds(500);
    device.memory = 6;
    emulation_.devices.push_back(device);
    shape_.id_width = 1;
    shape_.id_rows = 100;
  }
  Result<Pace> pace(WorkerId worker = {'w', 1}) {
    return Pace::of(emulation_, worker, 7, clock_, [this](MonoTime until) {
      waits_.push_back(until - clock_.now());
      clock_.set(until);
    });
  }
  static data::Examples batch(std::vector<std::int64_t> ids) {
    data::Examples examples;
    examples.count = ids.size();
    examples.ids = std::move(ids);
    return examples;
  }
  drill::Emulation emulation_;
  data::DataShape shape_;
  ManualClock clock_;
  std::vector<Duration> waits_;
};

TEST_F(EmulatedTest, AMicroBatchTakesTheTimeOfTheCurve) {
  auto engine = make_emulated_engine(shape_, 4, *pace());
  ASSERT_TRUE(engine) << engine.error().message;
  LocalGroup group(1);
  const auto alone = group.member(0);
  (*engine)->begin_step(*alone);
  ASSERT_TRUE((*engine)->compute(batch({0}), false));
  ASSERT_TRUE((*engine)->compute(batch({1, 2, 3, 4}), true));
  EXPECT_THAT(waits_, testing::ElementsAre(milliseconds(2), milliseconds(3)));
}

TEST_F(EmulatedTest, RecordsCountInTheirParameter) {
  auto engine = make_emulated_engine(shape_, 4, *pace());
  ASSERT_TRUE(engine) << engine.error().message;
  LocalGroup group(1);
  const auto alone = group.member(0);
  (*engine)->begin_step(*alone);
  const auto sums = (*engine)->compute(batch({0, 4, 99}), true);
  ASSERT_TRUE(sums) << sums.error().message;
  EXPECT_EQ(sums->weight, 3);
  ASSERT_TRUE((*engine)->finish_reduction());
  ASSERT_TRUE((*engine)->apply(3));
  const auto part = (*engine)->state_parts().at(0);
  std::vector<float> counts(4);
  ASSERT_EQ(part.size(), counts.size() * sizeof(float));
  std::memcpy(counts.data(), part.data(), part.size());
  EXPECT_THAT(counts, testing::ElementsAre(2, 0, 0, 1));
}

TEST_F(EmulatedTest, ABatchThatDoesNotFitIsAnErrorThatIsClassedAsLackOfMemory) {
  auto engine = make_emulated_engine(shape_, 4, *pace());
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE((*engine)->compute(batch({0, 1, 2, 3, 4, 5}), true));
  const auto sums = (*engine)->compute(batch({0, 1, 2, 3, 4, 5, 6}), true);
  ASSERT_FALSE(sums);
  EXPECT_THAT(sums.error().message, HasSubstr("out of memory: a micro-batch has 7 samples"));
}

TEST_F(EmulatedTest, AWorkerWithoutADeviceIsAnError) {
  const auto without = pace({'w', 2});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("no [[emulated.device]] is for worker w2"));
}

TEST_F(EmulatedTest, NoiseDependsOnTheBatchAndIsRepeatable) {
  emulation_.noise = 0.1;
  for (int again = 0; again < 2; ++again) {
    auto model = make_emulated_ps_model(shape_, 4, *pace());
    ASSERT_TRUE(model) << model.error().message;
    const auto rows = (*model)->rows_of(batch({1, 5, 7}));
    EXPECT_THAT(rows.at(0).keys, testing::ElementsAre(1, 3));
    for (int i = 0; i < 2; ++i) {
      const auto computed = (*model)->compute(batch({1, 5, 7}), rows, {});
      ASSERT_TRUE(computed) << computed.error().message;
      EXPECT_THAT(computed->gradients.at(0).gradient.values, testing::ElementsAre(2, 1));
    }
  }
  ASSERT_EQ(waits_.size(), 4U);
  EXPECT_NE(waits_[0], waits_[1]);
  EXPECT_EQ(waits_[0], waits_[2]);
  EXPECT_EQ(waits_[1], waits_[3]);
}

}  // namespace
}  // namespace antdt::trainer
