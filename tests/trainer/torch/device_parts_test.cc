// The parts of the engine for devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <new>

#include "tests/trainer/torch/torch_testing.h"
#include "trainer/torch/device/choice.h"
#include "trainer/torch/device/device_timer.h"
#include "trainer/torch/device/loss_scale.h"
#include "trainer/torch/device/micro_batch_fit.h"
#include "trainer/torch/device/out_of_memory.h"
#include "trainer/torch/embedding.h"
#include "trainer/torch/models/interactions.h"
#include "trainer/torch/models/tensor_ops.h"

namespace antdt::trainer {
namespace {

using testing::HasSubstr;

// ------------------------------------------------------------------------- time

// A queue whose points are reached when the test says so.
class FakePoints final : public TimedPoints {
 public:
  struct State {
    std::map<Point, int> at;  // milliseconds
    std::size_t next = 0;
    int now = 0, passed = 0;
  };
  explicit FakePoints(State& state) : state_(state) {}
  Point set() override {
    state_.at[state_.next] = state_.now;
    return state_.next++;
  }
  bool reached(Point point) const override { return state_.at.at(point) <= state_.passed; }
  Duration between(Point from, Point to) const override {
    return std::chrono::milliseconds(state_.at.at(to) - state_.at.at(from));
  }
  void free(Point point) override { state_.at.erase(point); }

 private:
  State& state_;
};

class DeviceTimerTest : public ::testing::Test {
 protected:
  void span(int from, int to) {
    state.now = from;
    timer.begin();
    state.now = to;
    timer.end();
  }
  FakePoints::State state;
  DeviceTimer timer{std::make_unique<FakePoints>(state)};
};

TEST_F(DeviceTimerTest, ASpanCountsOnceTheDeviceHasPassedIt) {
  span(10, 25);
  span(30, 31);
  EXPECT_EQ(timer.take(), Duration{}) << "nothing is waited for";
  state.passed = 25;
  EXPECT_EQ(timer.take(), std::chrono::milliseconds(15));
  state.passed = 40;
  EXPECT_EQ(timer.take(), std::chrono::milliseconds(1));
  EXPECT_EQ(timer.take(), Duration{});
  EXPECT_TRUE(state.at.empty()) << "points are given back";
}

TEST_F(DeviceTimerTest, ASpanThatIsDroppedDoesNotCount) {
  state.now = 1;
  timer.begin();
  timer.drop();
  timer.end();
  span(5, 7);
  state.passed = 100;
  EXPECT_EQ(timer.take(), std::chrono::milliseconds(2));
  EXPECT_TRUE(state.at.empty());
}

// ----------------------------------------------------------------------- memory

TEST(MicroBatchFitTest, HalvesWhatDoesNotFitAndRemembersIt) {
  MicroBatchFit fit;
  EXPECT_EQ(fit.next(100), 100U);
  EXPECT_FALSE(fit.proven(1));
  EXPECT_TRUE(fit.too_large(100));
  EXPECT_EQ(fit.next(100), 50U);
  EXPECT_TRUE(fit.too_large(50));
  EXPECT_EQ(fit.bound(), 25U);
  fit.fitted(25);
  EXPECT_TRUE(fit.proven(25));
  EXPECT_TRUE(fit.proven(7));
  EXPECT_FALSE(fit.proven(26));
  EXPECT_EQ(fit.next(10), 10U);
}
TEST(MicroBatchFitTest, OneRecordCannotBeHalved) {
  MicroBatchFit fit;
  EXPECT_TRUE(fit.too_large(3));
  EXPECT_FALSE(fit.too_large(1));
}

TEST(MemoryEvidence, WhatWasAskedForIsReadFromTheMessage) {
  EXPECT_EQ(bytes_asked("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"),
            2147483648U);
  EXPECT_EQ(bytes_asked("Tried to allocate 20.50 MiB"), 21495808U);
  EXPECT_EQ(
      bytes_asked("DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 bytes. "
                  "Error code 12"),
      123U);
  EXPECT_EQ(bytes_asked("tried to allocate much"), std::nullopt);
  EXPECT_EQ(bytes_asked("CUDA error: out of memory"), std::nullopt);
}
TEST(MemoryEvidence, NamesTheDeviceTheBytesAndTheMicroBatch) {
  const MemoryShortage shortage{"cuda:1", 512, 1000, {200, 3000, 2500}};
  EXPECT_EQ(
      to_text(shortage),
      "out of memory on cuda:1 in a micro-batch of 512 records: 1000 bytes were asked for; of "
      "the device's 3000 bytes, 200 are free; tensors of this process use 2500");
  EXPECT_EQ(to_text({"cpu", 2, {}, {}}), "out of memory on cpu in a micro-batch of 2 records");
}
TEST(MemoryEvidence, OfWhatWasSurvivedHasOtherWords) {
  const MemoryShortage shortage{"cuda:1", 512, 1000, {200, 3000, 2500}};
  EXPECT_EQ(survived_text(shortage, 256),
            "cuda:1 has no room for a micro-batch of 512 records: 1000 bytes were asked for; of "
            "the device's 3000 bytes, 200 are free; tensors of this process use 2500; from now on "
            "micro-batches have at most 256 records here");
}
TEST(MemoryEvidence, IsThereForEachKindOfException) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of luck")));
  EXPECT_THROW(
      {
        try {
          torch::empty({std::int64_t{1} << 46});
        } catch (const std::exception& e) {
          EXPECT_TRUE(is_out_of_memory(e)) << e.what();
          throw;
        }
      },
      std::exception);
}

TEST(LossScaleTest, GrowsSeldomAndHalvesAtOnce) {
  LossScale scale;
  for (std::uint32_t i = 1; i < LossScale::kGrowsAfter; ++i) EXPECT_EQ(scale.fitted(), 1);
  EXPECT_EQ(scale.fitted(), 2);
  EXPECT_EQ(scale.value(), 2 * LossScale::kFirst);
  int halved = 0;
  while (scale.overflowed()) ++halved;
  EXPECT_EQ(halved, 17) << "from 2^17 to 1";
  EXPECT_EQ(scale.value(), LossScale::kLeast);
}

// ----------------------------------------------------------------------- choice

TrainerConfig config_for(const std::string& device, const std::string& precision = "fp32") {
  TrainerConfig config = parse_trainer_config("{}").value();
  config.device = device;
  config.precision = precision;
  return config;
}

TEST(Choice, WorkersTakeTheDevicesInTurn) {
  for (const std::string wanted : {"auto", "cuda"}) {
    EXPECT_EQ(choose_device(config_for(wanted), WorkerId{'w', 0}, 4)->device.str(), "cuda:0");
    EXPECT_EQ(choose_device(config_for(wanted), WorkerId{'w', 6}, 4)->device.str(), "cuda:2");
    EXPECT_EQ(choose_device(config_for(wanted), WorkerId{'w', 6}, 1)->device.str(), "cuda:0");
  }
  EXPECT_TRUE(choose_device(config_for("cpu"), WorkerId{'w', 0}, 4)->is_plain());
  EXPECT_TRUE(choose_device(config_for("auto"), WorkerId{'w', 0}, 0)->is_plain());
  EXPECT_FALSE(choose_device(config_for("auto", "bf16"), WorkerId{'w', 0}, 0)->is_plain());
}
TEST(Choice, SaysWhyADeviceCannotBeUsed) {
  const auto none = choose_device(config_for("cuda"), WorkerId{'w', 0}, 0);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("sees no CUDA device"));
  TrainerConfig sparse = config_for("cuda");
  sparse.embedding_gradients = "sparse";
  const auto rows = choose_device(sparse, WorkerId{'w', 0}, 1);
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().message, HasSubstr("embedding_gradients"));
  sparse.device = "auto";
  EXPECT_TRUE(choose_device(sparse, WorkerId{'w', 0}, 1)->is_plain());
  EXPECT_FALSE(choose_device(config_for("auto", "fp8"), WorkerId{'w', 0}, 1));
}

