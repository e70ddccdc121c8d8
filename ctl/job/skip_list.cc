#include "ctl/job/skip_list.h"

namespace antdt::ctl::job {

std::vector<Skip> SkipList::take_due(const shard_server::Phase& open, Lineage lineage) {
  std::vector<Skip> due;
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return due;
  for (Skip& skip : skips_) {
    if (skip.epoch != open.epoch || skip.lineage >= lineage) continue;
    skip.lineage = lineage;
    due.push_back(skip);
    changed_ = true;
  }
  return due;
}

}  // namespace antdt::ctl::job
