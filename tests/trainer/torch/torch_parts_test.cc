// The parts of the engine, each compared with LibTorch's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>

#include "tests/trainer/torch/torch_testing.h"
#include "trainer/ps/rows/update_rule.h"
#include "trainer/torch/embedding.h"
#include "trainer/torch/gradient_reducer.h"
#include "trainer/torch/optimizer.h"
#include "trainer/torch/parameters.h"

namespace antdt::trainer {
namespace {

TEST(FlatParameters, LieInTheOrderInWhichBackwardCompletesThem) {
  torch::Tensor first = leaf(torch::full({3, 5}, 1.0));
  torch::Tensor last = leaf(torch::full({7}, 2.0));
  const FlatParameters flat({{"first", first}, {"last", last}});
  ASSERT_EQ(flat.entries().size(), 2U);
  EXPECT_EQ(flat.entries()[0].name, "last");
  EXPECT_EQ(flat.values()[0], 2.0F);
  EXPECT_EQ(flat.values()[flat.entries()[1].first], 1.0F);
  (first.sum() * 3).backward();
  EXPECT_EQ(flat.gradients()[flat.entries()[1].first + 14], 3.0F)
      << "gradients are views of the flat array";
  flat.values()[0] = 9;
  EXPECT_EQ(last[0].item<float>(), 9.0F) << "so are the parameters";
}

// The look-ups give what dense tensor operations give, forward and backward.
class Embedding : public ::testing::Test {
 protected:
  Embedding() {
    torch::manual_seed(1);
    table_ = leaf(torch::randn({20, 5}));
    reference_ = leaf(table_.detach().clone());
    ids_ = torch::randint(0, 20, {6, 3}, torch::kInt64);
    flat_ = FlatParameters({{"table", table_}});
  }
  void expect_same(const torch::Tensor& got, const torch::Tensor& want) {
    EXPECT_TRUE(torch::allclose(got, want, 1e-5, 1e-6));
    const torch::Tensor direction = torch::randn_like(want);
    (got * direction).sum().backward();
    (want * direction).sum().backward();
    EXPECT_TRUE(torch::allclose(table_.grad(), reference_.grad(), 1e-4, 1e-5));
  }
  torch::Tensor table_, reference_, ids_;
  FlatParameters flat_;
};

TEST_F(Embedding, RowsAreThoseOfTheTable) {
  expect_same(embedding_rows(table_, ids_), reference_.index({ids_}));
}

TEST_F(Embedding, FactorizedFieldsAreFirstAndSecondOrderTerms) {
  const torch::Tensor rows = reference_.index({ids_});
  const torch::Tensor v = rows.slice(2, 1);
  const torch::Tensor pairs =
      0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1) + rows.select(2, 0).sum(1);
  const torch::Tensor beside = torch::randn({6, 2});
  const FactorizedFields got = factorized_fields(table_, ids_, beside);
  expect_same(torch::cat({got.linear.unsqueeze(1), got.vectors}, 1),
              torch::cat({pairs.unsqueeze(1), v.flatten(1), beside}, 1));
}

TEST_F(Embedding, AResultThatIsNotUsedContributesNothing) {
  factorized_fields(table_, ids_, torch::empty({6, 0})).linear.sum().backward();
  const torch::Tensor rows = reference_.index({ids_});
  const torch::Tensor v = rows.slice(2, 1);
  (0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1) + rows.select(2, 0).sum(1))
      .sum()
      .backward();
  EXPECT_TRUE(torch::allclose(table_.grad(), reference_.grad(), 1e-4, 1e-5));
}

// Ten steps of ours and of LibTorch's from the same start.
template <class Theirs, class Options>
void expect_same_steps(const OptimizerOptions& options, Options their_options) {
  torch::manual_seed(2);
  torch::Tensor reference = leaf(torch::randn({1001}));
  torch::Tensor values = reference.detach().clone();
  torch::Tensor gradient = torch::zeros({1001});
  Theirs theirs({reference}, their_options);
  auto ours = make_optimizer(options, 1001);
  ASSERT_TRUE(ours);
  const std::span<float> v{values.data_ptr<float>(), 1001};
  const std::span<float> g{gradient.data_ptr<float>(), 1001};
  for (int i = 0; i < 10; ++i) {
    const torch::Tensor sum = torch::randn({1001});
    gradient.copy_(sum);
    reference.mutable_grad() = sum / 8;
    theirs.step();
    (*ours)->step(v, g, 1.0F / 8);
    EXPECT_EQ(gradient.abs().max().item<float>(), 0.0F) << "the gradient is cleared";
  }
  EXPECT_TRUE(torch::allclose(values, reference, 1e-5, 1e-6)) << options.kind;
  EXPECT_EQ((*ours)->steps(), 10U);
}

