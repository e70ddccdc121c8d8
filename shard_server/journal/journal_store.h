// Where a journal's bodies are kept: in a SQLite file (sqlite_store.h), or in etcd
// (store/etcd_journal.h). A store knows bytes and their ids; the journal (journal.h) knows what is
// in them and when a snapshot is due.
//
// Every store keeps these promises:
//   - put_turn and replace_snapshot are atomic, and durable once they return without an error.
//     After an error the change may or may not be there.
//   - Opening the store raises the incarnation first and reads afterwards. From then on every write
//     of an older incarnation fails with kRefused and changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

// A turn or a snapshot, as it is stored.
struct StoredBody {
  // of a turn: its own id; of a snapshot: that of the last turn that it contains
  std::uint64_t id = 0;
  std::uint64_t checksum = 0;
  std::string bytes;
};

struct StoredJournal {
  std::optional<StoredBody> snapshot;
  std::vector<StoredBody> turns;  // those after the snapshot, by id
};

class JournalStore {
 public:
  virtual ~JournalStore() = default;

  // "journal /run/state.db": what an error is about.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual Incarnation incarnation() const = 0;
  // Everything that is stored. To be called once, before the first write.
  [[nodiscard]] virtual Result<StoredJournal> read() = 0;

  // Errors: kRefused if another incarnation took over, kIo.
  [[nodiscard]] virtual Status put_turn(std::uint64_t id, std::uint64_t checksum,
                                        std::string_view bytes) = 0;
  // Replaces the snapshot and deletes the turns up to `through`, which it contains.
  [[nodiscard]] virtual Status replace_snapshot(std::uint64_t through, std::uint64_t checksum,
                                                std::string_view bytes) = 0;
  // Keeps a file of the run for job daemons on other hosts, where the store can.
  [[nodiscard]] virtual Status keep_file(const std::string& /*name*/, std::string_view /*bytes*/) {
    return {};
  }

  // Whether the right to write has to be won again. Asks nobody.
  [[nodiscard]] virtual bool has_lapsed() const { return false; }
  // Wins it again. kRefused if another incarnation has begun.
  [[nodiscard]] virtual Status renew() { return {}; }

  // Whether the room that was kept in reserve had to be used. restore_reserve() fails until there
  // is room again.
  [[nodiscard]] virtual bool low_on_space() const { return false; }
  [[nodiscard]] virtual Status restore_reserve() { return {}; }
};

}  // namespace antdt::shard_server
