// The model that counts its records: whole numbers, whichever member adds them up.
#include "trainer/tally/tally_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "core/os/fs.h"
#include "tests/trainer/broken_collective.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/saved_state.h"
#include "trainer/loop/state/state_hash.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kRecords = 10'000;  // more than two blocks, the last not full

data::DataShape numbers(std::uint64_t records = kRecords) {
  data::DataShape shape;
  shape.id_width = 1;
  shape.id_rows = records;
  shape.classes = 1;
  return shape;
}

data::Examples batch_of(std::vector<std::int64_t> records) {
  data::Examples out;
  out.count = records.size();
  out.labels.assign(records.size(), 1.0F);
  out.ids = std::move(records);
  return out;
}

std::unique_ptr<Engine> engine_of(std::uint64_t records = kRecords) {
  auto engine = make_tally_engine(numbers(records));
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

TEST(TallyEngineDeathTest, APoisonedRecordEndsTheProcessAndNoOtherDoes) {
  const auto engine = make_tally_engine(numbers(kRecords), 7);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE((*engine)->compute(batch_of({6, 8}), true));
  EXPECT_DEATH(static_cast<void>((*engine)->compute(batch_of({6, 7}), true)), "record 7 is poison");
}

std::vector<float> counts_of(Engine& engine) {
  const auto parts = engine.state_parts();
  EXPECT_EQ(parts.size(), 1U);
  std::vector<float> counts(parts[0].size() / sizeof(float));
  std::memcpy(counts.data(), parts[0].data(), parts[0].size());
  return counts;
}

// One step of one member over these micro-batches.
void step(Engine& engine, Collective& collective, const std::vector<data::Examples>& batches,
          double weight) {
  engine.begin_step(collective);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto sums = engine.compute(batches[i], i + 1 == batches.size());
    ASSERT_TRUE(sums) << sums.error().message;
    EXPECT_EQ(sums->weight, static_cast<double>(batches[i].count));
    EXPECT_EQ(sums->loss, 0);
  }
  ASSERT_TRUE(engine.finish_reduction());
  ASSERT_TRUE(engine.apply(weight));
}

// How the records of a global batch are spread: for each rank, the sizes of its
// micro-batches.
using Spread = std::vector<std::vector<std::size_t>>;

// Every member's counts after one pass over the records in a seeded order. Each
// step draws a new spread with `draw`.
template <class Draw>
std::vector<std::vector<float>> one_epoch(std::uint32_t members, Draw draw, unsigned seed) {
  std::vector<std::int64_t> order(kRecords);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Spread> spreads;
  for (std::size_t left = kRecords; left > 0;) {
    spreads.push_back(draw(random, left));
    for (const auto& sizes : spreads.back()) {
      left -= std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    }
  }
  std::vector<std::vector<float>> counts(members);
  LocalGroup group(members);
  group.run([&](Collective& collective) {
    const auto engine = engine_of();
    std::size_t at = 0;
    for (const Spread& spread : spreads) {
      std::vector<data::Examples> mine;
      const std::size_t from = at;
      for (std::uint32_t rank = 0; rank < members; ++rank) {
        for (const std::size_t size : spread[rank]) {
          const auto begin = order.begin() + static_cast<std::ptrdiff_t>(at);
          if (rank == collective.rank()) {
            mine.push_back(batch_of({begin, begin + static_cast<std::ptrdiff_t>(size)}));
          }
          at += size;
        }
      }
      step(*engine, collective, mine, static_cast<double>(at - from));
    }
    counts[collective.rank()] = counts_of(*engine);
  });
  return counts;
}

TEST(TallyEngine, AnySpreadOfAnyGlobalBatchCountsEachRecordExactlyOnce) {
  // Global batches B for which B * (1 / B) is not 1 in float32 are among them.
  for (const std::size_t global : {41U, 83U, 256U, 1007U, 2047U}) {
    for (const std::uint32_t members : {1U, 2U, 3U, 5U}) {
      const auto draw = [&](std::mt19937& random, std::size_t left) {
        Spread spread(members);
        for (std::size_t batch = std::min(global, left); batch > 0;) {
          const std::size_t size = 1 + random() % batch;
          spread[random() % members].push_back(size);  // some members get none
          batch -= size;
        }
        return spread;
      };
      for (const auto& counts : one_epoch(members, draw, static_cast<unsigned>(global))) {
        ASSERT_EQ(counts.size(), kRecords);
        ASSERT_THAT(counts, Each(1.0F)) << global << " over " << members;
      }
    }
  }
}

TEST(TallyEngine, ARecordThatEntersTwiceIsCountedTwiceAndOneThatNeverEntersIsNotCounted) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const auto engine = engine_of();
    const bool first = collective.rank() == 0;
    step(*engine, collective, {first ? batch_of({1, 9'999}) : batch_of({1, 5'000, 5'000})}, 5);
    const auto counts = counts_of(*engine);
    EXPECT_EQ(counts[1], 2);
    EXPECT_EQ(counts[5'000], 2);
    EXPECT_EQ(counts[9'999], 1);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0F), 5);
  });
}

TEST(TallyEngine, AStepWithoutRecordsAnywhereChangesNothing) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const auto engine = engine_of();
    step(*engine, collective, {}, 1);
    EXPECT_THAT(counts_of(*engine), Each(0.0F));
  });
}

TEST(TallyEngine, AStepThatIsDiscardedLeavesNoTrace) {
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    const auto engine = engine_of();
    engine->begin_step(collective);
    ASSERT_TRUE(engine->compute(batch_of({3}), true));
    ASSERT_TRUE(engine->finish_reduction());
    engine->discard();
    step(*engine, collective, {batch_of({4})}, 1);
    const auto counts = counts_of(*engine);
    EXPECT_EQ(counts[3], 0);
    EXPECT_EQ(counts[4], 1);
  });
}

