#include "shard_server/journal/journal.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/os/fs.h"
#include "shard_server/archive.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {

template <class A>
void io(A& a, typename A::template Ref<JournalEntry> x) {
  a(x.kind, x.bytes);
}

namespace {

constexpr std::uint64_t kJournalFormat = 1;
// "AntJ" in the database's header.
constexpr std::uint64_t kApplicationId = 0x416e744a;
// The stored incarnation is one below the first one.
constexpr std::string_view kJournalSchema =
    "BEGIN IMMEDIATE;"
    "PRAGMA application_id=0x416e744a;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
    "CREATE TABLE turns(id INTEGER PRIMARY KEY, checksum INTEGER, body BLOB);"
    "CREATE TABLE snapshot(id INTEGER PRIMARY KEY CHECK(id=1), through INTEGER,"
    "                      checksum INTEGER, body BLOB);"
    "INSERT INTO meta VALUES('format',1),('incarnation',{});"
    "COMMIT";
constexpr const char* kInsertTurn =
    "INSERT INTO turns SELECT ?1,?2,?3 "
    "WHERE (SELECT value FROM meta WHERE key='incarnation')=?4";
constexpr const char* kReplaceSnapshot =
    "INSERT OR REPLACE INTO snapshot SELECT 1,?1,?2,?3 "
    "WHERE (SELECT value FROM meta WHERE key='incarnation')=?4";

std::uint64_t checksum_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Status read_entries(std::string_view body, std::string_view where,
                    std::vector<JournalEntry>& entries) {
  Reader in(body);
  while (in.ok() && !in.at_end()) in(entries.emplace_back());
  if (in.ok()) return {};
  return fail(ErrorKind::kCorrupt, "{} cannot be read ({} bytes)", where, body.size());
}

// Compares a body from a row with the checksum beside it.
Status check_body(std::string_view body, std::uint64_t checksum, std::string_view where) {
  if (checksum_of(body) == checksum) return {};
  return fail(ErrorKind::kCorrupt, "{} is damaged: its {} bytes do not have the checksum {:016x}",
              where, body.size(), checksum);
}

struct Found {
  JournalContent content;
  std::uint64_t last_turn = 0;
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t turn_bytes = 0;
};

// Reads everything within a read transaction of the caller.
Result<Found> read_all(Database& database) {
  Found found;
  ANTDT_TRY(Statement snapshot, database.prepare("SELECT through,checksum,body FROM snapshot"));
  for (;;) {
    ANTDT_TRY(const bool has_row, snapshot.next());
    if (!has_row) break;
    found.last_turn = snapshot.number(0);
    found.snapshot_bytes = snapshot.bytes(2).size();
    ANTDT_RETURN_IF_ERROR(check_body(snapshot.bytes(2), snapshot.number(1), "snapshot"));
    ANTDT_RETURN_IF_ERROR(read_entries(snapshot.bytes(2), "snapshot", found.content.snapshot));
  }
  ANTDT_TRY(Statement turns, database.prepare("SELECT id,checksum,body FROM turns ORDER BY id"));
  for (;;) {
    ANTDT_TRY(const bool has_row, turns.next());
    if (!has_row) break;
    const std::string where = fmt::format("turn {}", turns.number(0));
    if (turns.number(0) != ++found.last_turn) {
      return fail(ErrorKind::kCorrupt, "turn {} is missing", found.last_turn);
    }
    found.turn_bytes += turns.bytes(2).size();
    ANTDT_RETURN_IF_ERROR(check_body(turns.bytes(2), turns.number(1), where));
    ANTDT_RETURN_IF_ERROR(read_entries(turns.bytes(2), where, found.content.records));
  }
  return found;
}

Status check_identity(Database& database) {
  ANTDT_TRY(const std::uint64_t id, database.query_number("PRAGMA application_id"));
  if (id != kApplicationId) {
    return fail(ErrorKind::kCorrupt, "it is not a journal (application id {:08x})", id);
  }
  ANTDT_TRY(const std::uint64_t format,
            database.query_number("SELECT value FROM meta WHERE key='format'"));
  if (format == kJournalFormat) return {};
  return fail(ErrorKind::kCorrupt,
              "its format is {}, this build reads {}: use the release that "
              "wrote it",
              format, kJournalFormat);
}

Status refuse_network(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  ANTDT_TRY(const auto kind, network_filesystem(directory.empty() ? "." : directory));
  if (!kind) return {};
  return fail(ErrorKind::kUsage,
              "journal {} would lie on a network filesystem ({}), whose locks and syncs cannot be "
              "trusted: choose a directory on a local disk with --state-dir",
              path, *kind);
}

// Adds to an error the file that it is about.
template <class T>
Result<T> about_journal(const std::string& path, Result<T> result) {
  if (result) return result;
  const char* advice =
      result.error().kind == ErrorKind::kCorrupt
          ? ". antdt run --resume RUN --from-checkpoint keeps it aside and goes on without it"
          : "";
  return fail(result.error().kind, "journal {}: {}{}", path, result.error().message, advice);
}

}  // namespace

