// The job daemon's durable memory: a snapshot and the records after it, in order.
//
// On disk, one SQLite database in WAL mode:
//
//   meta(key TEXT PRIMARY KEY, value INTEGER)   'format' = 1, 'incarnation'
//   turns(id INTEGER PRIMARY KEY, checksum INTEGER, body BLOB)
//   snapshot(id = 1, through INTEGER, checksum INTEGER, body BLOB)
//
// A turn is everything that one commit() made durable. A body is a sequence of entries: length and
// bytes of the kind, length and bytes of the record (lengths as LEB128). A checksum is XXH3-64 of
// the body. `through` is the last turn that the snapshot contains; turns up to it are deleted in
// the transaction that writes the snapshot. Ids rise by one without gaps.
//
// Crashes. synchronous=FULL: the WAL is synced before commit() returns. A turn is a transaction, so
// it is in the journal whole or not at all. If commit() did not return, the turn may or may not be
// there, and nothing that depends on it was sent. A snapshot replaces the old one in the
// transaction that deletes its turns, so at any moment the snapshot and the turns are the whole
// history. If the WAL was cut short, SQLite cuts it back to its last whole transaction; after a
// kill that loses nothing, because everything that was acknowledged had been synced. Damage
// elsewhere (a bad disk, a half copied file) is found by SQLite, by a checksum or as a gap in the
// ids. It is an error, never a guess.
//
// Two job daemons. open() raises the incarnation in its own transaction. Each later write is a
// transaction that does nothing if the incarnation is not the writer's, so the older daemon's next
// commit fails (kRefused).
//
// Disk full. A ballast file lies beside the database. When a write fails for lack of room, the
// ballast is removed and the write is tried once more; low_on_space() then says that the job must
// pause in good order.
//
// The WAL is copied back (checkpointed) only at thresholds, never by chance in the middle of a
// turn. Readers must be short, since a reader that stays makes the WAL grow.
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
  std::string kind;  // the owner of the record: "ledger", "accounts", "job", ...
  std::string bytes;
};

struct JournalContent {
  std::vector<JournalEntry> snapshot;  // one entry for each kind; empty at first
  std::vector<JournalEntry> records;   // the records after the snapshot, in order
};

struct JournalOptions {
  std::uint64_t ballast_bytes = 8ULL << 20;  // 0: none
  // bytes of records after which wants_snapshot() is true
  std::uint64_t snapshot_bytes = 4ULL << 20;
  std::uint64_t checkpoint_bytes = 8ULL << 20;  // bytes of WAL after which it is copied back
  Incarnation first_incarnation{1};             // incarnation with which a new journal begins
};

class Journal {
 public:
  // Opens or makes the journal and begins a new incarnation. Its content is written to `content`.
  // Errors: kUsage for a network filesystem (the message names the way out), kCorrupt for a file
  // that is not a journal or is damaged, kIo.
  [[nodiscard]] static Result<Journal> open(const std::string& path, JournalContent& content,
                                            JournalOptions options = {});
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  [[nodiscard]] Incarnation incarnation() const;

  // Buffers; nothing is durable before commit().
  void append(std::string_view kind, std::string_view bytes);
  [[nodiscard]] bool dirty() const;
  // Makes what was appended durable: one transaction, one row. Does nothing if nothing was
  // appended. After an error the daemon must end, and the restart replays the journal. kRefused:
  // another incarnation took over.
  [[nodiscard]] Status commit();

  // Whether enough was written since the last snapshot to make a new one worth its cost.
  [[nodiscard]] bool wants_snapshot() const;
  // Commits the buffer, replaces the snapshot and deletes the turns that it contains.
  [[nodiscard]] Status snapshot(const std::vector<JournalEntry>& sections);

  // Whether the disk is full and the ballast was used. restore_ballast() fails until there is room
  // again.
  [[nodiscard]] bool low_on_space() const;
  [[nodiscard]] Status restore_ballast();

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads the journal without writing, and without blocking a job that uses it.
[[nodiscard]] Result<JournalContent> read_journal(const std::string& path);

}  // namespace antdt::shard_server
