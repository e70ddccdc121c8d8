#include "sim/hosts/disk.h"

namespace antdt::sim {

bool Disk::takes_one_more() {
  if (!full_) return true;
  if (ballast_) {
    ballast_ = false;
    spare_ = rng_.between(2, 100);
  }
  if (spare_ == 0) return false;
  --spare_;
  return true;
}

std::optional<Incarnation> Disk::open() {
  if (!takes_one_more()) return {};
  return incarnation_ = incarnation_.next();
}

Disk::Wrote Disk::append(Incarnation by, const std::vector<shard_server::JournalEntry>& turn) {
  if (fences_ && by != incarnation_) return Wrote::kTakenOver;
  if (!takes_one_more()) return Wrote::kNoRoom;
  journal_.records.insert(journal_.records.end(), turn.begin(), turn.end());
  return Wrote::kDone;
}

Disk::Wrote Disk::snapshot(Incarnation by, std::vector<shard_server::JournalEntry> sections) {
  if (fences_ && by != incarnation_) return Wrote::kTakenOver;
  if (!takes_one_more()) return Wrote::kNoRoom;
  journal_ = {std::move(sections), {}};
  return Wrote::kDone;
}

}  // namespace antdt::sim