TEST(Optimizer, SgdStepsAsLibTorchDoes) {
  expect_same_steps<torch::optim::SGD>({"sgd", 0.1, 0, 0}, torch::optim::SGDOptions(0.1));
  expect_same_steps<torch::optim::SGD>(
      {"sgd", 0.1, 0.9, 0.01}, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
}

TEST(Optimizer, AdagradStepsAsLibTorchDoes) {
  expect_same_steps<torch::optim::Adagrad>({"adagrad", 0.1, 0, 0.01},
                                           torch::optim::AdagradOptions(0.1).weight_decay(0.01));
}

TEST(Optimizer, AdamStepsAsLibTorchDoes) {
  expect_same_steps<torch::optim::Adam>({"adam", 0.01, 0, 0.01},
                                        torch::optim::AdamOptions(0.01).weight_decay(0.01));
}

TEST(Optimizer, StepsByThePartOfItsLearningRateThatItIsTold) {
  for (const char* kind : {"sgd", "adagrad", "adam"}) {
    std::vector<float> whole(3), half(3);
    for (std::vector<float>* values : {&whole, &half}) {
      auto optimizer = make_optimizer({kind, 0.1, 0, 0}, 3);
      ASSERT_TRUE(optimizer);
      if (values == &half) (*optimizer)->set_rate(0.5);
      std::vector<float> gradient{1, 2, 3};
      (*optimizer)->step(*values, gradient, 1);
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(half[i] / whole[i], 0.5, 1e-5) << kind;
  }
}

// If every row is touched at every step, a parameter server's rows are the dense parameters.
TEST(Optimizer, StepsAreThoseOfAParameterServersRows) {
  constexpr std::size_t kRows = 50;
  constexpr std::size_t kWidth = 20;
  const std::vector<std::pair<OptimizerOptions, ps::UpdateRule>> same{
      {{"sgd", 0.1, 0, 0.01}, {ps::UpdateRule::Kind::kSgd, 0.1F, 0.01F}},
      {{"adagrad", 0.1, 0, 0.01}, {ps::UpdateRule::Kind::kAdagrad, 0.1F, 0.01F}},
      {{"adam", 0.01, 0, 0.01}, {ps::UpdateRule::Kind::kAdam, 0.01F, 0.01F}}};
  for (const auto& [options, rule] : same) {
    torch::manual_seed(3);
    torch::Tensor dense = torch::randn({kRows * kWidth});
    torch::Tensor rows = dense.clone();
    auto optimizer = make_optimizer(options, kRows * kWidth);
    ASSERT_TRUE(optimizer);
    std::vector<std::vector<float>> states(kRows, std::vector<float>(rule.state(kWidth)));
    for (int step = 0; step < 10; ++step) {
      torch::Tensor gradient = torch::randn({kRows * kWidth});
      const std::span<const float> g{gradient.data_ptr<float>(), kRows * kWidth};
      for (std::size_t r = 0; r < kRows; ++r) {
        const std::span<float> row{rows.data_ptr<float>() + r * kWidth, kWidth};
        rule.apply(row, states[r], g.subspan(r * kWidth, kWidth), 1.0F / 8);
      }
      (*optimizer)
          ->step({dense.data_ptr<float>(), kRows * kWidth},
                 {gradient.data_ptr<float>(), kRows * kWidth}, 1.0F / 8);
    }
    EXPECT_TRUE(torch::allclose(rows, dense, 1e-5, 1e-6)) << options.kind;
  }
}

// A group of two whose other member always contributes the same as this one;
// it remembers what was reduced and can fail.
class Doubling final : public Collective {
 public:
  explicit Doubling(std::size_t fail_at = SIZE_MAX) : fail_at_(fail_at) {}
  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::uint32_t size() const override { return 2; }
  [[nodiscard]] Status allreduce_sum(std::span<double>) override {
    return fail(ErrorKind::kInternal, "gradients are float");
  }
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override {
    if (sizes_.size() == fail_at_) return fail(ErrorKind::kIo, "a member is gone");
    sizes_.push_back(values.size());
    for (float& value : values) value *= 2;
    ++calls_;
    calls_.notify_all();
    return {};
  }
  [[nodiscard]] Status allgather(std::span<const std::byte>, std::span<std::byte>) override {
    return {};
  }
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t>,
                                       std::span<std::byte>) override {
    return {};
  }
  [[nodiscard]] Status send_right(std::span<const std::byte>) override { return {}; }
  [[nodiscard]] Status receive_left(std::span<std::byte>) override { return {}; }
  void abort() override {}
  void await_calls(int at_least) const {
    for (int seen = calls_; seen < at_least; seen = calls_) calls_.wait(seen);
  }
  std::vector<std::size_t> sizes_;
  std::atomic<int> calls_ = 0;

 private:
  std::size_t fail_at_;
};

// y = sum(c * (b * (a * x))): backward completes c, then b, then a.
class Reducer : public ::testing::Test {
 protected:
  Reducer()
      : a_(leaf(torch::full({32}, 2.0))),
        b_(leaf(torch::full({32}, 3.0))),
        c_(leaf(torch::full({32}, 5.0))),
        flat_({{"a", a_}, {"b", b_}, {"c", c_}}) {}
  [[nodiscard]] torch::Tensor loss() const { return (c_ * (b_ * (a_ * torch::ones({32})))).sum(); }
  void expect_gradients(float times) const {
    EXPECT_EQ(a_.grad()[0].item<float>(), 15 * times);
    EXPECT_EQ(b_.grad()[0].item<float>(), 10 * times);
    EXPECT_EQ(c_.grad()[0].item<float>(), 6 * times);
  }
  torch::Tensor a_, b_, c_;
  FlatParameters flat_;
};

TEST_F(Reducer, ReducesEachBucketOnceInTheSameOrder) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  ASSERT_EQ(reducer.buckets(), 3U);
  for (int i = 0; i < 20; ++i) {
    Doubling group;
    std::fill(flat_.gradients().begin(), flat_.gradients().end(), 0.0F);
    reducer.begin(group);
    reducer.arm();
    loss().backward();
    ASSERT_TRUE(reducer.finish());
    EXPECT_EQ(group.sizes_.size(), 3U);
    expect_gradients(2);
  }
}

