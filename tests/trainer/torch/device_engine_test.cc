// The engine for devices: it computes what the engine for processors computes, also where memory
// runs out, and in lower precisions. It runs on a processor; with ANTDT_TEST_DEVICE=cuda on a CUDA
// device.
#include "trainer/torch/device/device_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <map>
#include <mutex>

#include "tests/trainer/device_member.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/device_testing.h"
#include "trainer/loop/state/state_hash.h"
#include "trainer/torch/device/bucket_reduction.h"
#include "trainer/torch/device/queue.h"
#include "trainer/torch/evaluation.h"

namespace antdt::trainer {
namespace {

using testing::HasSubstr;

class OnADevice : public ::testing::TestWithParam<std::string> {
 protected:
  data::DataShape shape_ = shape_for(GetParam());
  [[nodiscard]] data::Examples make(std::size_t count, unsigned seed) const {
    return records_for(GetParam(), count, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Models, OnADevice,
                         ::testing::Values("lr", "deepfm", "xdeepfm", "dlrm", "mlp", "resnet"),
                         [](const auto& p) { return p.param; });

TEST_P(OnADevice, AModelTrainsAsOnAProcessor) {
  const Bounds bounds = bounds_of(GetParam());
  for (const std::string optimizer : {"sgd", "adagrad", "adam"}) {
    TrainerConfig config = config_of(GetParam(), optimizer);
    config.weight_decay = 0.01;
    config.momentum = optimizer == "sgd" ? 0.5 : 0;
    const auto plain = engine_of(config, shape_);
    const auto device = device_engine(config, shape_);
    const auto begun = state_of(*plain);
    ASSERT_EQ(begun, state_of(*device)) << "they begin alike";
    for (unsigned i = 0; i < 4; ++i) {
      const std::vector<data::Examples> batches{make(16, i), make(8, 100 + i)};
      const double loss = alone(*plain, batches, 24);
      const double bound = i == 0 ? bounds.first_loss : bounds.later_losses;
      EXPECT_NEAR(alone(*device, batches, 24), loss, bound * loss) << optimizer << ", step " << i;
    }
    const double trained = distance(begun, state_of(*plain));
    EXPECT_LT(distance(state_of(*plain), state_of(*device)), bounds.distance * trained)
        << optimizer;
  }
}

TEST_P(OnADevice, BothKindsOfEngineAreMembersOfOneGroupAndReadTheSameCheckpoints) {
  const TrainerConfig config = config_of(GetParam(), "adam");
  const data::Examples all = make(48, 1);
  const auto reference = engine_of(config, shape_);
  for (int i = 0; i < 3; ++i) alone(*reference, {all}, 48);
  std::mutex mutex;
  LocalGroup group(3);
  group.run([&](Collective& collective) {
    std::unique_ptr<Engine> engine;
    {
      const std::lock_guard lock(mutex);  // LibTorch's seed is one for the process
      engine = collective.rank() == 1 ? engine_of(config, shape_) : device_engine(config, shape_);
    }
    const std::size_t from = 16 * collective.rank();
    const std::vector<data::Examples> batches{rows(all, shape_, from, from + 10),
                                              rows(all, shape_, from + 10, from + 16)};
    for (int i = 0; i < 3; ++i) step(*engine, collective, batches, 48);
    const std::lock_guard lock(mutex);
    const float near = test_device().is_cpu() ? 5e-4F : 5e-2F;
    EXPECT_LT(max_difference(state_of(*reference), state_of(*engine)), near);
    const TempDir directory;
    ASSERT_TRUE(save_state(*engine, directory.path(), Step{3}));
    const auto other =
        collective.rank() == 1 ? device_engine(config, shape_) : engine_of(config, shape_);
    const auto loaded = load_state(*other, directory.path());
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(*loaded, Step{3});
    EXPECT_EQ(state_hash(*other, Step{3}), state_hash(*engine, Step{3}));
  });
}

TEST_P(OnADevice, EvaluationIsThatOfAProcessor) {
  const TrainerConfig config = config_of(GetParam());
  const data::Examples records = make(40, 3);
  const auto plain = engine_of(config, shape_)->evaluate(records);
  const auto device = device_engine(config, shape_)->evaluate(records);
  ASSERT_TRUE(plain && device);
  EXPECT_EQ(device->records, 40U);
  EXPECT_EQ(device->correct, plain->correct);
  EXPECT_NEAR(device->loss_sum, plain->loss_sum, 1e-3);
  if (test_device().is_cpu()) {
    EXPECT_EQ(device->bins, plain->bins);
  }
}

TEST_P(OnADevice, Bfloat16TrainsWithStateInFloat32) {
  TrainerConfig config = config_of(GetParam(), "adam");
  const auto full = device_engine(config, shape_);
  config.precision = "bf16";
  const auto half = device_engine(config, shape_);
  const data::Examples records = make(64, 2);
  double first = 0, last = 0, exact = 0;
  for (int i = 0; i < 30; ++i) {
    exact = alone(*full, {records}, 64);
    last = alone(*half, {records}, 64);
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.98 * first) << "it learns";
  EXPECT_LT(std::abs(last - exact), 0.2 * (first - exact)) << "as far as float32 does, nearly";
  EXPECT_GT(max_difference(state_of(*full), state_of(*half)), 0) << "it is another precision";
}

TEST(Float32, IsFloat32InConvolutionsAndProductsWhateverTheEnvironmentSays) {
  at::globalContext().setAllowTF32CuBLAS(true);  // as TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 does
  at::globalContext().setAllowTF32CuDNN(true);
  const auto engine = device_engine(config_of("mlp"), image_shape());
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
}

// A perceptron whose gradient is three buckets, trained alone for three steps, and by two members
// on halves of the same records. `engine` is called under a lock, because LibTorch's seed is one
// for the process; `train` makes a member's steps with it.
void expect_two_train_what_one_trains(
    const std::function<std::unique_ptr<Engine>(const TrainerConfig&, std::uint32_t rank)>& engine,
    const std::function<void(Engine&, Collective&, const data::Examples& own)>& train) {
  TrainerConfig config = config_of("mlp", "sgd");
  config.hidden = {512, 512};
  const data::Examples all = images(24, 1);
  const auto reference = engine_of(config, image_shape());
  const auto begun = state_of(*reference);
  for (int i = 0; i < 3; ++i) alone(*reference, {all}, 24);
  std::mutex mutex;
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    std::unique_ptr<Engine> own;
    {
      const std::lock_guard lock(mutex);
      own = engine(config, collective.rank());
    }
    const std::size_t from = 12 * collective.rank();
    train(*own, collective, rows(all, image_shape(), from, from + 12));
    const std::lock_guard lock(mutex);
    EXPECT_LT(distance(state_of(*reference), state_of(*own)),
              rounding() * distance(begun, state_of(*reference)));
  });
}

TEST(DeviceGroup, MembersOfBothKindsSumTheSameBuckets) {
  expect_two_train_what_one_trains(
      [](const TrainerConfig& config, std::uint32_t rank) {
        return rank == 0 ? engine_of(config, image_shape()) : device_engine(config, image_shape());
      },
      [](Engine& engine, Collective& collective, const data::Examples& own) {
        for (int i = 0; i < 3; ++i) step(engine, collective, {own}, 24);
      });
}

TEST(DeviceGroup, ACollectiveThatWorksInDeviceMemorySumsEachBucketThere) {
  if (!test_device().is_cpu()) {
    GTEST_SKIP() << "the test's collective works in the host's memory";
  }
  expect_two_train_what_one_trains(
      [](const TrainerConfig& config, std::uint32_t) {
        return device_engine(config, image_shape());
      },
      [](Engine& engine, Collective& host, const data::Examples& own) {
        DeviceMember collective(host);
        for (int i = 0; i < 3; ++i) {
          step(engine, collective, {own}, 24);
          EXPECT_EQ(collective.unfinished, 0U) << "a step is over before its sums are there";
        }
        EXPECT_EQ(collective.sums, 3U * 3U);
      });
}

// ----------------------------------------------------------------------- failures

TEST(DeviceFailure, WhileAStepIsSummedIsAnErrorAlsoWhenTheStepIsGivenUp) {
  LocalGroup group(2);
  std::mutex mutex;
  std::barrier both_failed(2);
  group.run([&](Collective& host) {
    std::unique_ptr<Engine> engine;
    {
      const std::lock_guard lock(mutex);
      engine = device_engine(config_of("lr"), shape_for("lr"));
    }
    DeviceMember collective(host);
    collective.fails = true;
    engine->begin_step(collective);
    ASSERT_TRUE(engine->compute(records_for("lr", 4, 1), true));
    for (const bool given_up : {false, true}) {
      if (given_up) {
        both_failed.arrive_and_wait();
        collective.abort();
      }
      const Status summed = engine->finish_reduction();
      ASSERT_FALSE(summed);
      EXPECT_EQ(summed.error().kind, ErrorKind::kInternal);
      EXPECT_THAT(summed.error().message, HasSubstr("cannot be summed: CUDA error: an illegal"));
    }
  });
}

// A buffer that forward replaces by one of another size: what touches it throws.
class Swelling final : public kit::Model {
 public:
  Swelling() {
    weight_ = register_parameter("weight", torch::ones({3}));
    seen_ = register_buffer("seen", torch::zeros({2}));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    seen_.set_data(torch::zeros({5}, seen_.options()));
    return batch.dense.matmul(weight_);
  }

