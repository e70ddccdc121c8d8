// Records that operators let the job go on without, and which of them the present lineage does not
// know yet: the run was resumed, or went back to a checkpoint from before. Pure.
//
// The driver keeps the list twice. A record of the journal has it in the turn that declares a skip,
// so that the next incarnation knows it, on whichever host it begins. And all() is kept beside the
// run, where an operator adds to it while nothing runs, and for a journal that is begun anew.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/wire/operator_messages.h"
#include "shard_server/journal/journal.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl::job {

struct Skip {
  Epoch epoch;
  wire::SkipRecords order;
  Lineage lineage;  // in which it was declared last; 0: not yet
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("epoch", m.epoch);
    v("order", m.order);
    v("lineage", m.lineage);
  }
};

// The journal's records of the list, each of which replaces those before, and the section of
// snapshots.
inline constexpr std::string_view kSkipRecord = "skips";

class SkipList {
 public:
  explicit SkipList(std::vector<Skip> skips = {}) : skips_(std::move(skips)) {}
  // Adds those that the journal knows and this list does not, to be declared once more, which does
  // no harm. kCorrupt.
  [[nodiscard]] Status learn(const shard_server::JournalContent& journal);
  // The record; empty if the list is.
  [[nodiscard]] std::string record() const;
  // The record, if the list has changed (see take_changed()); else empty.
  [[nodiscard]] std::string record_if_changed() const {
    return changed_ ? record() : std::string();
  }

  void add(Epoch epoch, wire::SkipRecords order) {
    skips_.push_back({epoch, std::move(order), {}});
  }
  // To be declared now that this phase is open, each once in a lineage.
  [[nodiscard]] std::vector<Skip> take_due(const shard_server::Phase& open, Lineage lineage);
  // Whether they are others than when this was asked last.
  [[nodiscard]] bool take_changed() { return std::exchange(changed_, false); }
  [[nodiscard]] const std::vector<Skip>& all() const { return skips_; }

 private:
  std::vector<Skip> skips_;
  bool changed_ = false;
};

}  // namespace antdt::ctl::job
