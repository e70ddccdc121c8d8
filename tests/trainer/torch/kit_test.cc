// Models of a program's own in the engine: buffers, schedules, options.
#include <antdt/kit/parts.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "core/os/fs.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/saved_state.h"
#include "trainer/loop/state/state_hash.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/optimizer.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {
namespace {

// Its buffers are the sum of what it saw, and how many batches that was.
class Seeing final : public kit::Model {
 public:
  Seeing() {
    weight_ = register_parameter("weight", torch::ones({2}));
    frozen_ = register_parameter("frozen", torch::full({3}, 7.0), /*requires_grad=*/false);
    seen_ = register_buffer("seen", torch::zeros({2}));
    batches_ = register_buffer("batches", torch::zeros({}, torch::kInt64));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    if (is_training()) {
      const torch::NoGradGuard no_grad;
      seen_ += batch.dense.mean(0);
      batches_ += 1;
    }
    return batch.dense.matmul(weight_);
  }

 private:
  torch::Tensor weight_, frozen_, seen_, batches_;
};

data::DataShape seen_shape() {
  data::DataShape shape;
  shape.dense_width = 2;
  shape.classes = 1;
  return shape;
}

data::Examples seen_rows(const std::vector<float>& firsts) {
  data::Examples out;
  for (const float first : firsts) {
    out.dense.insert(out.dense.end(), {first, 1});
    out.labels.push_back(0);
  }
  out.count = firsts.size();
  return out;
}

struct Made {
  std::shared_ptr<Seeing> model = std::make_shared<Seeing>();
  std::unique_ptr<Engine> engine;
};
Made make_seeing(kit::Schedule schedule = {}, std::unique_ptr<kit::Optimizer> optimizer = {}) {
  Made made;
  Training training;
  training.model = made.model;
  const std::size_t floats = floats_of(*made.model).value();
  training.optimizer =
      optimizer ? std::move(optimizer) : make_optimizer({"sgd", 0.5, 0, 0}, floats).value();
  training.metric = count_by_label;
  training.schedule = std::move(schedule);
  auto engine = make_torch_engine(std::move(training), seen_shape());
  EXPECT_TRUE(engine) << engine.error().message;
  made.engine = std::move(*engine);
  return made;
}

float seen(const Made& made) { return made.model->named_buffers()["seen"][0].item<float>(); }
std::int64_t batches(const Made& made) {
  return made.model->named_buffers()["batches"].item<std::int64_t>();
}

void see(Engine& engine, Collective& collective, const std::vector<data::Examples>& all) {
  engine.begin_step(collective);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto sums = engine.compute(all[i], i + 1 == all.size());
    ASSERT_TRUE(sums) << sums.error().message;
  }
  ASSERT_TRUE(engine.finish_reduction());
}

TEST(Buffers, ChangeByTheWeightedMeanOfWhatMembersSawAndAreEqualOnAll) {
  LocalGroup group(3);
  std::mutex mutex;
  std::vector<std::uint64_t> hashes;
  group.run([&](Collective& collective) {
    const Made made = make_seeing();
    // Three records with mean 2, one with 10, and a member without any.
    const std::vector<std::vector<data::Examples>> shares{
        {seen_rows({1, 2, 3})}, {seen_rows({10})}, {}};
    see(*made.engine, collective, shares[collective.rank()]);
    ASSERT_TRUE(made.engine->apply(4));
    EXPECT_FLOAT_EQ(seen(made), (3 * 2 + 10) / 4.0F);
    EXPECT_EQ(batches(made), 1);
    const std::lock_guard lock(mutex);
    hashes.push_back(state_hash(*made.engine, Step{1}));
  });
  EXPECT_EQ(hashes, std::vector<std::uint64_t>(3, hashes.at(0)));
}

TEST(Buffers, OfALocalStepAreTheMembersOwnUntilAMixAveragesThem) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const Made made = make_seeing();
    const float own = collective.rank() == 0 ? 4 : 8;
    made.engine->begin_local_step(collective);
    ASSERT_TRUE(made.engine->compute(seen_rows({own}), true));
    ASSERT_TRUE(made.engine->apply(1));
    EXPECT_FLOAT_EQ(seen(made), own);
    ASSERT_TRUE(made.engine->mix(collective));
    EXPECT_FLOAT_EQ(seen(made), 6);
    made.engine->discard();
    EXPECT_FLOAT_EQ(seen(made), own);
  });
}

