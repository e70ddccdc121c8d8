#include "shard_server/ledger/stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace antdt::shard_server {
namespace {

DataSet data(std::uint64_t records, std::uint64_t shard_records, Shuffle shuffle,
             std::uint64_t seed = 7) {
  return {records, shard_records, shuffle, seed};
}

// The records of the data set, in the order of the stream.
std::vector<std::uint64_t> listed(const std::vector<wire::Piece>& pieces) {
  std::vector<std::uint64_t> records;
  for (const wire::Piece& piece : pieces) {
    const Permutation order(piece.shard_records, piece.order_seed);
    for (std::uint64_t p = piece.from; p < piece.to; ++p) {
      records.push_back(piece.shard_first + (piece.shuffled ? order(p) : p));
    }
  }
  return records;
}

TEST(EpochStreamTest, EveryRecordComesExactlyOnceWhereverTheShortShardLies) {
  for (const Shuffle shuffle : {Shuffle::kFull, Shuffle::kShards, Shuffle::kNone}) {
    for (std::uint64_t records = 0; records <= 60; ++records) {
      for (const std::uint64_t shard_records : {1, 7, 10, 64}) {
        const EpochStream stream(data(records, shard_records, shuffle, records), Epoch{1},
                                 PhaseKind::kTrain);
        const auto order = listed(stream.pieces(0, records));
        EXPECT_EQ(order.size(), records);
        EXPECT_EQ(std::set(order.begin(), order.end()).size(), records);
      }
    }
  }
}

TEST(EpochStreamTest, APartOfTheStreamIsTheSamePartOfTheWhole) {
  const EpochStream stream(data(95, 10, Shuffle::kFull), Epoch{0}, PhaseKind::kTrain);
  const auto whole = listed(stream.pieces(0, 95));
  for (std::uint64_t from = 0; from <= 95; ++from) {
    for (std::uint64_t to = from; to <= 95; ++to) {
      const std::vector<std::uint64_t> expected(whole.begin() + static_cast<long>(from),
                                                whole.begin() + static_cast<long>(to));
      ASSERT_EQ(listed(stream.pieces(from, to)), expected) << from << ":" << to;
    }
  }
}

TEST(EpochStreamTest, EpochsAndSeedsGiveDifferentOrdersAndTheSameOnesTheSame) {
  const auto order = [](std::uint64_t seed, std::uint32_t epoch) {
    return listed(EpochStream(data(500, 20, Shuffle::kFull, seed), Epoch{epoch}, PhaseKind::kTrain)
                      .pieces(0, 500));
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
}

TEST(EpochStreamTest, EvaluationReadsInFileOrder) {
  const EpochStream stream(data(25, 10, Shuffle::kFull), Epoch{3}, PhaseKind::kEval);
  const auto order = listed(stream.pieces(0, 25));
  for (std::uint64_t i = 0; i < 25; ++i) EXPECT_EQ(order[i], i);
}

TEST(EpochStreamTest, ReachBoundsTheNumberOfPieces) {
  const EpochStream stream(data(95, 10, Shuffle::kFull), Epoch{0}, PhaseKind::kTrain);
  for (std::uint64_t from = 0; from < 95; ++from) {
    for (std::uint64_t count = 1; count <= 12; ++count) {
      const std::uint64_t end = stream.reach(from, count);
      ASSERT_GT(end, from);
      ASSERT_LE(stream.pieces(from, end).size(), count);
      ASSERT_EQ(stream.pieces(from, end).size(), stream.shards_in({from, end}));
      if (end < 95) {
        ASSERT_EQ(stream.pieces(from, end + 1).size(), count + 1);
      }
    }
  }
}

TEST(EpochStreamTest, APieceOfABillionShardsIsFoundAtOnce) {
  const EpochStream stream(data(1'000'000'000'000 - 3, 1000, Shuffle::kFull), Epoch{0},
                           PhaseKind::kTrain);
  EXPECT_EQ(stream.shards(), 1'000'000'000U);
  const std::uint64_t middle = 499'999'999'999;
  const auto pieces = stream.pieces(middle, middle + 64'000);
  EXPECT_LE(pieces.size(), 66U);
  EXPECT_EQ(listed(pieces).size(), 64'000U);
}

}  // namespace
}  // namespace antdt::shard_server