struct Journal::State {
  std::string path;
  JournalOptions options;
  Database database;
  std::optional<Statement> insert_turn;
  Incarnation incarnation;
  std::uint64_t last_turn = 0;
  std::uint64_t turn_bytes = 0;  // bytes of turns since the snapshot
  std::uint64_t snapshot_bytes = 0;
  Writer pending;
  bool dirty = false;
  bool low_on_space = false;
  bool ran_full = false;  // the last write failed because the disk was full

  [[nodiscard]] std::string ballast_path() const { return path + ".ballast"; }

  Result<JournalContent> load();
  Status create_if_new();
  Status insert_pending(std::string_view body);
  Status replace_snapshot(std::string_view body);
  Status make_ballast() const;
  Status copy_back();
  tl::unexpected<Error> taken_over() const;
  // Runs `write`, and if there was no room, removes the ballast and runs it once more.
  template <class Write>
  Status with_ballast(Write write);
};

// ------------------------------------------------------------------- opening

Status Journal::State::create_if_new() {
  ANTDT_TRY(const std::uint64_t tables,
            database.query_number("SELECT count(*) FROM sqlite_master"));
  ANTDT_TRY(const std::uint64_t id, database.query_number("PRAGMA application_id"));
  if (tables > 0 || id != 0) return {};
  ANTDT_RETURN_IF_ERROR(
      database.execute(fmt::format(kJournalSchema, options.first_incarnation.value - 1).c_str()));
  return sync_directory(std::filesystem::absolute(path).parent_path().string());
}