TEST(Buffers, ADiscardedStepAndAnEvaluationDoNotChangeThem) {
  const Made made = make_seeing();
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    see(*made.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(made.engine->apply(1));
    see(*made.engine, collective, {seen_rows({100}), seen_rows({200})});
    made.engine->discard();
  });
  EXPECT_FLOAT_EQ(seen(made), 4);
  EXPECT_EQ(batches(made), 1);
  ASSERT_TRUE(made.engine->evaluate(seen_rows({5, 6})));
  EXPECT_FLOAT_EQ(seen(made), 4);
}

TEST(Buffers, MayGetOtherMemoryFromTheProgram) {
  const Made made = make_seeing();
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    see(*made.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(made.engine->apply(1));
    for (const float expected : {10.0F, 16.0F}) {
      torch::Tensor buffer = made.model->named_buffers()["seen"];
      buffer.set_data(buffer.clone());
      see(*made.engine, collective, {seen_rows({6})});
      ASSERT_TRUE(made.engine->apply(1));
      EXPECT_FLOAT_EQ(seen(made), expected);
    }
  });
}

TEST(Buffers, AStateThatIsReceivedReplacesWhatIsNotTrained) {
  const Made made = make_seeing();
  const auto frozen = [&] { return made.model->named_parameters()["frozen"]; };
  const auto parts = made.engine->state_parts();
  auto* const bytes = reinterpret_cast<float*>(parts.back().data() + 2 * 64);  // behind the others
  ASSERT_EQ(bytes[0], 7.0F);
  bytes[0] = 8;
  made.engine->discard();
  EXPECT_FLOAT_EQ(frozen()[0].item<float>(), 7);
  made.engine->state_replaced();
  EXPECT_FLOAT_EQ(frozen()[0].item<float>(), 8);
}

TEST(Buffers, AreSavedRestoredAndHandedOver) {
  const Made original = make_seeing(), restored = make_seeing(), healed = make_seeing();
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    see(*original.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(original.engine->apply(1));
  });
  const TempDir directory;
  const auto files = save_state(*original.engine, directory.path(), Step{1});
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 3U);
  const auto loaded = load_state(*restored.engine, directory.path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto from = original.engine->state_parts(), to = healed.engine->state_parts();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i], to[i].begin());
  healed.engine->state_replaced();
  for (const Made* made : {&restored, &healed}) {
    EXPECT_FLOAT_EQ(seen(*made), 4);
    EXPECT_EQ(batches(*made), 1);
    EXPECT_EQ(state_hash(*made->engine, Step{1}), state_hash(*original.engine, Step{1}));
  }
}

// The first step is well.
class Jamming final : public kit::Optimizer {
 public:
  void update(std::span<float>, std::span<float> gradients, std::size_t, float) override {
    if (steps_ == 2) throw std::runtime_error("the gears jam");
    std::ranges::fill(gradients, 0.0F);
  }
  std::vector<std::span<float>> state() override { return {}; }
};

TEST(AnExceptionInAnUpdate, IsAnErrorWithItsTextAndAMistakeOfTheUsersIsOne) {
  const auto late = [](std::uint64_t steps) -> double {
    if (steps == 1) throw kit::UsageError("no rate for tomorrow");
    return 1;
  };
  for (const bool of_schedule : {true, false}) {
    const Made made =
        of_schedule ? make_seeing(late) : make_seeing({}, std::make_unique<Jamming>());
    LocalGroup group(1);
    group.run([&](Collective& collective) {
      see(*made.engine, collective, {seen_rows({4})});
      ASSERT_TRUE(made.engine->apply(1));
      see(*made.engine, collective, {seen_rows({4})});
      const Status applied = made.engine->apply(1);
      ASSERT_FALSE(applied);
      EXPECT_EQ(applied.error().kind, of_schedule ? ErrorKind::kUsage : ErrorKind::kInternal);
      EXPECT_EQ(applied.error().message, of_schedule
                                             ? "no rate for tomorrow"
                                             : "the model cannot be updated: the gears jam");
      // As a member does that gives a step up.
      collective.abort();
      EXPECT_FALSE(made.engine->finish_reduction());
    });
  }
}

