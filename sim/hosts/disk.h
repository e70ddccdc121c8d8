// The job daemon's disk: what is in shard_server/journal/journal.h's database and RUN/skips.json,
// and whether there is room.
//
// A turn is on the disk whole or not at all: SQLite drops a torn end of its log, and with
// synchronous=FULL it loses nothing that it has confirmed. An incarnation that is not the newest
// writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "ctl/job/skip_list.h"
#include "shard_server/journal/journal.h"
#include "sim/rng.h"

namespace antdt::sim {

class Disk {
 public:
  enum class Wrote { kDone, kNoRoom, kTakenOver };

  // `fences`: older incarnations are kept from writing, as they must be.
  Disk(Rng& rng, bool fences) : rng_(rng), fences_(fences) {}

  // A new incarnation begins; empty if there is no room for it.
  [[nodiscard]] std::optional<Incarnation> open();
  [[nodiscard]] Wrote append(Incarnation by, const std::vector<shard_server::JournalEntry>& turn);
  [[nodiscard]] Wrote snapshot(Incarnation by, std::vector<shard_server::JournalEntry> sections);
  [[nodiscard]] const shard_server::JournalContent& journal() const { return journal_; }
  [[nodiscard]] Incarnation newest() const { return incarnation_; }

  // A store that is no disk (store/etcd_journal.h) may not answer an incarnation for a while. A
  // write that it was asked for is carried out at once or at the end, and is answered at the end.
  struct Standstill {
    Incarnation of;
    MonoTime until{};
    bool carries_out = false;
  };
  void stand_still(Standstill standstill) { standstill_ = standstill; }
  // Whether the incarnation still has the store, when a late answer says that its write was done.
  [[nodiscard]] Wrote confirm(Incarnation by) const {
    return fences_ && by != incarnation_ ? Wrote::kTakenOver : Wrote::kDone;
  }
  [[nodiscard]] const Standstill& standstill() const { return standstill_; }

  // Other programs fill the disk, or free it again.
  void set_full(bool full) { full_ = full; }
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] bool has_ballast() const { return ballast_; }
  bool restore_ballast() { return ballast_ = ballast_ || !full_; }

  // For sabotage: the disk loses writes that it has confirmed.
  void forget() {
    journal_ = older;
    ledger.clear();
  }
  shard_server::JournalContent older;

  std::uint64_t turns = 0;
  std::string ledger;                 // image after the last turn
  wire::Plan plan;                    // after the last turn
  bool resume_requested = false;      // RUN/resume.request
  std::vector<ctl::job::Skip> skips;  // RUN/skips.json

 private:
  bool takes_one_more();

  Rng& rng_;
  const bool fences_;
  Incarnation incarnation_;
  shard_server::JournalContent journal_;
  Standstill standstill_;
  bool full_ = false;
  bool ballast_ = true;
  std::uint64_t spare_ = 0;  // writes for which the freed ballast still has room
};

}  // namespace antdt::sim
