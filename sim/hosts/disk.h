// What outlives the job daemon on its disk, as shard_server/journal/journal.h and
// RUN/skips.json keep it, and how much room there is.
//
// A turn is there whole or not at all: SQLite drops what is torn at the end of
// its log, and with synchronous=FULL nothing that it called written is lost.
// Who is not the newest incarnation writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "ctl/job/skip_list.h"
#include "shard_server/journal/journal.h"
#include "sim/rng.h"

namespace antdt::sim {

class Disk {
 public:
  enum class Wrote { kDone, kNoRoom, kTakenOver };

  // `fences`: against older incarnations, as it must.
  Disk(Rng& rng, bool fences) : rng_(rng), fences_(fences) {}

  // A new incarnation begins; none where there is no room for that.
  [[nodiscard]] std::optional<Incarnation> open();
  [[nodiscard]] Wrote append(Incarnation by, const std::vector<shard_server::JournalEntry>& turn);
  [[nodiscard]] Wrote snapshot(Incarnation by, std::vector<shard_server::JournalEntry> sections);
  [[nodiscard]] const shard_server::JournalContent& journal() const { return journal_; }
  [[nodiscard]] Incarnation newest() const { return incarnation_; }

  // Somebody takes all the room there is, or gives it back.
  void set_full(bool full) { full_ = full; }
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] bool has_ballast() const { return ballast_; }
  bool restore_ballast() { return ballast_ = ballast_ || !full_; }

  // For sabotage: a disk that forgets what it called written.
  void forget() {
    journal_ = older;
    ledger.clear();
  }
  shard_server::JournalContent older;

  std::uint64_t turns = 0;
  std::string ledger;                 // image after the last turn
  bool resume_requested = false;      // RUN/resume.request
  std::vector<ctl::job::Skip> skips;  // RUN/skips.json

 private:
  bool takes_one_more();

  Rng& rng_;
  const bool fences_;
  Incarnation incarnation_;
  shard_server::JournalContent journal_;
  bool full_ = false;
  bool ballast_ = true;
  std::uint64_t spare_ = 0;  // writes that the freed ballast still takes
};

}  // namespace antdt::sim
