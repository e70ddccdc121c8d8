#include "trainer/data/prefetcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "core/permutation.h"
#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

using client::Taken;
using client::TakeStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Grants positions 0.. of one shard until `records`, then answers `afterwards`.
class FakeShards {
 public:
  FakeShards(std::uint64_t records, TakeStatus afterwards)
      : records_(records), after_(afterwards) {}

  Prefetcher::Take take() {
    return [this](std::uint64_t most, Duration) -> Result<Taken> {
      const std::lock_guard lock(mutex_);
      if (failing_) return fail(ErrorKind::kRefused, "stale attempt");
      Taken taken;
      const std::uint64_t count = std::min(most, records_ - taken_);
      if (count == 0) {
        taken.status = after_;
        taken.dry = after_ == TakeStatus::kWait;
        return taken;
      }
      taken.status = TakeStatus::kData;
      taken.records = count;
      taken.pieces.push_back({0, 0, records_, taken_, taken_ + count, 99, shuffled});
      taken_ += count;
      return taken;
    };
  }
  std::uint64_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    after_ = TakeStatus::kEnd;
  }
  void fail_from_now() {
    const std::lock_guard lock(mutex_);
    failing_ = true;
  }
  bool shuffled = false;

 private:
  std::mutex mutex_;
  std::uint64_t records_;
  TakeStatus after_;
  std::uint64_t taken_ = 0;
  bool failing_ = false;
};

std::unique_ptr<RecordReader> numbers(std::uint64_t records) {
  auto opened =
      open_reader(R"({"data": {"format": "index", "records": )" + std::to_string(records) + "}}",
                  Split::kTrain);
  return std::move(*opened);
}

TEST(Prefetcher, BatchesOfChangingSizesGiveEveryRecordOnceInOrder) {
  const auto reader = numbers(10000);
  FakeShards shards(10000, TakeStatus::kEnd);
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0;; ++i) {
    const std::size_t n = std::vector<std::size_t>{7, 256, 1, 64, 64, 300}[i % 6];
    const auto batch = prefetcher.next(n, seconds(20));
    ASSERT_OK(batch);
    if (batch->status == TakeStatus::kEnd) break;
    ASSERT_EQ(batch->status, TakeStatus::kData);
    EXPECT_EQ(batch->examples.count, std::min<std::size_t>(n, 10000 - ids.size()));
    EXPECT_EQ(batch->examples.labels.size(), batch->examples.count);
    ids.insert(ids.end(), batch->examples.ids.begin(), batch->examples.ids.end());
  }
  std::vector<std::int64_t> expected(10000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(ids, expected);
}

TEST(Prefetcher, PositionsOfAShuffledShardBecomeItsRecords) {
  const auto reader = numbers(100);
  FakeShards shards(100, TakeStatus::kEnd);
  shards.shuffled = true;
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  const auto batch = prefetcher.next(100, seconds(20));
  ASSERT_OK(batch);
  ASSERT_EQ(batch->examples.count, 100U);
  const Permutation order(100, 99);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(static_cast<std::uint64_t>(batch->examples.ids[i]), order(i));
  }
}

TEST(Prefetcher, NoMoreThanTheReadAheadIsTaken) {
  const auto reader = numbers(100000);
  FakeShards shards(100000, TakeStatus::kEnd);
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  std::uint64_t consumed = 0;
  for (int i = 0; i < 50; ++i) {
    const auto batch = prefetcher.next(10, seconds(20));
    ASSERT_OK(batch);
    consumed += batch->examples.count;
    EXPECT_LE(shards.taken(), consumed + 30);
  }
  prefetcher.set_read_ahead(12);
  for (int i = 0; i < 50; ++i) {
    const auto batch = prefetcher.next(4, seconds(20));
    ASSERT_OK(batch);
    consumed += batch->examples.count;
    EXPECT_LE(shards.taken(), consumed + 30);
  }
  EXPECT_LE(shards.taken(), consumed + 12);
}

TEST(Prefetcher, TheRemainingRecordsAreGivenWhenTheServiceHasNoMore) {
  const auto reader = numbers(10);
  FakeShards shards(10, TakeStatus::kWait);
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  const auto some = prefetcher.next(64, seconds(20));
  ASSERT_OK(some);
  EXPECT_EQ(some->status, TakeStatus::kData);
  EXPECT_EQ(some->examples.count, 10U);
  const auto none = prefetcher.next(64, seconds(20));
  ASSERT_OK(none);
  EXPECT_EQ(none->status, TakeStatus::kWait);
  shards.end();
  TakeStatus status = TakeStatus::kWait;
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (status == TakeStatus::kWait && std::chrono::steady_clock::now() < deadline) {
    const auto batch = prefetcher.next(64, milliseconds(10));
    ASSERT_OK(batch);
    status = batch->status;
  }
  EXPECT_EQ(status, TakeStatus::kEnd);
}

TEST(Prefetcher, FetchedRecordsAreGivenAtOnceAndInWholeBatchesWhileMoreMayCome) {
  const auto reader = numbers(25);
  FakeShards shards(25, TakeStatus::kWait);
  Prefetcher prefetcher(shards.take());
  EXPECT_FALSE(prefetcher.next_at_hand(10)) << "it was not started";
  prefetcher.start(*reader);
  const auto first = prefetcher.next(10, seconds(60));
  ASSERT_OK(first);
  std::size_t count = first->examples.count;
  std::vector<std::size_t> sizes;
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (count < 25 && std::chrono::steady_clock::now() < deadline) {
    const auto more = prefetcher.next_at_hand(10);
    if (!more) {
      std::this_thread::yield();
      continue;
    }
    sizes.push_back(more->count);
    count += more->count;
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(10, 5));
  EXPECT_FALSE(prefetcher.next_at_hand(10));
}

TEST(Prefetcher, AnErrorOfTakingComesOutUntilTheNextStart) {
  const auto reader = numbers(10);
  FakeShards shards(10, TakeStatus::kWait);
  shards.fail_from_now();
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  for (int i = 0; i < 2; ++i) {
    const auto batch = prefetcher.next(1, seconds(20));
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().message, "stale attempt");
  }
}

TEST(Prefetcher, StopForgetsWhatWasReadAheadAndTakesNothingMore) {
  const auto reader = numbers(1000);
  FakeShards shards(1000, TakeStatus::kEnd);
  Prefetcher prefetcher(shards.take());
  prefetcher.start(*reader);
  ASSERT_OK(prefetcher.next(10, seconds(20)));
  prefetcher.stop();
  const std::uint64_t taken = shards.taken();
  const auto stopped = prefetcher.next(10, milliseconds(20));
  ASSERT_OK(stopped);
  EXPECT_EQ(stopped->status, TakeStatus::kWait);
  EXPECT_EQ(shards.taken(), taken);
  prefetcher.start(*reader);
  const auto batch = prefetcher.next(10, seconds(20));
  ASSERT_OK(batch);
  EXPECT_EQ(static_cast<std::uint64_t>(batch->examples.ids[0]), taken);
}

}  // namespace
}  // namespace antdt::data
