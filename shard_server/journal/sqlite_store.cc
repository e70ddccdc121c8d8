#include "shard_server/journal/sqlite_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/os/fs.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {
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

// Reads everything within a read transaction of the caller.
Result<StoredJournal> read_all(Database& database) {
  StoredJournal found;
  ANTDT_TRY(Statement snapshot, database.prepare("SELECT through,checksum,body FROM snapshot"));
  for (;;) {
    ANTDT_TRY(const bool has_row, snapshot.next());
    if (!has_row) break;
    found.snapshot = {snapshot.number(0), snapshot.number(1), std::string(snapshot.bytes(2))};
  }
  ANTDT_TRY(Statement turns, database.prepare("SELECT id,checksum,body FROM turns ORDER BY id"));
  for (;;) {
    ANTDT_TRY(const bool has_row, turns.next());
    if (!has_row) break;
    found.turns.push_back({turns.number(0), turns.number(1), std::string(turns.bytes(2))});
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

std::string name_of(const std::string& path) { return "journal " + path; }

class SqliteStore final : public JournalStore {
 public:
  SqliteStore(std::string path, const SqliteOptions& options, Database database)
      : path_(std::move(path)),
        name_(name_of(path_)),
        options_(options),
        database_(std::move(database)) {}

  Status begin_incarnation();
  void keep_reserve();

  const std::string& name() const override { return name_; }
  Incarnation incarnation() const override { return incarnation_; }
  Result<StoredJournal> read() override { return read_all(database_); }
  Status put_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes) override;
  Status replace_snapshot(std::uint64_t through, std::uint64_t checksum,
                          std::string_view bytes) override;
  bool low_on_space() const override { return low_on_space_; }
  Status restore_reserve() override;

 private:
  [[nodiscard]] std::string ballast_path() const { return path_ + ".ballast"; }
  Status create_if_new();
  Status insert_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes);
  Status write_snapshot(std::uint64_t through, std::uint64_t checksum, std::string_view bytes);
  Status make_ballast() const;
  Status copy_back();
  tl::unexpected<Error> taken_over() const;
  // Runs `write`, and if there was no room, removes the ballast and runs it once more.
  template <class Write>
  Status with_ballast(Write write);

  std::string path_, name_;
  SqliteOptions options_;
  Database database_;
  std::optional<Statement> insert_turn_;
  Incarnation incarnation_;
  bool low_on_space_ = false;
  bool ran_full_ = false;  // the last write failed because the disk was full
};

// ------------------------------------------------------------------- opening

Status SqliteStore::create_if_new() {
  ANTDT_TRY(const std::uint64_t tables,
            database_.query_number("SELECT count(*) FROM sqlite_master"));
  ANTDT_TRY(const std::uint64_t id, database_.query_number("PRAGMA application_id"));
  if (tables > 0 || id != 0) return {};
  ANTDT_RETURN_IF_ERROR(
      database_.execute(fmt::format(kJournalSchema, options_.first_incarnation.value - 1).c_str()));
  return sync_directory(std::filesystem::absolute(path_).parent_path().string());
}

Status SqliteStore::begin_incarnation() {
  // Debian builds SQLite so that it overwrites deleted rows. With that a snapshot would write all
  // its turns once more, so it is switched off.
  ANTDT_RETURN_IF_ERROR(database_.execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF"));
  ANTDT_RETURN_IF_ERROR(create_if_new());
  ANTDT_RETURN_IF_ERROR(check_identity(database_));
  ANTDT_RETURN_IF_ERROR(with_ballast([this] {
    Status counted = database_.execute("UPDATE meta SET value=value+1 WHERE key='incarnation'");
    ran_full_ = !counted && database_.is_full();
    return counted;
  }));
  ANTDT_TRY(incarnation_.value,
            database_.query_number("SELECT value FROM meta WHERE key='incarnation'"));
  ANTDT_TRY(insert_turn_, database_.prepare(kInsertTurn));
  return {};
}

// If there is no room for the ballast, the job begins all the same, and pauses at once.
void SqliteStore::keep_reserve() {
  if (!make_ballast()) low_on_space_ = true;
}

// ------------------------------------------------------------------- writing

tl::unexpected<Error> SqliteStore::taken_over() const {
  return fail(ErrorKind::kRefused,
              "another job daemon took over this run (this one is incarnation {}): this one must "
              "end",
              incarnation_);
}

template <class Write>
Status SqliteStore::with_ballast(Write write) {
  Status written = write();
  if (written || !ran_full_) return written;
  low_on_space_ = true;
  if (::unlink(ballast_path().c_str()) != 0) return written;
  return write();
}

Status SqliteStore::insert_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes) {
  const auto rows =
      insert_turn_->bind(1, id).bind(2, checksum).bind(3, bytes).bind(4, incarnation_.value).run();
  ran_full_ = !rows && database_.is_full();
  if (!rows) return tl::unexpected<Error>(rows.error());
  if (*rows != 1) return taken_over();
  return {};
}

