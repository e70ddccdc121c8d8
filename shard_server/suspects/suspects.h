// Records that were in the hands of workers when they died, over lineages.
//
// The ledger counts such deaths for the ranges that it takes back, and forgets
// them when training goes back to a checkpoint: which is what happens when a
// record kills one member after another until nobody is left. Positions of an
// epoch's stream are the same records in every lineage, so the deaths are kept
// here, beside the ledger, for the epoch that is open. Value, without I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::shard_server {

struct SuspiciousDeath {
  Epoch epoch;
  Member member;
  std::vector<Interval> hand;  // what it may have died of
  bool operator==(const SuspiciousDeath&) const = default;
};

class Suspects {
 public:
  // Of one epoch the newest so many are known: an epoch may last for weeks.
  static constexpr std::size_t kMost = 256;

  // Deaths in other epochs are forgotten.
  void add(SuspiciousDeath death);
  void clear() { deaths_.clear(); }
  // The first positions that the newest death shares with others, `deaths` in all.
  [[nodiscard]] std::optional<Interval> shared_by(std::uint32_t deaths) const;

  [[nodiscard]] const std::vector<SuspiciousDeath>& deaths() const { return deaths_; }
  void restore(std::vector<SuspiciousDeath> deaths) { deaths_ = std::move(deaths); }

 private:
  std::vector<SuspiciousDeath> deaths_;
};

// What `holder` has from `place` on, `records` of it at most, in the order of
// its consumption.
[[nodiscard]] std::vector<Interval> hand_of(const Holder& holder, std::uint64_t place,
                                            std::uint64_t records);

// Which records they are, whose log to read, and what to do: for the operator.
[[nodiscard]] std::string suspects_text(const std::string& run, Epoch epoch, Interval at,
                                        std::uint32_t deaths, Member last);

}  // namespace antdt::shard_server
