// Tests of a history beyond its bound: the newest steps are found, and the oldest are reported as
// gone.
#include "shard_server/history/history_bound.h"

#include <gmock/gmock.h>

#include "core/os/fs.h"
#include "shard_server/history/history.h"
#include "shard_server/history/step_records.h"

namespace antdt::shard_server {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMost = 128 << 10;

class HistoryBoundTest : public testing::Test {
 protected:
  HistoryBoundTest() {
    data.records = 400'000;
    data.shard_records = 1000;
    auto opened = History::open(path, data, Incarnation{1}, kMost);
    EXPECT_TRUE(opened) << opened.error().message;
    history.emplace(std::move(*opened));
  }
  void settle(std::uint64_t generation) {
    history->append(
        history::Settled{Lineage{1}, Generation{generation}, Step{step}, {{'w', 0}, {'w', 1}}});
    place = 0;
    generation_ = Generation{generation};
  }
  // Trains steps of 10 records by each of two members, reported in runs of ten; each grant is one
  // entry.
  void train(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; i += 10) {
      for (std::uint32_t w = 0; w < 2; ++w) {
        for (std::uint64_t k = 0; k < 10; ++k, position += 10) {
          history->append(history::Grant{
              generation_, 1, Epoch{0}, {'w', w}, place + k * 10, {position, position + 10}});
        }
      }
      history->append(
          history::Steps{generation_, {Step{step + 1}, 10, 1, {place, place}, {10, 10}}});
      step += 10;
      place += 100;
      ASSERT_TRUE(history->commit());
    }
  }
  std::uint64_t bytes() {
    auto db = Database::open(path, Database::Mode::kReadOnly);
    return db ? used_bytes(*db).value_or(0) : 0;
  }
  // The oldest step that is known with all of its records.
  std::uint64_t oldest_known() {
    std::uint64_t low = 1, high = step;
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      const auto found = read_step(path, Step{middle});
      found && found->unknown() == 0 ? void(high = middle) : void(low = middle + 1);
    }
    return low;
  }

  TempDir directory;
  std::string path = directory / "history.db";
  DataSet data;
  std::optional<History> history;
  Generation generation_;
  std::uint64_t step = 0, place = 0, position = 0;
};

TEST_F(HistoryBoundTest, OneGenerationThatTrainsForVeryLongStaysWithinIt) {
  settle(1);
  train(6'000);
  EXPECT_LE(bytes(), kMost * 5 / 4);
  const auto newest = read_step(path, Step{step});
  ASSERT_TRUE(newest) << newest.error().message;
  EXPECT_EQ(newest->unknown(), 0U);
  const auto first = read_step(path, Step{1});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(first.error().message,
              HasSubstr("step 1 is no longer known: the history is held to 131072 bytes"));
  const std::uint64_t oldest = oldest_known();
  EXPECT_LT(oldest, step - 200) << "much of what fits is kept";
  for (std::uint64_t s = oldest; s <= step; s += 97) {
    const auto found = read_step(path, Step{s});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->unknown(), 0U) << s;
    EXPECT_EQ(found->records(), 20U);
  }
}

TEST_F(HistoryBoundTest, OlderGenerationsGoFirst) {
  for (std::uint64_t generation = 1; generation <= 12; ++generation) {
    settle(generation);
    train(300);
  }
  EXPECT_LE(bytes(), kMost * 5 / 4);
  EXPECT_FALSE(read_step(path, Step{1}));
  const auto found = read_step(path, Step{step - 400});  // of the generation before the last
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->generation, Generation{11});
  EXPECT_EQ(found->unknown(), 0U);
}

TEST_F(HistoryBoundTest, LargeTransactionsThatAreFewStayWithinIt) {
  for (std::uint64_t generation = 1; generation <= 24; ++generation) {
    settle(generation);
    for (std::uint64_t k = 0; k < 2'000; ++k, position += 10) {
      history->append(history::Grant{generation_,
                                     1,
                                     Epoch{0},
                                     {'w', 0},
                                     k * 10,
                                     {position % 400'000, position % 400'000 + 10}});
    }
    ASSERT_TRUE(history->commit());
  }
  EXPECT_LE(bytes(), kMost * 5 / 4);
}

TEST_F(HistoryBoundTest, AForgottenGenerationLeavesNothing) {
  for (std::uint64_t generation = 1; generation <= 40; ++generation) {
    settle(2 * generation);
    settle(2 * generation + 1);  // the one before it was broken at once
    train(100);
  }
  auto db = Database::open(path, Database::Mode::kReadOnly);
  ASSERT_TRUE(db);
  const auto rows = db->query_number("SELECT count(*) FROM generations");
  const auto with_steps = db->query_number("SELECT count(DISTINCT generation) FROM steps");
  ASSERT_TRUE(rows && with_steps);
  EXPECT_LE(*rows, 2 * *with_steps);
  EXPECT_LT(*with_steps, 40U);
}

TEST_F(HistoryBoundTest, WithoutABoundAllIsKept) {
  auto opened = History::open(path, data, Incarnation{2});
  ASSERT_TRUE(opened);
  history.emplace(std::move(*opened));
  settle(1);
  train(1'500);
  const auto first = read_step(path, Step{1});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->unknown(), 0U);
}

}  // namespace
}  // namespace antdt::shard_server
