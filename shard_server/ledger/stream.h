// The order in which an epoch's records are granted.
//
// An epoch is one stream of positions 0 .. size()-1: shards of fixed size in a seeded order, and
// inside each shard its records in a seeded order. No order is stored; everything follows from the
// seeds. Only the shard with the highest index can be short. Its position in the seeded order is
// known, so a position is mapped to its shard by a division. Evaluation reads in file order,
// whether or not training shuffles.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/permutation.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/interval_set.h"

namespace antdt::shard_server {

enum class Shuffle : std::uint8_t {
  kFull,    // shards, and the records inside each shard, are shuffled
  kShards,  // only shards are shuffled
  kNone,    // file order
};

struct DataSet {
  std::uint64_t records = 0;
  std::uint64_t shard_records = 1;  // at least 1; fixed when the data set is made
  Shuffle shuffle = Shuffle::kFull;
  std::uint64_t seed = 0;        // the job's seed
  std::uint64_t began_with = 0;  // records when the run began; 0: they have not grown since
};

// Whether the data have, or have had before they grew, so many records.
[[nodiscard]] constexpr bool has_had(const DataSet& data, std::uint64_t records) {
  return records == data.records ||
         (data.began_with != 0 && data.began_with <= records && records < data.records);
}

enum class PhaseKind : std::uint8_t { kTrain, kEval };

// Value type; about 200 bytes.
class EpochStream {
 public:
  EpochStream(const DataSet& data, Epoch epoch, PhaseKind kind);

  [[nodiscard]] std::uint64_t size() const { return data_.records; }
  [[nodiscard]] std::uint64_t shards() const { return shards_; }

  // Positions [from, to) as parts of shards, in the stream's order. Costs O(shards touched). Needs
  // from <= to <= size().
  [[nodiscard]] std::vector<wire::Piece> pieces(std::uint64_t from, std::uint64_t to) const;
  void append_pieces(Interval interval, std::vector<wire::Piece>& out) const;

  // How many shards an interval touches.
  [[nodiscard]] std::uint64_t shards_in(Interval interval) const;
  // The end of the `count`-th shard (>= 1), counted from the shard that holds `from` (< size()): as
  // far as a grant of `count` pieces can go.
  [[nodiscard]] std::uint64_t reach(std::uint64_t from, std::uint64_t count) const;

 private:
  // A slot is a position in the order of shards.
  [[nodiscard]] std::uint64_t slot_of(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t slot_begin(std::uint64_t slot) const;  // needs slot <= shards()
  [[nodiscard]] wire::Piece whole_shard_in(std::uint64_t slot) const;

  DataSet data_;
  std::uint64_t shards_;
  std::uint64_t missing_;  // how many records the shard with the highest index lacks
  std::uint64_t epoch_seed_;
  Permutation order_;         // order of the shards
  std::uint64_t short_slot_;  // slot of the short shard
};

}  // namespace antdt::shard_server
