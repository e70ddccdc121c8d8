// Tests of the workers' measurements in a run's history.
#include "shard_server/history/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "shard_server/history/history.h"

namespace antdt::shard_server {
namespace {

using ::testing::HasSubstr;

class SeriesTest : public ::testing::Test {
 protected:
  SeriesTest() {
    data_.records = 100;
    data_.shard_records = 10;
  }
  [[nodiscard]] History open(std::uint64_t incarnation = 1) const {
    auto opened = History::open(path_, data_, Incarnation{incarnation});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  static void write(History& history, Moment moment) {
    history.append(history::Measured{std::move(moment)});
    const Status written = history.commit();
    ASSERT_TRUE(written) << written.error().message;
  }
  [[nodiscard]] Series read() const {
    auto found = read_series(path_);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : Series{};
  }
  // A moment of `workers` workers, each of which trained 10 samples in 2 batches.
  static Moment moment(double from_s, std::uint32_t workers = 2) {
    Moment m{from_s, 1, Step{static_cast<std::uint64_t>(from_s) + 1}, 7, 0.5, {}};
    for (std::uint32_t i = 0; i < workers; ++i) {
      m.workers.push_back({{{'w', i}, Attempt{1}}, 2, 10, 100, 300, 50, 5, 1, "", "", 1});
    }
    return m;
  }

  TempDir directory_;
  std::string path_ = directory_ / "history.db";
  DataSet data_;
};

TEST_F(SeriesTest, MeasurementsOfAWorkerAreReadBack) {
  History history = open();
  Moment written = moment(12.25, 1);
  written.workers[0].verdict = "persistent";
  written.workers[0].cause = "data";
  written.workers[0].severity = 3.5;
  write(history, written);
  EXPECT_FALSE(history.unsynced()) << "it is not worth a sync of its own";
  const Series found = read();
  EXPECT_EQ(found.width_s, 1);
  ASSERT_EQ(found.moments.size(), 1U);
  const Moment& m = found.moments[0];
  EXPECT_EQ(m.from_s, 12.25);
  EXPECT_EQ(m.seconds, 1);
  EXPECT_EQ(m.step, Step{13});
  EXPECT_EQ(m.samples_done, 7U);
  EXPECT_EQ(m.loss, 0.5);
  ASSERT_EQ(m.workers.size(), 1U);
  const WorkerMoment& w = m.workers[0];
  EXPECT_EQ(w.member, (Member{{'w', 0}, Attempt{1}}));
  EXPECT_EQ(w.batches, 2U);
  EXPECT_EQ(w.samples, 10U);
  EXPECT_EQ(w.data_us, 100U);
  EXPECT_EQ(w.compute_us, 300U);
  EXPECT_EQ(w.wait_us, 50U);
  EXPECT_EQ(w.micro_batch, 5U);
  EXPECT_EQ(w.accumulation, 1U);
  EXPECT_EQ(w.verdict, "persistent");
  EXPECT_EQ(w.cause, "data");
  EXPECT_EQ(w.severity, 3.5);
}

TEST_F(SeriesTest, SecondsThatCouldNotBeWrittenBecomeOneMoment) {
  History history = open();
  for (int s = 3; s < 6; ++s) history.append(history::Measured{moment(s)});
  ASSERT_TRUE(history.commit());
  const Series found = read();
  ASSERT_EQ(found.moments.size(), 1U);
  EXPECT_EQ(found.moments[0].from_s, 3);
  EXPECT_EQ(found.moments[0].seconds, 3);
  EXPECT_EQ(found.moments[0].step, Step{6});
  EXPECT_EQ(found.moments[0].workers.at(1).samples, 30U);
}

TEST_F(SeriesTest, AWorkerThatComesOrGoesHasItsOwnSums) {
  Moment sum = moment(0, 1);
  Moment later = moment(1, 3);
  later.workers.erase(later.workers.begin());
  later.workers[0].member.attempt = Attempt{2};
  add_moment(sum, later);
  ASSERT_EQ(sum.workers.size(), 3U);
  for (const WorkerMoment& w : sum.workers) EXPECT_EQ(w.samples, 10U) << to_string(w.member.worker);
  EXPECT_EQ(sum.workers[1].member.attempt, Attempt{2});
}

TEST_F(SeriesTest, ALongRunIsAllThereInLessDetail) {
  constexpr std::uint32_t kFleet = 2000;  // 100 rows at most
  constexpr int kLong = 250;
  ASSERT_EQ(most_moments(kFleet), 100U);
  {
    History history = open();
    for (int s = 0; s < 150; ++s) write(history, moment(s, kFleet));
  }
  History history = open(2);  // which knows of the width
  for (int s = 150; s < kLong; ++s) write(history, moment(s, kFleet));
  const Series found = read();
  EXPECT_EQ(found.width_s, 4);
  EXPECT_EQ(found.moments.size(), 63U);
  std::uint64_t samples = 0;
  for (const Moment& m : found.moments) samples += m.workers.at(7).samples;
  EXPECT_EQ(samples, 10U * kLong);
  EXPECT_EQ(found.moments[10].from_s, 40);
  EXPECT_EQ(found.moments[10].seconds, 4);
}

TEST_F(SeriesTest, ItIsBoundedByTheWorkersOfARowWhereFewOfThemReportAtATime) {
  History history = open();
  for (std::uint32_t second = 0; second < 11'000; ++second) {
    Moment m = moment(second, 20);
    for (WorkerMoment& w : m.workers) w.member.worker.index += second % 2 * 20;
    write(history, std::move(m));
  }
  const Series series = read();
  std::size_t most = 0;
  for (const Moment& m : series.moments) most = std::max(most, m.workers.size());
  EXPECT_EQ(most, 40U);
  EXPECT_LE(series.moments.size(), most_moments(most));
}

TEST_F(SeriesTest, AHistoryWithoutASeriesHasNoMoments) {
  { const History history = open(); }
  EXPECT_TRUE(read().moments.empty());
}

TEST_F(SeriesTest, AFileThatIsNoHistoryIsAnError) {
  ASSERT_TRUE(write_file_atomic(path_, "nothing of the kind, and long enough to be looked at"));
  const auto found = read_series(path_);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("history.db"));
}

}  // namespace
}  // namespace antdt::shard_server