// ----------------------------------------------------------------------- layers

class TensorOps : public ::testing::Test {
 protected:
  // A table whose gradient lies where its rows' gradients are added.
  static torch::Tensor table() {
    torch::manual_seed(1);
    torch::Tensor made = leaf(torch::randn({20, 5}));
    made.mutable_grad() = torch::zeros({20, 5});
    return made;
  }
  static torch::Tensor ids() { return torch::randint(0, 20, {6, 3}, torch::kInt64); }
};

TEST_F(TensorOps, RowsOfATableAreThoseOfTheLoops) {
  const torch::Tensor a = table(), b = table();
  const torch::Tensor which = ids();
  const torch::Tensor weight = torch::randn({6, 3, 5});
  const torch::Tensor x = embedding_rows(a, which);
  const torch::Tensor y = tensor_ops::embedding_rows(b, which);
  EXPECT_TRUE(torch::equal(x, y));
  (x * weight).sum().backward();
  (y * weight).sum().backward();
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad()));
  EXPECT_GT(a.grad().abs().sum().item<float>(), 0);
}

TEST_F(TensorOps, FactorizedFieldsAreThoseOfTheLoops) {
  const torch::Tensor a = table(), b = table();
  const torch::Tensor which = ids();
  const torch::Tensor weight = torch::randn({6, 12});
  const auto x = factorized_fields(a, which, torch::empty({6, 0}));
  const auto y = tensor_ops::factorized_fields(b, which);
  EXPECT_TRUE(torch::allclose(x.linear, y.linear, 1e-4, 1e-5));
  EXPECT_TRUE(torch::equal(x.vectors, y.vectors));
  (x.linear.square().sum() + (x.vectors * weight).sum()).backward();
  (y.linear.square().sum() + (y.vectors * weight).sum()).backward();
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad(), 1e-4, 1e-4));
}

TEST_F(TensorOps, InteractionsAreThoseOfTheLoops) {
  torch::manual_seed(2);
  const torch::Tensor maps = torch::randn({4, 5, 3}), vectors = torch::randn({4, 5, 6});
  const torch::Tensor weight = torch::randn({7, 18});
  const auto leaves = [&] {
    return std::vector<torch::Tensor>{leaf(maps.clone()), leaf(vectors.clone()),
                                      leaf(weight.clone())};
  };
  const auto a = leaves(), b = leaves();
  const torch::Tensor x = compressed_interactions(a[0], a[1], a[2]);
  const torch::Tensor y = tensor_ops::compressed_interactions(b[0], b[1], b[2]);
  EXPECT_TRUE(torch::allclose(x, y, 1e-4, 1e-4));
  x.square().sum().backward();
  y.square().sum().backward();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::allclose(a[i].grad(), b[i].grad(), 1e-3, 1e-2)) << i;
  }
}

TEST_F(TensorOps, PairwiseProductsAreThoseOfTheLoops) {
  torch::manual_seed(3);
  const torch::Tensor vectors = torch::randn({4, 5, 6});
  const torch::Tensor a = leaf(vectors.clone()), b = leaf(vectors.clone());
  const torch::Tensor x = pairwise_products(a), y = tensor_ops::pairwise_products(b);
  EXPECT_TRUE(torch::allclose(x, y, 1e-4, 1e-5));
  x.square().sum().backward();
  y.square().sum().backward();
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad(), 1e-3, 1e-3));
}

}  // namespace
}  // namespace antdt::trainer