TEST(Schedule, GoesByTheStepsThatWereAppliedAndGoesOnAfterARestart) {
  std::vector<std::uint64_t> asked;
  const auto schedule = [&asked](std::uint64_t steps) {
    asked.push_back(steps);
    return 0.0;
  };
  const Made first = make_seeing(schedule), second = make_seeing(schedule);
  const TempDir directory;
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    see(*first.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(first.engine->apply(1));
    see(*first.engine, collective, {seen_rows({4})});
    first.engine->discard();
    see(*first.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(first.engine->apply(1));
    ASSERT_TRUE(save_state(*first.engine, directory.path(), Step{2}));
    ASSERT_TRUE(load_state(*second.engine, directory.path()));
    see(*second.engine, collective, {seen_rows({4})});
    ASSERT_TRUE(second.engine->apply(1));
  });
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_FLOAT_EQ(first.model->named_parameters()["weight"][0].item<float>(), 1) << "rate 0";
}

TEST(OwnModel, ALossThatIsNoNumberIsAnErrorAndTheParametersStay) {
  const Made made = make_seeing();
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    made.engine->begin_step(collective);
    const auto sums = made.engine->compute(seen_rows({std::nanf("")}), true);
    ASSERT_FALSE(sums);
    EXPECT_NE(sums.error().message.find("of 1 records is nan"), std::string::npos)
        << sums.error().message;
  });
}

TEST(OwnModel, AParameterOfAnotherTypeAndAModelWithoutAnyAreRefused) {
  struct Double final : kit::Model {
    Double() { weight = register_parameter("weight", torch::ones({1}, torch::kFloat64)); }
    torch::Tensor forward(const kit::Batch&) override { return weight; }
    torch::Tensor weight;
  };
  struct Empty final : kit::Model {
    torch::Tensor forward(const kit::Batch& batch) override { return batch.dense; }
  };
  EXPECT_EQ(floats_of(Double()).error().message,
            "the model's parameter 'weight' is Double: it must be float32");
  EXPECT_NE(floats_of(Empty()).error().message.find("no parameter to train"), std::string::npos);
}

TEST(Options, AreReadByTypeAndWhatIsWrongNamesTheKey) {
  const kit::Options options({{"depth", std::int64_t{3}},
                              {"rate", 0.5},
                              {"name", std::string("x")},
                              {"widths", kit::Options::Integers{64, 32}},
                              {"on", true},
                              {"none", kit::Options::Integers{}},
                              {"hidden", std::int64_t{1}}});
  EXPECT_EQ(options.integer("depth"), 3);
  EXPECT_EQ(options.number("depth"), 3.0);
  EXPECT_EQ(options.number("rate", 1), 0.5);
  EXPECT_EQ(options.number("momentum", 0.9), 0.9);
  EXPECT_EQ(options.text("name"), "x");
  EXPECT_TRUE(options.flag("on"));
  EXPECT_EQ(options.numbers("widths"), (kit::Options::Numbers{64, 32}));
  EXPECT_TRUE(options.texts("none").empty());
  EXPECT_EQ(options.unread(), std::vector<std::string>{"hidden"});
  const auto said = [](auto read) {
    try {
      read();
    } catch (const kit::UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(said([&] { (void)options.integer("rate"); }),
            "[user] rate is a number: it must be a whole number");
  EXPECT_EQ(said([&] { (void)options.text("path"); }),
            "[user] path is missing: the program needs a string");
}

TEST(EmbeddingTable, OfColumnsThatLeaveAGapIsRefused) {
  struct Gap final : kit::Model {
    Gap() { (void)register_table("table", 4, {{"a", 0, 1, 0}, {"b", 2, 1, 0}}); }
    torch::Tensor forward(const kit::Batch& batch) override { return batch.dense; }
  };
  EXPECT_THROW(Gap(), kit::UsageError);
}

}  // namespace
}  // namespace antdt::trainer
