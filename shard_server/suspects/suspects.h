// Records that workers held when they died, remembered over lineages.
//
// The ledger counts such deaths for the ranges that it takes back, but forgets the count when
// training goes back to a checkpoint. That is exactly what happens when a record kills one member
// after another until nobody is left. A position of an epoch's stream is the same record in every
// lineage, so the deaths of the open epoch are kept here, beside the ledger. A value without I/O.
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
  std::vector<Interval> held;  // records that it may have died of
  bool operator==(const SuspiciousDeath&) const = default;
};

class Suspects {
 public:
  // Only the newest deaths of an epoch are kept, because an epoch may last for weeks.
  static constexpr std::size_t kMost = 256;

  // Adds a death, and forgets deaths in other epochs.
  void add(SuspiciousDeath death);
  void clear() { deaths_.clear(); }
  // The first positions that `deaths` deaths share, the newest among them.
  [[nodiscard]] std::optional<Interval> shared_by(std::uint32_t deaths) const;

  [[nodiscard]] const std::vector<SuspiciousDeath>& deaths() const { return deaths_; }
  void restore(std::vector<SuspiciousDeath> deaths) { deaths_ = std::move(deaths); }

 private:
  std::vector<SuspiciousDeath> deaths_;
};

// The records that `holder` has from `place` on, at most `records` of them, in the order of its
// consumption.
[[nodiscard]] std::vector<Interval> held_by(const Holder& holder, std::uint64_t place,
                                            std::uint64_t records);

// Tells an operator which records they are, whose log to read, and what to do.
[[nodiscard]] std::string suspects_text(const std::string& run, Epoch epoch, Interval at,
                                        std::uint32_t deaths, Member last);

}  // namespace antdt::shard_server