 private:
  torch::Tensor weight_, seen_;
};

data::DataShape numbers() {
  data::DataShape shape;
  shape.dense_width = 3;
  shape.classes = 2;
  return shape;
}
data::Examples number_records(std::size_t count, unsigned seed) {
  data::Examples all = clicks(count, seed);
  all.ids.clear();
  return all;
}

TEST(DeviceFailure, WhileAStepIsDiscardedIsToldByTheNextOne) {
  const auto engine = device_engine(config_of("lr"), numbers(), std::make_shared<Swelling>());
  LocalGroup group(1);
  const auto alone = group.member(0);
  engine->begin_step(*alone);
  ASSERT_TRUE(engine->compute(number_records(4, 1), true));
  EXPECT_FALSE(engine->finish_reduction());
  engine->discard();
  engine->begin_step(*alone);
  const auto next = engine->compute(number_records(4, 1), true);
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().message, HasSubstr("a step cannot be discarded: "));
  EXPECT_FALSE(engine->finish_reduction());
}

TEST(DeviceFailure, InTheUpdateIsAnError) {
  Training training = training_of(make_model(config_of("lr"), shape_for("lr")).value());
  training.schedule = [](std::uint64_t) -> double { throw std::runtime_error("no rate"); };
  DeviceChoice choice;
  choice.device = test_device();
  const auto engine =
      make_device_engine(std::move(training), {"sgd", 0.1, 0, 0}, shape_for("lr"), choice);
  ASSERT_TRUE(engine) << engine.error().message;
  LocalGroup group(1);
  const auto alone = group.member(0);
  (*engine)->begin_step(*alone);
  ASSERT_TRUE((*engine)->compute(records_for("lr", 4, 1), true));
  ASSERT_TRUE((*engine)->finish_reduction());
  const Status applied = (*engine)->apply(4);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().message, "the model cannot be updated: no rate");
}

