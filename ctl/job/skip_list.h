// Records that operators let the job go on without, and which of them the present lineage does not
// know yet: the run was resumed, or went back to a checkpoint from before. Pure; the driver keeps
// all() beside the run, for those that follow.
#pragma once

#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/wire/operator_messages.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl::job {

struct Skip {
  Epoch epoch;
  wire::SkipRecords order;
  Lineage lineage;  // in which it was declared last; 0: not yet
};

class SkipList {
 public:
  explicit SkipList(std::vector<Skip> skips = {}) : skips_(std::move(skips)) {}

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
