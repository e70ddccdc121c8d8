#include "jobd/disk/history_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "shard_server/history/series.h"
#include "shard_server/history/step_records.h"

namespace antdt::jobd {
namespace {

namespace history = shard_server::history;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class HistoryKeeperTest : public testing::Test {
 protected:
  HistoryKeeperTest() {
    data.records = 100;
    data.shard_records = 10;
  }
  void remember_a_step(HistoryKeeper& keeper) {
    keeper.remember(history::Settled{Lineage{1}, Generation{1}, Step{0}, {{'w', 0}}});
    keeper.remember(history::Grant{Generation{1}, 1, Epoch{0}, {'w', 0}, 0, {0, 50}});
    keeper.remember(history::Steps{Generation{1}, {Step{1}, 1, 1, {0}, {5}}});
  }
  TempDir directory;
  std::string path = directory / "history.db";
  shard_server::DataSet data;
};

TEST_F(HistoryKeeperTest, ATurnIsThereForAReaderAtItsEnd) {
  HistoryKeeper keeper(path, data, Incarnation{1});
  remember_a_step(keeper);
  keeper.finish_turn();
  const auto found = shard_server::read_step(path, Step{1});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->records(), 5U);
  EXPECT_EQ(found->unknown(), 0U);
  EXPECT_TRUE(keeper.sync());
  EXPECT_FALSE(keeper.take_news());
}

TEST_F(HistoryKeeperTest, TheJobGoesOnWithoutAHistoryThatCannotBeOpenedAndSaysSoOnce) {
  HistoryKeeper keeper(directory / "missing/history.db", data, Incarnation{1});
  EXPECT_THAT(keeper.take_news().value_or(""), HasSubstr("missing/history.db"));
  remember_a_step(keeper);
  keeper.finish_turn();
  EXPECT_TRUE(keeper.sync()) << "nobody keeps it: members need not, either";
  EXPECT_FALSE(keeper.take_news());
}

TEST_F(HistoryKeeperTest, ADamagedHistoryIsMovedAsideAndBegunAnew) {
  ASSERT_TRUE(write_file_atomic(path, std::string(5000, 'x')));
  HistoryKeeper keeper(path, data, Incarnation{1});
  EXPECT_THAT(keeper.take_news().value_or(""), HasSubstr("history.db.damaged"));
  EXPECT_EQ(read_file(path + ".damaged").value_or(""), std::string(5000, 'x'));
  remember_a_step(keeper);
  keeper.finish_turn();
  const auto found = shard_server::read_step(path, Step{1});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->records(), 5U);
}

TEST_F(HistoryKeeperTest, MeasurementsAloneAreWrittenAgainWhenThatIsPossible) {
  HistoryKeeper keeper(path, data, Incarnation{1});
  ASSERT_TRUE(shard_server::History::open(path, data, Incarnation{2}));
  keeper.remember(history::Measured{3, 1, Step{1}, 5, 0, {{{{'w', 0}, Attempt{1}}, 1, 5}}});
  keeper.finish_turn();
  EXPECT_TRUE(keeper.take_news());
  EXPECT_FALSE(keeper.sync());
  ASSERT_TRUE(shard_server::History::open(path, data, Incarnation{1}));
  EXPECT_TRUE(keeper.sync());
  const auto found = shard_server::read_series(path);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->moments.size(), 1U);
}

TEST_F(HistoryKeeperTest, AnEntryThatCannotBeWrittenWaitsAndTheErrorIsReportedOnce) {
  HistoryKeeper keeper(path, data, Incarnation{1});
  // From here on, every write of this process fails.
  ASSERT_TRUE(shard_server::History::open(path, data, Incarnation{2}));
  remember_a_step(keeper);
  keeper.finish_turn();
  EXPECT_THAT(keeper.take_news().value_or(""), HasSubstr("waits"));
  EXPECT_FALSE(keeper.sync());
  EXPECT_FALSE(keeper.take_news());
  ASSERT_TRUE(shard_server::History::open(path, data, Incarnation{1}));
  EXPECT_TRUE(keeper.sync());
  const auto found = shard_server::read_step(path, Step{1});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->unknown(), 0U);
}

}  // namespace
}  // namespace antdt::jobd