Result<JournalContent> Journal::State::load() {
  // Debian builds SQLite so that it overwrites deleted rows. With that a snapshot would write all
  // its turns once more, so it is switched off.
  ANTDT_RETURN_IF_ERROR(database.execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF"));
  ANTDT_RETURN_IF_ERROR(create_if_new());
  ANTDT_RETURN_IF_ERROR(check_identity(database));
  // This comes before reading: from here on the older incarnation writes nothing.
  ANTDT_RETURN_IF_ERROR(database.execute("UPDATE meta SET value=value+1 WHERE key='incarnation'"));
  ANTDT_TRY(incarnation.value,
            database.query_number("SELECT value FROM meta WHERE key='incarnation'"));
  ANTDT_TRY(Found found, read_all(database));
  last_turn = found.last_turn;
  turn_bytes = found.turn_bytes;
  snapshot_bytes = found.snapshot_bytes;
  ANTDT_TRY(insert_turn, database.prepare(kInsertTurn));
  return std::move(found.content);
}

Result<Journal> Journal::open(const std::string& path, JournalContent& content,
                              JournalOptions options) {
  ANTDT_RETURN_IF_ERROR(refuse_network(path));
  auto database = Database::open(path, Database::Mode::kReadWriteCreate);
  if (!database) return about_journal<Journal>(path, tl::unexpected<Error>(database.error()));
  auto state = std::make_unique<State>(
      State{path, options, std::move(*database), {}, {}, 0, 0, 0, {}, false, false, false});
  ANTDT_TRY(content, about_journal(path, state->load()));
  // If there is no room for the ballast, the job begins all the same, and pauses at once.
  if (!state->make_ballast()) state->low_on_space = true;
  return Journal(std::move(state));
}

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Incarnation Journal::incarnation() const { return state_->incarnation; }

Result<JournalContent> read_journal(const std::string& path) {
  ANTDT_RETURN_IF_ERROR(refuse_network(path));
  const auto read = [&path]() -> Result<JournalContent> {
    ANTDT_TRY(Database database, Database::open(path, Database::Mode::kReadOnly));
    ANTDT_RETURN_IF_ERROR(database.execute("BEGIN"));
    ANTDT_RETURN_IF_ERROR(check_identity(database));
    ANTDT_TRY(Found found, read_all(database));
    return std::move(found.content);
  };
  return about_journal(path, read());
}

// ------------------------------------------------------------------- writing

void Journal::append(std::string_view kind, std::string_view bytes) {
  state_->pending(kind, bytes);
  state_->dirty = true;
}

bool Journal::dirty() const { return state_->dirty; }

tl::unexpected<Error> Journal::State::taken_over() const {
  return fail(ErrorKind::kRefused,
              "another job daemon took over this run (this one is incarnation {}): this one must "
              "end",
              incarnation);
}

Status Journal::State::insert_pending(std::string_view body) {
  const auto rows = insert_turn->bind(1, last_turn + 1)
                        .bind(2, checksum_of(body))
                        .bind(3, body)
                        .bind(4, incarnation.value)
                        .run();
  ran_full = !rows && database.is_full();
  if (!rows) return tl::unexpected<Error>(rows.error());
  if (*rows != 1) return taken_over();
  return {};
}

template <class Write>
Status Journal::State::with_ballast(Write write) {
  Status written = write();
  if (written || !ran_full) return written;
  low_on_space = true;
  if (::unlink(ballast_path().c_str()) != 0) return written;
  return write();
}

Status Journal::commit() {
  State& s = *state_;
  if (!s.dirty) return {};
  const std::string body = s.pending.take();
  s.pending = {};
  s.dirty = false;
  const auto write = [&s, &body] { return s.insert_pending(body); };
  if (auto done = s.with_ballast(write); !done) {
    return about_journal<void>(s.path, std::move(done));
  }
  ++s.last_turn;
  s.turn_bytes += body.size();
  if (s.database.wal_bytes() < s.options.checkpoint_bytes) return {};
  return about_journal(s.path, s.copy_back());
}

// A reader may keep a part of the WAL in place; then the copy is tried again after the next turn.
Status Journal::State::copy_back() {
  return with_ballast([this] {
    Status copied = database.execute("PRAGMA wal_checkpoint(PASSIVE)");
    ran_full = !copied && database.is_full();
    return copied;
  });
}

bool Journal::wants_snapshot() const {
  // Snapshots are not written more often than they are worth: after a large one, as many bytes of
  // records must have been written.
  const State& s = *state_;
  return s.turn_bytes >= s.options.snapshot_bytes && s.turn_bytes >= s.snapshot_bytes;
}

Status Journal::State::replace_snapshot(std::string_view body) {
  ANTDT_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  const auto write = [&]() -> Status {
    ANTDT_TRY(Statement replace, database.prepare(kReplaceSnapshot));
    ANTDT_TRY(const int rows, replace.bind(1, last_turn)
                                  .bind(2, checksum_of(body))
                                  .bind(3, body)
                                  .bind(4, incarnation.value)
                                  .run());
    if (rows != 1) return taken_over();
    ANTDT_RETURN_IF_ERROR(database.execute("DELETE FROM turns"));
    return database.execute("COMMIT");
  };
  Status written = write();
  ran_full = !written && database.is_full();
  // SQLite may have rolled back by itself; then this finds nothing to do.
  if (!written) static_cast<void>(database.execute("ROLLBACK").has_value());
  return written;
}

Status Journal::snapshot(const std::vector<JournalEntry>& sections) {
  ANTDT_RETURN_IF_ERROR(commit());
  State& s = *state_;
  Writer out;
  for (const JournalEntry& section : sections) out(section);
  const std::string body = out.take();
  const auto write = [&s, &body] { return s.replace_snapshot(body); };
  if (auto done = s.with_ballast(write); !done) return about_journal<void>(s.path, std::move(done));
  s.turn_bytes = 0;
  s.snapshot_bytes = body.size();
  return about_journal(s.path, s.copy_back());
}

// ------------------------------------------------------------------- ballast

Status Journal::State::make_ballast() const {
  if (options.ballast_bytes == 0) return {};
  const std::string file = ballast_path();
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "open " + file);
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(options.ballast_bytes));
  ::close(fd);
  if (error == 0) return {};
  ::unlink(file.c_str());
  return fail_errno(ErrorKind::kIo, error,
                    fmt::format("reserve {} bytes in {}", options.ballast_bytes, file));
}

bool Journal::low_on_space() const { return state_->low_on_space; }

Status Journal::restore_ballast() {
  ANTDT_RETURN_IF_ERROR(state_->make_ballast());
  state_->low_on_space = false;
  return {};
}

}  // namespace antdt::shard_server