// ----------------------------------------------------------------------- memory

TEST(Staging, TakesHostMemoryOnlyWhereBucketsAreCopied) {
  const auto bytes_after = [](Collective& collective) {
    const torch::Tensor gradients =
        torch::zeros({100}, torch::TensorOptions(torch::kFloat32).device(test_device()));
    DeviceReduction reduction(gradients);
    reduction.begin(collective, 1);
    reduction.completed(0, {0, 100});
    EXPECT_TRUE(reduction.reduce(collective, 0, {0, 100}));
    EXPECT_TRUE(reduction.settle());
    return reduction.staging_bytes();
  };
  LocalGroup one(1), two(2);
  EXPECT_EQ(bytes_after(*one.member(0)), 0U) << "nothing is exchanged";
  two.run([&](Collective& host) {
    EXPECT_EQ(bytes_after(host), 400U);
    if (!test_device().is_cpu()) return;
    DeviceMember collective(host);
    EXPECT_EQ(bytes_after(collective), 0U) << "they are summed in device memory";
  });
}

TEST(Staging, IsOfEachBucketForItself) {
  const torch::Tensor gradients =
      torch::ones({100}, torch::TensorOptions(torch::kFloat32).device(test_device()));
  DeviceReduction reduction(gradients);
  LocalGroup(2).run([&](Collective& host) {
    if (host.rank() == 1) {
      std::vector<float> theirs(60, 2.0F);
      EXPECT_TRUE(host.allreduce_sum(std::span(theirs)));
      return;
    }
    reduction.begin(host, 2);
    EXPECT_TRUE(reduction.reduce(host, 1, {40, 60}));
    EXPECT_TRUE(reduction.settle());
  });
  EXPECT_EQ(reduction.staging_bytes(), 240U) << "the other bucket needed none";
  EXPECT_EQ(gradients.sum().item<float>(), 40 + 3 * 60);
}

