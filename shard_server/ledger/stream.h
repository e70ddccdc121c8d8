// The order in which an epoch's records are granted.
//
// An epoch is one stream of positions 0 .. size()-1: shards of fixed size in a seeded order, and
// inside each shard its records in a seeded order. No order is stored; everything follows from the
// seeds. If records are pinned to domains, the stream has a section for each domain, one behind the
// other, and the shards of a section are only of its domain, in a seeded order of their own.
// Otherwise it has one section. Only the last shard of a run of records can be short (without pins
// there is one run). The positions of the short shards in the seeded order are known, so a position
// is mapped to its shard by a search among them and a division. Evaluation reads in file order,
// whether or not training shuffles.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "core/permutation.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/pins/pins.h"

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
  Pins pins = {};                // empty, or of all records
};

// Whether the data have, or have had before they grew, so many records.
[[nodiscard]] constexpr bool has_had(const DataSet& data, std::uint64_t records) {
  return records == data.records ||
         (data.began_with != 0 && data.began_with <= records && records < data.records);
}

enum class PhaseKind : std::uint8_t { kTrain, kEval };

// Value type; about 300 bytes, and 32 for each run of pinned records.
class EpochStream {
 public:
  EpochStream(const DataSet& data, Epoch epoch, PhaseKind kind);

  [[nodiscard]] std::uint64_t size() const { return records_; }
  [[nodiscard]] std::uint64_t shards() const { return shards_; }

  // The records of one domain.
  struct Part {
    DomainNumber domain;  // 0: these are all records, and pinned to none
    Interval positions;
  };
  // In the order of positions and of domains. A domain without records has no section.
  [[nodiscard]] std::vector<Part> parts() const;

  // Positions [from, to) as parts of shards, in the stream's order. Costs O(shards touched). Needs
  // from <= to <= size().
  [[nodiscard]] std::vector<wire::Piece> pieces(std::uint64_t from, std::uint64_t to) const;
  void append_pieces(Interval interval, std::vector<wire::Piece>& out) const;

  // How many shards an interval touches.
  [[nodiscard]] std::uint64_t shards_in(Interval interval) const;
  // The end of the `count`-th shard (>= 1), counted from the shard that holds `from` (< size()), or
  // of its section: as far as a grant of `count` pieces can go.
  [[nodiscard]] std::uint64_t reach(std::uint64_t from, std::uint64_t count) const;

 private:
  // Consecutive records, divided into shards.
  struct Run {
    std::uint64_t first_record = 0;
    std::uint64_t records = 0;
    std::uint64_t first_shard = 0;  // of the data set, in file order
    std::uint64_t in_section = 0;   // the same, of the section
  };
  // A slot is a position in a section's order of shards.
  struct ShortSlot {
    std::uint64_t slot = 0;
    std::uint64_t missing = 0;  // how many records this shard and those before it lack
    std::uint64_t end = 0;      // the position behind it, in the section
  };
  struct Section {
    Part part;
    std::uint64_t shards = 0;
    Permutation order{0, 0};  // of its shards
    std::vector<Run> runs;
    std::vector<ShortSlot> short_slots;
  };

  void add_run(std::uint64_t first_record, const PinnedRun& run);
  void order(Section& section, std::uint64_t seed);
  [[nodiscard]] std::uint64_t shard_in(const Section& section, std::uint64_t slot) const;
  [[nodiscard]] const Section& section_of(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t slot_of(const Section& section, std::uint64_t position) const;
  // Needs slot <= section.shards.
  [[nodiscard]] std::uint64_t slot_begin(const Section& section, std::uint64_t slot) const;
  [[nodiscard]] wire::Piece whole_shard_in(const Section& section, std::uint64_t slot) const;
  void append_within(const Section& section, Interval interval,
                     std::vector<wire::Piece>& out) const;

  std::uint64_t records_;
  std::uint64_t shard_records_;
  Shuffle shuffle_;
  std::uint64_t epoch_seed_;
  std::uint64_t shards_ = 0;
  std::vector<Section> sections_;  // at least one, by position
};

}  // namespace antdt::shard_server