TEST(TallyEngine, AStepThatBreaksOffIsNotApplied) {
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    const auto engine = engine_of();
    BrokenCollective lost;
    engine->begin_step(lost);
    ASSERT_TRUE(engine->compute(batch_of({3}), true));
    EXPECT_FALSE(engine->finish_reduction());
    engine->discard();
    step(*engine, collective, {batch_of({3})}, 1);
    EXPECT_EQ(counts_of(*engine)[3], 1);
  });
}

TEST(TallyEngine, GoesOnFromAnotherMembersMemoryAsIfNothingHadHappened) {
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    const auto survivor = engine_of();
    const auto newcomer = engine_of();
    newcomer->begin_step(collective);
    ASSERT_TRUE(newcomer->compute(batch_of({7}), true));  // a step that was broken off
    step(*survivor, collective, {batch_of({1, 2, 3})}, 3);
    EXPECT_NE(state_hash(*newcomer, Step{1}), state_hash(*survivor, Step{1}));

    const auto source = survivor->state_parts();
    const auto target = newcomer->state_parts();
    ASSERT_EQ(source.size(), target.size());
    ASSERT_EQ(source[0].size(), target[0].size());
    std::copy(source[0].begin(), source[0].end(), target[0].begin());
    newcomer->state_replaced();
    EXPECT_EQ(state_hash(*newcomer, Step{1}), state_hash(*survivor, Step{1}));
    EXPECT_NE(state_hash(*newcomer, Step{1}), state_hash(*survivor, Step{2}));

    for (Engine* engine : {survivor.get(), newcomer.get()}) {
      step(*engine, collective, {batch_of({3, 4})}, 2);
    }
    EXPECT_EQ(counts_of(*newcomer), counts_of(*survivor));
    EXPECT_EQ(counts_of(*newcomer)[7], 0);
  });
}

TEST(TallyEngine, EvaluationCountsRecordsAndHasNoLoss) {
  const auto partial = engine_of()->evaluate(batch_of({1, 2, 3}));
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->records, 3U);
  EXPECT_EQ(partial->loss_sum, 0);
}

TEST(TallyEngine, ANumberThatIsNoRecordIsAnError) {
  for (const std::int64_t record : {std::int64_t{kRecords}, std::int64_t{-1}}) {
    EXPECT_FALSE(engine_of()->compute(batch_of({record}), true));
  }
}

TEST(TallyEngine, DataOfAnotherShapeAreRefused) {
  data::DataShape images;
  images.dense_width = 64;
  const auto engine = make_tally_engine(images);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(engine.error().message, HasSubstr("data.format = \"index\""));
  EXPECT_FALSE(make_tally_engine(numbers(0)));
}

class SavedTally : public ::testing::Test {
 protected:
  SavedTally() {
    LocalGroup(1).run([&](Collective& collective) {
      step(*engine_, collective, {batch_of({0, 1, 1, 9'999})}, 4);
    });
    auto files = save_state(*engine_, directory_.path(), Step{12});
    EXPECT_TRUE(files) << files.error().message;
    files_ = *files;
  }
  std::unique_ptr<Engine> engine_ = engine_of();
  TempDir directory_;
  std::vector<wire::CheckpointFile> files_;
};

TEST_F(SavedTally, IsTheCountsAsFloatsAndComesBackTheSame) {
  ASSERT_EQ(files_.size(), 2U);
  EXPECT_EQ(files_[0].name, "tally.f32");
  EXPECT_EQ(files_[0].bytes, kRecords * sizeof(float));
  const auto bytes = read_file(directory_ / "tally.f32");
  ASSERT_TRUE(bytes);
  std::vector<float> counts(kRecords);
  ASSERT_EQ(bytes->size(), kRecords * sizeof(float));
  std::memcpy(counts.data(), bytes->data(), bytes->size());
  EXPECT_EQ(counts, counts_of(*engine_));
  EXPECT_EQ(counts[1], 2);

  const auto restored = engine_of();
  const auto loaded = load_state(*restored, directory_.path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, Step{12});
  EXPECT_EQ(state_hash(*restored, Step{12}), state_hash(*engine_, Step{12}));
}

TEST_F(SavedTally, ATallyOfOtherDataIsRefusedAndChangesNothing) {
  const auto other = engine_of(kRecords + 1);
  const auto loaded = load_state(*other, directory_.path());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(loaded.error().message, HasSubstr("this job counts 10001 records"));
  EXPECT_THAT(counts_of(*other), Each(0.0F));
}

TEST_F(SavedTally, ThatIsCutShortIsRefused) {
  const auto bytes = read_file(directory_ / "tally.f32");
  ASSERT_TRUE(write_file_atomic(directory_ / "tally.f32", bytes->substr(0, bytes->size() - 4)));
  const auto other = engine_of();
  const auto loaded = load_state(*other, directory_.path());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(loaded.error().message, HasSubstr("tally.f32 ends 4 bytes too early"));

  ASSERT_TRUE(write_file_atomic(directory_ / "tally.json", "{\"schema\": 1"));
  EXPECT_FALSE(load_state(*other, directory_.path()));
}

}  // namespace
}  // namespace antdt::trainer