// Where memory runs out.
enum class Fails { kForward, kBackward, kAllocator, kHandle };

// Backward of this has no memory, once it is told so: for a tensor, or for the handle of a library
// that the thread of backward uses for the first time.
class ThrowsInBackward : public torch::autograd::Function<ThrowsInBackward> {
 public:
  static torch::autograd::Variable forward(torch::autograd::AutogradContext* context,
                                           const torch::Tensor& x, bool throws, bool of_handle) {
    context->saved_data["throws"] = throws;
    context->saved_data["of handle"] = of_handle;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const bool throws = context->saved_data["throws"].toBool();
    TORCH_CHECK(!throws || !context->saved_data["of handle"].toBool(),
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`");
    TORCH_CHECK_WITH(OutOfMemoryError, !throws, "CUDA out of memory. Tried to allocate 1.50 MiB.");
    return {gradients[0], torch::Tensor(), torch::Tensor()};
  }
};

// A layer, BatchNorm and a layer; more records than `most` have no memory.
class Hungry final : public kit::Model {
 public:
  Hungry(std::int64_t most, Fails fails, bool normalises) : most_(most), fails_(fails) {
    torch::manual_seed(3);
    first_ = register_module("first", torch::nn::Linear(3, 8));
    if (normalises) norm_ = register_module("norm", torch::nn::BatchNorm1d(8));
    second_ = register_module("second", torch::nn::Linear(8, 1));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    const bool too_many = batch.records > most_;
    attempts.push_back(batch.records);
    torch::Tensor x = first_(batch.dense);
    if (norm_) x = norm_(x);
    if (too_many && fails_ == Fails::kForward) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 2.00 GiB.");
    }
    // More than the address space has, so that LibTorch's own allocator gives up.
    if (too_many && fails_ == Fails::kAllocator)
      x = x + torch::empty({std::int64_t{1} << 46}).sum();
    // The second layer's gradient is added up before the memory runs out.
    if (fails_ == Fails::kBackward || fails_ == Fails::kHandle) {
      x = ThrowsInBackward::apply(x, too_many, fails_ == Fails::kHandle);
    }
    return second_(x.relu()).squeeze(1);
  }
  std::vector<std::int64_t> attempts;

 private:
  std::int64_t most_;
  Fails fails_;
  torch::nn::Linear first_ = nullptr, second_ = nullptr;
  torch::nn::BatchNorm1d norm_ = nullptr;
};

class OutOfMemory : public ::testing::TestWithParam<Fails> {};
INSTANTIATE_TEST_SUITE_P(Where, OutOfMemory,
                         ::testing::Values(Fails::kForward, Fails::kBackward, Fails::kAllocator,
                                           Fails::kHandle));

TEST_P(OutOfMemory, TheMicroBatchIsComputedInSmallerPiecesWithTheSameSum) {
  const TrainerConfig config = config_of("lr", "adam");
  const auto model = std::make_shared<Hungry>(5, GetParam(), false);
  const auto hungry = device_engine(config, numbers(), model);
  const auto roomy =
      device_engine(config, numbers(), std::make_shared<Hungry>(1000, GetParam(), false));
  for (unsigned i = 0; i < 3; ++i) {
    const std::vector<data::Examples> batches{number_records(16, i), number_records(16, 10 + i)};
    const double loss = alone(*roomy, batches, 32);
    EXPECT_NEAR(alone(*hungry, batches, 32), loss, 1e-5 * loss);
  }
  EXPECT_LT(max_difference(state_of(*hungry), state_of(*roomy)), kRounded);
  EXPECT_EQ(hungry->max_micro_batch(), 4U);
  EXPECT_EQ(roomy->max_micro_batch(), 0U);
  EXPECT_EQ(std::ranges::count(model->attempts, 16), 1) << "what does not fit is tried once";
  EXPECT_EQ(std::ranges::count(model->attempts, 8), 1);
}

TEST_P(OutOfMemory, MembersWithAndWithoutEnoughMemoryStayAlike) {
  const TrainerConfig config = config_of("lr", "adam");
  const auto whole =
      device_engine(config, numbers(), std::make_shared<Hungry>(1000, GetParam(), false));
  for (unsigned i = 0; i < 3; ++i) alone(*whole, {number_records(32, i)}, 32);
  std::mutex mutex;
  std::vector<std::uint64_t> hashes;
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    std::unique_ptr<Engine> engine;
    {
      const std::lock_guard lock(mutex);
      const std::int64_t most = collective.rank() == 0 ? 5 : 1000;
      engine = device_engine(config, numbers(), std::make_shared<Hungry>(most, GetParam(), false));
    }
    const std::size_t from = 16 * collective.rank();
    for (unsigned i = 0; i < 3; ++i) {
      step(*engine, collective, {rows(number_records(32, i), numbers(), from, from + 16)}, 32);
    }
    const std::lock_guard lock(mutex);
    hashes.push_back(state_hash(*engine, Step{3}));
    EXPECT_LT(max_difference(state_of(*engine), state_of(*whole)), kRounded);
  });
  EXPECT_EQ(hashes[0], hashes[1]);
}

// The running statistics are those of the pieces that were computed, as if these had been ordered.
TEST_P(OutOfMemory, BuffersForgetTheAttempt) {
  const TrainerConfig config = config_of("lr", "sgd");
  const auto hungry =
      device_engine(config, numbers(), std::make_shared<Hungry>(4, GetParam(), true));
  const auto roomy =
      device_engine(config, numbers(), std::make_shared<Hungry>(99, GetParam(), true));
  const data::Examples all = number_records(8, 1);
  alone(*hungry, {all}, 8);
  alone(*roomy, {rows(all, numbers(), 0, 4), rows(all, numbers(), 4, 8)}, 8);
  expect_same(*hungry, *roomy);
}

TEST_P(OutOfMemory, ARecordThatDoesNotFitAloneEndsTheWorkWithTheEvidence) {
  const auto engine = device_engine(config_of("lr", "sgd"), numbers(),
                                    std::make_shared<Hungry>(0, GetParam(), false));
  LocalGroup group(1);
  const auto collective = group.member(0);
  engine->begin_step(*collective);
  const auto sums = engine->compute(number_records(4, 1), true);
  ASSERT_FALSE(sums);
  EXPECT_THAT(sums.error().message, HasSubstr("out of memory on " + test_device().str() +
                                              " in a micro-batch of 1 records"));
  const std::map<Fails, std::string> asked{
      {Fails::kForward, "2147483648 bytes were asked for"},
      {Fails::kBackward, "1572864 bytes were asked for"},
      {Fails::kAllocator, "281474976710656 bytes were asked for"},
      {Fails::kHandle, "does not fit"}};
  EXPECT_THAT(sums.error().message, HasSubstr(asked.at(GetParam())));
  EXPECT_TRUE(engine->finish_reduction());
}

TEST(OutOfMemoryElse, AnEvaluationIsComputedInPiecesToo) {
  for (const Fails fails : {Fails::kForward, Fails::kAllocator}) {
    const auto hungry =
        device_engine(config_of("lr"), numbers(), std::make_shared<Hungry>(5, fails, false));
    const auto roomy =
        device_engine(config_of("lr"), numbers(), std::make_shared<Hungry>(99, fails, false));
    const auto pieces = hungry->evaluate(number_records(16, 1));
    const auto whole = roomy->evaluate(number_records(16, 1));
    ASSERT_TRUE(pieces && whole);
    EXPECT_EQ(pieces->records, 16U);
    EXPECT_NEAR(pieces->loss_sum, whole->loss_sum, 1e-5);
    EXPECT_EQ(hungry->max_micro_batch(), 4U);
  }
}

TEST(OutOfMemoryElse, AnErrorThatIsNoLackOfMemoryIsToldAsItIs) {
  class Broken final : public kit::Model {
   public:
    Broken() { layer_ = register_module("layer", torch::nn::Linear(3, 1)); }
    torch::Tensor forward(const kit::Batch&) override {
      throw std::runtime_error("a wire is loose");
    }

   private:
    torch::nn::Linear layer_ = nullptr;
  };
  const auto engine = device_engine(config_of("lr"), numbers(), std::make_shared<Broken>());
  LocalGroup group(1);
  const auto collective = group.member(0);
  engine->begin_step(*collective);
  const auto sums = engine->compute(number_records(4, 1), true);
  ASSERT_FALSE(sums);
  EXPECT_THAT(sums.error().message, HasSubstr("a wire is loose"));
  EXPECT_EQ(engine->max_micro_batch(), 0U);
}

// ---------------------------------------------------------------------- float16

// The first factor of the loss is larger than what float16 can hold, so every job begins with an
// overflow.
TEST(Float16, AMicroBatchThatOverflowsIsComputedAgainAndNoneIsLeftOut) {
  if (!kHasDevices) GTEST_SKIP() << "LibTorch 1 has no float16 on a processor";
  TrainerConfig config = config_of("lr", "sgd");
  const auto exact =
      device_engine(config, numbers(), std::make_shared<Hungry>(1000, Fails::kForward, false));
  config.precision = "fp16";
  const auto model = std::make_shared<Hungry>(1000, Fails::kForward, false);
  const auto half = device_engine(config, numbers(), model);
  double first = 0, last = 0, reference = 0;
  for (unsigned i = 0; i < 40; ++i) {
    const std::vector<data::Examples> batches{number_records(32, 1), number_records(16, 2)};
    reference = alone(*exact, batches, 48);
    last = alone(*half, batches, 48);
    if (i == 0) first = last;
  }
  EXPECT_GT(model->attempts.size(), 80U) << "none overflowed";
  EXPECT_LT(last, 0.98 * first);
  EXPECT_NEAR(last, reference, 0.01 * reference);
  EXPECT_LT(distance(state_of(*half), state_of(*exact)), 0.02);
}

}  // namespace
}  // namespace antdt::trainer
