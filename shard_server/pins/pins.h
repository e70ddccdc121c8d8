// Records that only workers of one domain are granted (data.pin = "domain").
//
// The records of a data set, in file order, are divided into runs; all records of a run are of one
// domain. Domains are known by number: 1 is the first of `names`. The names and the runs are part
// of the data's identity, so a resumed run has the same ones, and new ones only behind them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace antdt::shard_server {

// The number of a domain to which records may be pinned; 0: none.
using DomainNumber = Id<struct DomainNumberTag, std::uint32_t>;

struct PinnedRun {
  std::uint64_t records = 0;
  DomainNumber domain;
  bool operator==(const PinnedRun&) const = default;
};

// Value type. Without runs no record is pinned, and any worker is granted any record.
struct Pins {
  std::vector<std::string> names;
  std::vector<PinnedRun> runs;
  bool operator==(const Pins&) const = default;

  [[nodiscard]] bool empty() const { return runs.empty(); }
  [[nodiscard]] std::uint64_t records() const;
  // 0 if no record is pinned to a domain of this name.
  [[nodiscard]] DomainNumber number_of(std::string_view name) const;
  // "" for a number that is none of these.
  [[nodiscard]] std::string_view name_of(DomainNumber domain) const;
  // The pins of the first `records` records.
  [[nodiscard]] Pins first(std::uint64_t records) const;
  // Adds records behind the others.
  void add(std::uint64_t records, std::string_view domain);
  // Whether these are the pins of the same data after they may have grown: the earlier names in
  // their order, perhaps with new ones behind them, and the earlier runs, perhaps with more records
  // behind them. Pinned data extend no data that were not pinned, nor the other way round.
  [[nodiscard]] bool extend(const Pins& earlier) const;
  // Whether they can be: every run has records and a domain that has a name.
  [[nodiscard]] bool are_possible() const;
};

template <class Archive>
void io(Archive& a, typename Archive::template Ref<PinnedRun> x) {
  a(x.records, x.domain);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<Pins> x) {
  a(x.names, x.runs);
}

}  // namespace antdt::shard_server