TEST_F(Reducer, PutsSmallParametersTogether) {
  GradientReducer reducer(flat_, {.bucket_bytes = 64 * sizeof(float)});
  EXPECT_EQ(reducer.buckets(), 2U);
  Doubling group;
  reducer.begin(group);
  reducer.arm();
  loss().backward();
  ASSERT_TRUE(reducer.finish());
  EXPECT_THAT(group.sizes_, ::testing::ElementsAre(64, 32));
  expect_gradients(2);
}

TEST_F(Reducer, ReducesWhileBackwardStillRuns) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  Doubling group;
  reducer.begin(group);
  reducer.arm();
  // The hook on `a`'s product holds backward until c and b are reduced.
  const torch::Tensor inner = a_ * torch::ones({32});
  inner.register_hook([&](const torch::Tensor&) { group.await_calls(2); });
  (c_ * (b_ * inner)).sum().backward();
  ASSERT_TRUE(reducer.finish());
  expect_gradients(2);
}

TEST_F(Reducer, OnlyTheLastMicroBatchIsReduced) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  Doubling group;
  reducer.begin(group);
  loss().backward();
  loss().backward();
  EXPECT_EQ(group.calls_, 0);
  reducer.arm();
  loss().backward();
  ASSERT_TRUE(reducer.finish());
  expect_gradients(6);
}

TEST_F(Reducer, AMemberWithoutRecordsTakesPartWithZeros) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  Doubling group;
  reducer.begin(group);
  ASSERT_TRUE(reducer.finish());
  EXPECT_EQ(group.calls_, 3);
  expect_gradients(0);
}

TEST_F(Reducer, AParameterThatIsNotUsedIsReducedToo) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  Doubling group;
  reducer.begin(group);
  reducer.arm();
  (a_ * 1).sum().backward();
  ASSERT_TRUE(reducer.finish());
  EXPECT_EQ(group.calls_, 3);
  EXPECT_EQ(a_.grad()[0].item<float>(), 2);
  EXPECT_EQ(c_.grad()[0].item<float>(), 0);
}

TEST_F(Reducer, ABrokenCollectiveEndsTheStepWithItsError) {
  GradientReducer reducer(flat_, {.bucket_bytes = 1});
  Doubling broken(1);
  reducer.begin(broken);
  reducer.arm();
  loss().backward();
  const Status status = reducer.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "a member is gone");
  EXPECT_EQ(broken.calls_, 1) << "nothing is tried after the failure";
  Doubling whole;
  reducer.begin(whole);
  EXPECT_TRUE(reducer.finish()) << "a new generation starts afresh";
}

}  // namespace
}  // namespace antdt::trainer
