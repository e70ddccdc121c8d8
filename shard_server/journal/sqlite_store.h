// The journal's bodies in one SQLite database in WAL mode:
//
//   meta(key TEXT PRIMARY KEY, value INTEGER)   'format' = 1, 'incarnation'
//   turns(id INTEGER PRIMARY KEY, checksum INTEGER, body BLOB)
//   snapshot(id = 1, through INTEGER, checksum INTEGER, body BLOB)
//
// Crashes. synchronous=FULL: the WAL is synced before put_turn() returns. A turn is a transaction,
// and a snapshot replaces the old one in the transaction that deletes its turns. If the WAL was cut
// short, SQLite cuts it back to its last whole transaction; after a kill that loses nothing,
// because everything that was acknowledged had been synced. Damage elsewhere (a bad disk, a half
// copied file) is found by SQLite or by the journal. It is an error, never a guess.
//
// Two job daemons. open() raises the incarnation in its own transaction. Each later write is a
// transaction that does nothing if the incarnation is not the writer's.
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

#include "shard_server/journal/journal_store.h"

namespace antdt::shard_server {

struct SqliteOptions {
  std::uint64_t ballast_bytes = 8ULL << 20;     // 0: none
  std::uint64_t checkpoint_bytes = 8ULL << 20;  // bytes of WAL after which it is copied back
  Incarnation first_incarnation{1};             // incarnation with which a new journal begins
};

// Opens or makes the database and begins a new incarnation. Errors: kUsage for a network filesystem
// (the message names the way out), kCorrupt for a file that is not a journal or is damaged, kIo.
[[nodiscard]] Result<std::unique_ptr<JournalStore>> open_sqlite_store(const std::string& path,
                                                                      const SqliteOptions& options);

// Reads what is stored without writing, and without blocking a job that uses it.
[[nodiscard]] Result<StoredJournal> read_sqlite_store(const std::string& path);

}  // namespace antdt::shard_server
