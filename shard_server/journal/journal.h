// The job daemon's memory: records in order, and a snapshot to begin from.
//
// On disk, one SQLite database in WAL mode:
//
//   meta(key TEXT PRIMARY KEY, value INTEGER)   'format' = 1, 'incarnation'
//   turns(id INTEGER PRIMARY KEY, checksum INTEGER, body BLOB)
//   snapshot(id = 1, through INTEGER, checksum INTEGER, body BLOB)
//
// A turn is everything that one commit() made durable; a body is a sequence
// of entries: length and bytes of the kind, length and bytes of the record
// (lengths as LEB128). A checksum is XXH3-64 of the body. `through` is the
// last turn that the snapshot contains; turns up to it are deleted in the
// transaction that writes the snapshot. Ids rise by one without gaps.
//
// Crashes. synchronous=FULL: the WAL is synced before commit() returns. A turn
// is there whole or not at all, as its transaction is; a turn whose commit()
// did not return may be either, and nothing that depends on it was sent. A
// snapshot replaces the old one together with the deletion: at any moment
// snapshot + turns is the whole history. A WAL cut short is cut back by SQLite
// to its last whole transaction: after a kill that loses nothing, as what was
// acknowledged had been synced. Damage elsewhere (a bad disk, a half copied
// file) is found by SQLite, the checksums or a gap in the ids, and is an
// error, never a guess.
//
// Two job daemons. open() raises the incarnation in its own transaction; each
// later write is a transaction that does nothing if the incarnation is not the
// writer's, so the older daemon's next commit fails (kRefused).
//
// Disk full. A ballast file lies beside the database. When a write fails for
// lack of room the ballast is removed and the write tried once more;
// low_on_space() then says that the job must pause in good order.
//
// The WAL is copied back (checkpointed) only at thresholds, never by chance in
// the middle of a turn; readers must be short, since a pinned one keeps it
// growing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

struct JournalEntry {
  std::string kind;  // whose record it is: "ledger", "accounts", "job", ...
  std::string bytes;
};

struct JournalContent {
  std::vector<JournalEntry> snapshot;  // one entry a kind; empty at first
  std::vector<JournalEntry> records;   // after it, in order
};

struct JournalOptions {
  std::uint64_t ballast_bytes = 8ULL << 20;     // 0: none
  std::uint64_t snapshot_bytes = 4ULL << 20;    // of records before wants_snapshot()
  std::uint64_t checkpoint_bytes = 8ULL << 20;  // of WAL before it is copied back
  Incarnation first_incarnation{1};             // of a journal that is made
};

class Journal {
 public:
  // Opens or makes the journal and begins a new incarnation. `content` gets
  // what is in it. Errors: kUsage for a network filesystem (with the way out
  // named), kCorrupt for a file that is no journal or is damaged, kIo.
  [[nodiscard]] static Result<Journal> open(const std::string& path, JournalContent& content,
                                            JournalOptions options = {});
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  [[nodiscard]] Incarnation incarnation() const;

  // Buffers; nothing is durable before commit().
  void append(std::string_view kind, std::string_view bytes);
  [[nodiscard]] bool dirty() const;
  // Makes what was appended durable: one transaction, one row; nothing
  // appended is nothing done. After an error the daemon must end: the restart
  // replays. kRefused: another incarnation took over.
  [[nodiscard]] Status commit();

  // Enough was written since the last snapshot that a new one pays.
  [[nodiscard]] bool wants_snapshot() const;
  // Commits what is buffered, replaces the snapshot and deletes what it contains.
  [[nodiscard]] Status snapshot(const std::vector<JournalEntry>& sections);

  // The ballast was used: the disk is full. restore_ballast() fails until
  // there is room again.
  [[nodiscard]] bool low_on_space() const;
  [[nodiscard]] Status restore_ballast();

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads without writing and without keeping the job that may be using it from
// its work.
[[nodiscard]] Result<JournalContent> read_journal(const std::string& path);

}  // namespace antdt::shard_server
