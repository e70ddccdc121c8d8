// The job daemon's durable memory: a snapshot and the records after it, in order.
//
// A turn is everything that one commit() made durable. A body is a sequence of entries: length and
// bytes of the kind, length and bytes of the record (lengths as LEB128), with a checksum, XXH3-64.
// Turns have ids that rise by one without gaps. A snapshot contains all turns up to one of them.
//
// Where the bodies are kept, a store says (journal_store.h): in a SQLite file, or in etcd. A turn
// is in the store whole or not at all. If commit() did not return, the turn may or may not be
// there, and nothing that depends on it was sent. Snapshot and turns together are the whole history
// at any moment. Damage is found by a checksum or as a gap in the ids. It is an error, never a
// guess.
//
// Opening a journal begins a new incarnation. From then on every commit of an older one fails
// (kRefused).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "shard_server/journal/journal_store.h"

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
  // bytes of records after which wants_snapshot() is true
  std::uint64_t snapshot_bytes = 4ULL << 20;
};

class Journal {
 public:
  // Reads the content of a store that was opened to write. kCorrupt for content that is damaged,
  // and the errors of the store.
  [[nodiscard]] static Result<Journal> open(std::unique_ptr<JournalStore> store,
                                            JournalContent& content, JournalOptions options = {});
  // The same for the SQLite file `path`, with default options of the store.
  [[nodiscard]] static Result<Journal> open(const std::string& path, JournalContent& content,
                                            JournalOptions options = {});
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  [[nodiscard]] Incarnation incarnation() const;

  // Buffers; nothing is durable before commit().
  void append(std::string_view kind, std::string_view bytes);
  // Whether commit() has something to do: something was appended, or the store has lapsed.
  [[nodiscard]] bool dirty() const;
  // Makes what was appended durable: one transaction, one body. After an error the daemon must end,
  // and the restart replays the journal. kRefused: another incarnation took over.
  [[nodiscard]] Status commit();

  // Whether enough was written since the last snapshot to make a new one worth its cost.
  [[nodiscard]] bool wants_snapshot() const;
  // Commits the buffer, replaces the snapshot and deletes the turns that it contains.
  [[nodiscard]] Status snapshot(const std::vector<JournalEntry>& sections);

  [[nodiscard]] const JournalStore& store() const;
  // The same as the store's.
  [[nodiscard]] Status restore_reserve();
  [[nodiscard]] Status keep_file(const std::string& name, std::string_view bytes);

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The content of `found`, which `name` describes to people. kCorrupt.
[[nodiscard]] Result<JournalContent> content_of(const StoredJournal& found,
                                                const std::string& name);
// Reads the journal in the SQLite file `path` without writing, and without blocking a job that uses
// it.
[[nodiscard]] Result<JournalContent> read_journal(const std::string& path);

}  // namespace antdt::shard_server
