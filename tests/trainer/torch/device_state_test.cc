// The state of the engine for devices: taken over, compared, and passed from device to device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/trainer/device_member.h"
#include "tests/trainer/torch/device_testing.h"
#include "trainer/loop/state/healing.h"
#include "trainer/torch/device/state/digest.h"
#include "trainer/torch/device/state/state_on_device.h"

namespace antdt::trainer {
namespace {

TEST(DeviceState, AMemberThatReceivesTheStateGoesOnLikeItsSource) {
  const TrainerConfig config = config_of("deepfm", "adam");
  const data::DataShape shape = click_shape();
  const auto source = device_engine(config, shape);
  for (unsigned i = 0; i < 3; ++i) alone(*source, {clicks(16, i)}, 16);
  const auto newcomer = device_engine(config, shape);
  EXPECT_NE(state_hash(*newcomer, Step{3}), state_hash(*source, Step{3}));
  take_over(*newcomer, *source);
  EXPECT_EQ(state_hash(*newcomer, Step{3}), state_hash(*source, Step{3}));
  alone(*source, {clicks(16, 9)}, 16);
  alone(*newcomer, {clicks(16, 9)}, 16);
  expect_same(*newcomer, *source);
}

TEST(DeviceState, AStepThatIsDiscardedChangesNothing) {
  const auto engine = device_engine(config_of("deepfm", "adam"), click_shape());
  alone(*engine, {clicks(16, 1)}, 16);
  const auto before = state_hash(*engine, Step{1});
  LocalGroup group(1);
  const auto collective = group.member(0);
  engine->begin_step(*collective);
  ASSERT_TRUE(engine->compute(clicks(16, 2), true));
  ASSERT_TRUE(engine->finish_reduction());
  engine->discard();
  EXPECT_EQ(state_hash(*engine, Step{1}), before);
  const auto other = device_engine(config_of("deepfm", "adam"), click_shape());
  alone(*other, {clicks(16, 1)}, 16);
  alone(*other, {clicks(16, 3)}, 16);
  alone(*engine, {clicks(16, 3)}, 16);
  expect_same(*engine, *other);
}

// Two devices: one has trained, the other is new.
TEST(DeviceState, PassesFromDeviceToDeviceAndIsComparedThere) {
  if (!test_device().is_cpu()) {
    GTEST_SKIP() << "the test's collective works in the host's memory";
  }
  const TrainerConfig config = config_of("resnet", "adam");  // has buffers
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(device_engine(config, image_shape()));
  for (unsigned i = 0; i < 3; ++i) alone(*engines[0], {images(16, i)}, 16);
  const worker::HashState of{Step{3}, false, true};
  EXPECT_NE(hash_of_state(*engines[0], of).value(), hash_of_state(*engines[1], of).value());
  LocalGroup(2).run([&](Collective& host) {
    DeviceMember collective(host);
    Engine& engine = *engines[host.rank()];
    const auto slots = compare_states(collective, engine, {host.rank() == 0, Step{3}, "about it"});
    ASSERT_TRUE(slots) << slots.error().message;
    const auto plan = worker::heal_plan(*slots, host.rank());
    ASSERT_TRUE(plan && plan->on_device);
    const auto meta = pass_state(collective, engine, {*plan, "about it"});
    ASSERT_TRUE(meta) << meta.error().message;
    EXPECT_EQ(*meta, "about it");
    EXPECT_EQ(collective.received > 0, host.rank() == 1);
  });
  EXPECT_EQ(hash_of_state(*engines[0], of).value(), hash_of_state(*engines[1], of).value());
  EXPECT_EQ(state_hash(*engines[0], Step{3}), state_hash(*engines[1], Step{3}));
  for (const auto& engine : engines) alone(*engine, {images(16, 9)}, 16);
  expect_same(*engines[0], *engines[1]);
}

TEST(DeviceState, IsThatOfBeforeWhenAnotherDidNotArriveWhole) {
  const TrainerConfig config = config_of("deepfm", "adam");
  const auto engine = device_engine(config, click_shape());
  alone(*engine, {clicks(16, 1)}, 16);
  const auto other = device_engine(config, click_shape());
  alone(*other, {clicks(16, 1)}, 16);
  const std::uint64_t before = state_hash(*engine, Step{1});
  DeviceState& state = *engine->device_state();
  state.keep();
  const std::vector<DeviceBytes> arrays = state.arrays();
  ASSERT_EQ(arrays.size(), 3U) << "parameters and two moments";
  EXPECT_EQ(arrays[0].size, engine->state_parts()[0].size());
  const auto digests = state.digests().value();
  auto* const values = static_cast<float*>(arrays[0].data);
  torch::from_blob(values, {8}, torch::TensorOptions(test_device()).dtype(torch::kFloat32)).add_(1);
  EXPECT_NE(state.digests().value(), digests);
  state.give_back();
  EXPECT_EQ(state.digests().value(), digests);
  EXPECT_EQ(state_hash(*engine, Step{1}), before);
  alone(*engine, {clicks(16, 2)}, 16);
  alone(*other, {clicks(16, 2)}, 16);
  expect_same(*engine, *other);
}

// The optimizer's array has another size for a moment, so that it cannot be copied.
TEST(DeviceState, ACopyThatFailedSaysWhyAndIsMadeAnew) {
  const auto on_device = torch::TensorOptions(torch::kFloat32).device(test_device());
  const torch::Tensor values = torch::arange(8, on_device),
                      gradients = torch::zeros({8}, on_device);
  const auto optimizer = make_device_optimizer({"adagrad", 0.1, 0, 0}, 8, test_device()).value();
  Buffers none;
  StateOnDevice state(values, gradients, *optimizer, none);
  ASSERT_EQ(optimizer->state().size(), 1U);
  const torch::Tensor remembered =
      std::exchange(optimizer->state()[0], torch::zeros({5}, on_device));
  try {
    state.copy_to_host();
    ADD_FAILURE() << "it was copied";
  } catch (const std::exception& thrown) {
    EXPECT_THAT(thrown.what(), testing::StartsWith("the state on " + test_device().str() +
                                                   " cannot be copied to the host's memory: "));
    EXPECT_THAT(thrown.what(), testing::Not(testing::HasSubstr("frame #0")));
  }
  optimizer->state()[0] = remembered.fill_(3);
  state.copy_to_host();
  EXPECT_EQ(state.on_host()[1].values[7], 3);
}

// ---------------------------------------------------------------------- digests

torch::Tensor numbers_from(std::int64_t first, std::int64_t count) {
  return torch::arange(first, first + count, torch::kFloat32).to(test_device());
}

TEST(Digests, AreThoseOfTheBytesAndTheirOrder) {
  const Digest digest(test_device());
  // Less than a block, whole blocks, more than a piece of them.
  for (const std::int64_t count : {5, 16'384, 40'000, 1'100'000}) {
    const torch::Tensor array = numbers_from(0, count);
    const auto numbers = digest.of({array});
    EXPECT_EQ(numbers.size(), static_cast<std::size_t>((count + 16'383) / 16'384)) << count;
    EXPECT_EQ(digest.of({array.clone()}), numbers);
    EXPECT_NE(digest.of({array.flip(0)}), numbers);
  }
  const torch::Tensor a = numbers_from(0, 100), b = numbers_from(100, 100);
  EXPECT_NE(digest.of({a, b}), digest.of({b, a}));
}

// Each bit of a word, and the last word of an array.
TEST(Digests, NoBitOfAWordIsMissed) {
  const Digest digest(torch::kCPU);
  const torch::Tensor array = torch::arange(0, 20'000, torch::kFloat32);
  auto* const words = static_cast<std::uint32_t*>(array.data_ptr());
  std::set<std::vector<std::uint64_t>> seen{digest.of({array})};
  for (const std::size_t word : {std::size_t{0}, std::size_t{16'383}, std::size_t{19'999}}) {
    for (unsigned bit = 0; bit < 32; ++bit) {
      words[word] ^= 1U << bit;
      EXPECT_TRUE(seen.insert(digest.of({array})).second) << word << ", bit " << bit;
      words[word] ^= 1U << bit;
    }
  }
}

TEST(Digests, ADeviceHasThoseOfTheHost) {
  const torch::Tensor array = torch::randn({300'000});
  EXPECT_EQ(Digest(test_device()).of({array.to(test_device())}), Digest(torch::kCPU).of({array}));
}

}  // namespace
}  // namespace antdt::trainer
