// Records that programs skipped (RecordsSkipped), in the accounts. Value types.
//
// A member says of records that it holds that its program skipped them (HeldSkips). When the member
// commits them, they are skipped (EpochSkips); when it gives them back, nothing is left of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shard_server/archive.h"
#include "shard_server/ledger/interval_set.h"

namespace antdt::shard_server {

// The reasons that programs gave, by number. Bounded: whatever comes when there are kMost, has the
// last one, kOther.
class SkipReasons {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::string_view kOther = "other reasons";
  static constexpr std::string_view kNone = "no reason was given";

  // Its number; it is added, as valid UTF-8, if it is new.
  [[nodiscard]] std::uint32_t number_of(std::string_view given);
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  template <class Archive>
  friend void io(Archive& a, typename Archive::template Ref<SkipReasons> x);
  std::vector<std::string> all_;
};

struct SkippedAt {
  Interval at;
  std::uint32_t reason = 0;  // its number
};

class HeldSkips {
 public:
  // Positions of which it was said before keep their first reason.
  void add(SkippedAt skipped);
  // Removes what is in `at`.
  std::vector<SkippedAt> take(Interval at);
  // Removes what is not in `held`.
  void keep_within(const IntervalSet& held);
  [[nodiscard]] std::vector<SkippedAt> all() const;
  [[nodiscard]] bool empty() const { return by_reason_.empty(); }

 private:
  std::map<std::uint32_t, IntervalSet> by_reason_;  // no set is empty
};

// The numbers are exact. Positions are needed only to go back to a checkpoint of an open epoch,
// that is, by what was committed during a few steps: the oldest are forgotten when there are
// kMostKept ranges.
class EpochSkips {
 public:
  static constexpr std::size_t kMostKept = 16384;

  void add(SkippedAt skipped);
  // They are not skipped any more: they were committed again.
  void remove(Interval at);
  // Without those whose positions are known and not in `committed`.
  void keep_within(const IntervalSet& committed);
  void forget_positions() { kept_.clear(); }

  [[nodiscard]] std::uint64_t total() const;
  [[nodiscard]] const std::vector<std::uint64_t>& by_reason() const { return by_reason_; }
  // Whether this can be, with so many reasons and committed records.
  [[nodiscard]] bool is_possible(std::size_t reasons, std::uint64_t committed) const;

 private:
  template <class Archive>
  friend void io(Archive& a, typename Archive::template Ref<EpochSkips> x);
  template <class Parts>
  void replace_kept(Parts parts);

  std::vector<std::uint64_t> by_reason_;  // how many records
  std::vector<SkippedAt> kept_;           // as they were committed
};

template <class Archive>
void io(Archive& a, typename Archive::template Ref<SkipReasons> x) {
  a(x.all_);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<SkippedAt> x) {
  a(x.at.from, x.at.to, x.reason);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<EpochSkips> x) {
  a(x.by_reason_, x.kept_);
}

}  // namespace antdt::shard_server
