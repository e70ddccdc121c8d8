#include "shard_server/journal/journal.h"

#include <xxhash.h>

#include <utility>

#include "shard_server/archive.h"
#include "shard_server/journal/sqlite_store.h"

namespace antdt::shard_server {

template <class A>
void io(A& a, typename A::template Ref<JournalEntry> x) {
  a(x.kind, x.bytes);
}

namespace {

std::uint64_t checksum_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// Compares the bytes with the checksum beside them, and reads them.
Status read_entries(const StoredBody& body, std::string_view what,
                    std::vector<JournalEntry>& entries) {
  if (checksum_of(body.bytes) != body.checksum) {
    return fail(ErrorKind::kCorrupt, "{} is damaged: its {} bytes do not have the checksum {:016x}",
                what, body.bytes.size(), body.checksum);
  }
  Reader in(body.bytes);
  while (in.ok() && !in.at_end()) in(entries.emplace_back());
  if (in.ok()) return {};
  return fail(ErrorKind::kCorrupt, "{} cannot be read ({} bytes)", what, body.bytes.size());
}

Result<JournalContent> read_bodies(const StoredJournal& found) {
  JournalContent content;
  std::uint64_t last_turn = 0;
  if (found.snapshot) {
    last_turn = found.snapshot->id;
    ANTDT_RETURN_IF_ERROR(read_entries(*found.snapshot, "snapshot", content.snapshot));
  }
  for (const StoredBody& turn : found.turns) {
    if (turn.id != ++last_turn) {
      return fail(ErrorKind::kCorrupt, "turn {} is missing", last_turn);
    }
    ANTDT_RETURN_IF_ERROR(read_entries(turn, fmt::format("turn {}", turn.id), content.records));
  }
  return content;
}

}  // namespace

Result<JournalContent> content_of(const StoredJournal& found, const std::string& name) {
  auto content = read_bodies(found);
  if (content) return content;
  return fail(content.error().kind,
              "{}: {}. antdt run --resume RUN --from-checkpoint keeps it aside and goes on without "
              "it",
              name, content.error().message);
}

struct Journal::State {
  std::unique_ptr<JournalStore> store;
  JournalOptions options;
  std::uint64_t last_turn = 0;
  std::uint64_t turn_bytes = 0;  // bytes of turns since the snapshot
  std::uint64_t snapshot_bytes = 0;
  Writer pending;
  bool dirty = false;
};

Result<Journal> Journal::open(std::unique_ptr<JournalStore> store, JournalContent& content,
                              JournalOptions options) {
  ANTDT_TRY(const StoredJournal found, store->read());
  auto state = std::make_unique<State>();
  if (found.snapshot) {
    state->last_turn = found.snapshot->id;
    state->snapshot_bytes = found.snapshot->bytes.size();
  }
  for (const StoredBody& turn : found.turns) {
    state->last_turn = turn.id;
    state->turn_bytes += turn.bytes.size();
  }
  ANTDT_TRY(content, content_of(found, store->name()));
  state->store = std::move(store);
  state->options = options;
  return Journal(std::move(state));
}

Result<Journal> Journal::open(const std::string& path, JournalContent& content,
                              JournalOptions options) {
  ANTDT_TRY(auto store, open_sqlite_store(path, {}));
  return open(std::move(store), content, options);
}

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Incarnation Journal::incarnation() const { return state_->store->incarnation(); }
const JournalStore& Journal::store() const { return *state_->store; }
Status Journal::restore_reserve() { return state_->store->restore_reserve(); }

Result<JournalContent> read_journal(const std::string& path) {
  ANTDT_TRY(const StoredJournal found, read_sqlite_store(path));
  return content_of(found, "journal " + path);
}

void Journal::append(std::string_view kind, std::string_view bytes) {
  state_->pending(kind, bytes);
  state_->dirty = true;
}

bool Journal::dirty() const { return state_->dirty || state_->store->has_lapsed(); }

namespace {

Status about_store(const JournalStore& store, const Status& written) {
  if (written) return {};
  return fail(written.error().kind, "{}: {}", store.name(), written.error().message);
}

}  // namespace

Status Journal::keep_file(const std::string& name, std::string_view bytes) {
  return about_store(*state_->store, state_->store->keep_file(name, bytes));
}

Status Journal::commit() {
  State& s = *state_;
  if (!dirty()) return {};
  if (!s.dirty) return about_store(*s.store, s.store->renew());
  const std::string body = s.pending.take();
  s.pending = {};
  s.dirty = false;
  ++s.last_turn;
  s.turn_bytes += body.size();
  return about_store(*s.store, s.store->put_turn(s.last_turn, checksum_of(body), body));
}

bool Journal::wants_snapshot() const {
  // Snapshots are not written more often than they are worth: after a large one, as many bytes of
  // records must have been written.
  const State& s = *state_;
  return s.turn_bytes >= s.options.snapshot_bytes && s.turn_bytes >= s.snapshot_bytes;
}

Status Journal::snapshot(const std::vector<JournalEntry>& sections) {
  ANTDT_RETURN_IF_ERROR(commit());
  State& s = *state_;
  Writer out;
  for (const JournalEntry& section : sections) out(section);
  const std::string body = out.take();
  s.turn_bytes = 0;
  s.snapshot_bytes = body.size();
  return about_store(*s.store, s.store->replace_snapshot(s.last_turn, checksum_of(body), body));
}

}  // namespace antdt::shard_server