Status SqliteStore::put_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes) {
  ANTDT_RETURN_IF_ERROR(
      with_ballast([this, id, checksum, bytes] { return insert_turn(id, checksum, bytes); }));
  return database_.wal_bytes() < options_.checkpoint_bytes ? Status() : copy_back();
}

// A reader may keep a part of the WAL in place; then the copy is tried again after the next turn.
Status SqliteStore::copy_back() {
  return with_ballast([this] {
    Status copied = database_.execute("PRAGMA wal_checkpoint(PASSIVE)");
    ran_full_ = !copied && database_.is_full();
    return copied;
  });
}

Status SqliteStore::write_snapshot(std::uint64_t through, std::uint64_t checksum,
                                   std::string_view bytes) {
  ANTDT_RETURN_IF_ERROR(database_.execute("BEGIN IMMEDIATE"));
  const auto write = [&]() -> Status {
    ANTDT_TRY(Statement replace, database_.prepare(kReplaceSnapshot));
    ANTDT_TRY(const int rows, replace.bind(1, through)
                                  .bind(2, checksum)
                                  .bind(3, bytes)
                                  .bind(4, incarnation_.value)
                                  .run());
    if (rows != 1) return taken_over();
    ANTDT_RETURN_IF_ERROR(database_.execute("DELETE FROM turns"));
    return database_.execute("COMMIT");
  };
  Status written = write();
  ran_full_ = !written && database_.is_full();
  // SQLite may have rolled back by itself; then this finds nothing to do.
  if (!written) static_cast<void>(database_.execute("ROLLBACK").has_value());
  return written;
}

Status SqliteStore::replace_snapshot(std::uint64_t through, std::uint64_t checksum,
                                     std::string_view bytes) {
  ANTDT_RETURN_IF_ERROR(with_ballast(
      [this, through, checksum, bytes] { return write_snapshot(through, checksum, bytes); }));
  return copy_back();
}

// ------------------------------------------------------------------- ballast

Status SqliteStore::make_ballast() const {
  if (options_.ballast_bytes == 0) return {};
  const std::string file = ballast_path();
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "open " + file);
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(options_.ballast_bytes));
  ::close(fd);
  if (error == 0) return {};
  ::unlink(file.c_str());
  return fail_errno(ErrorKind::kIo, error,
                    fmt::format("reserve {} bytes in {}", options_.ballast_bytes, file));
}

Status SqliteStore::restore_reserve() {
  ANTDT_RETURN_IF_ERROR(make_ballast());
  low_on_space_ = false;
  return {};
}

// Adds to an error the file that it is about.
template <class T>
Result<T> about(const std::string& path, Result<T> result) {
  if (result) return result;
  return fail(result.error().kind, "{}: {}", name_of(path), result.error().message);
}

}  // namespace

Result<std::unique_ptr<JournalStore>> open_sqlite_store(const std::string& path,
                                                        const SqliteOptions& options) {
  ANTDT_RETURN_IF_ERROR(refuse_network(path));
  ANTDT_TRY(Database database, about(path, Database::open(path, Database::Mode::kReadWriteCreate)));
  auto store = std::make_unique<SqliteStore>(path, options, std::move(database));
  ANTDT_RETURN_IF_ERROR(about(path, store->begin_incarnation()));
  store->keep_reserve();
  return store;
}

Result<StoredJournal> read_sqlite_store(const std::string& path) {
  ANTDT_RETURN_IF_ERROR(refuse_network(path));
  const auto read = [&path]() -> Result<StoredJournal> {
    ANTDT_TRY(Database database, Database::open(path, Database::Mode::kReadOnly));
    ANTDT_RETURN_IF_ERROR(database.execute("BEGIN"));
    ANTDT_RETURN_IF_ERROR(check_identity(database));
    return read_all(database);
  };
  return about(path, read());
}

}  // namespace antdt::shard_server
