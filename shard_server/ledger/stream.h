// The order in which an epoch's records are handed out.
//
// An epoch is one stream of positions 0 .. size()-1: shards of fixed size in a
// seeded order, inside each shard a seeded order of its records. Nothing is
// stored: where a position lies follows from the seeds. Only the shard with
// the highest index can be short; where the seeded order puts it is known, so
// the mapping stays a division. Evaluation reads in file order, whatever the
// training data's shuffle is.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/permutation.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/interval_set.h"

namespace antdt::shard_server {

enum class Shuffle : std::uint8_t {
  kFull,    // the order of shards, and of records inside a shard
  kShards,  // the order of shards only
  kNone,    // file order
};

struct DataSet {
  std::uint64_t records = 0;
  std::uint64_t shard_records = 1;  // at least 1; fixed when the data set is made
  Shuffle shuffle = Shuffle::kFull;
  std::uint64_t seed = 0;  // the job's
};

enum class PhaseKind : std::uint8_t { kTrain, kEval };

// Value type; about 200 bytes.
class EpochStream {
 public:
  EpochStream(const DataSet& data, Epoch epoch, PhaseKind kind);

  [[nodiscard]] std::uint64_t size() const { return data_.records; }
  [[nodiscard]] std::uint64_t shards() const { return shards_; }

  // Positions [from, to) as parts of shards, in the stream's order. O(shards
  // touched). Needs from <= to <= size().
  [[nodiscard]] std::vector<wire::Piece> pieces(std::uint64_t from, std::uint64_t to) const;
  void append_pieces(Interval interval, std::vector<wire::Piece>& out) const;

  // How many shards an interval touches, and the end of the `count`-th shard (>= 1) counted from
  // the one that holds `from` (< size()): as far as a grant of at most `count` pieces can go.
  [[nodiscard]] std::uint64_t shards_in(Interval interval) const;
  [[nodiscard]] std::uint64_t reach(std::uint64_t from, std::uint64_t count) const;

 private:
  // A slot is a place in the order of shards.
  [[nodiscard]] std::uint64_t slot_of(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t slot_begin(std::uint64_t slot) const;  // slot <= shards()
  [[nodiscard]] wire::Piece whole_shard_in(std::uint64_t slot) const;

  DataSet data_;
  std::uint64_t shards_;
  std::uint64_t missing_;  // by how much the shard with the highest index is short
  std::uint64_t epoch_seed_;
  Permutation order_;         // of the shards
  std::uint64_t short_slot_;  // where in the order the short one comes
};

}  // namespace antdt::shard_server
