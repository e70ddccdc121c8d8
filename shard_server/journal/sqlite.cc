#include "shard_server/journal/sqlite.h"

#include <sqlite3.h>

#include <cerrno>

namespace antdt::shard_server {
namespace {

tl::unexpected<Error> failure(sqlite3* handle, std::string_view what) {
  const int code = sqlite3_errcode(handle);
  const bool corrupt = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  const std::string message = sqlite3_errmsg(handle);
  const std::string of_code = sqlite3_errstr(sqlite3_extended_errcode(handle));
  return fail(corrupt ? ErrorKind::kCorrupt : ErrorKind::kIo, "{}: {}{}", what, message,
              of_code == message ? "" : fmt::format(" ({})", of_code));
}

}  // namespace

// ----------------------------------------------------------------- statement

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(int index, std::uint64_t value) {
  sqlite3_bind_int64(statement_.get(), index, static_cast<sqlite3_int64>(value));
  return *this;
}

Statement& Statement::bind(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Result<int> Statement::run() {
  sqlite3* handle = sqlite3_db_handle(statement_.get());
  const int code = sqlite3_step(statement_.get());
  const int changes = sqlite3_changes(handle);
  if (code != SQLITE_DONE) {
    auto error = failure(handle, sqlite3_sql(statement_.get()));
    sqlite3_reset(statement_.get());
    return error;
  }
  sqlite3_reset(statement_.get());
  return changes;
}

Result<bool> Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    auto error = failure(sqlite3_db_handle(statement_.get()), sqlite3_sql(statement_.get()));
    sqlite3_reset(statement_.get());
    return error;
  }
  sqlite3_reset(statement_.get());
  return false;
}

std::uint64_t Statement::number(int column) const {
  return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column));
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string_view()
                         : std::string_view(data, static_cast<std::size_t>(size));
}

// ------------------------------------------------------------------ database

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Database::Database(sqlite3* handle)
    : handle_(handle), wal_pages_(std::make_unique<std::uint64_t>(0)) {
  // Notes the size of the WAL. This hook replaces SQLite's own checkpoints; PRAGMA
  // wal_autocheckpoint would remove it.
  sqlite3_wal_hook(
      handle,
      [](void* pages, sqlite3*, const char*, int in_wal) {
        *static_cast<std::uint64_t*>(pages) = static_cast<std::uint64_t>(in_wal);
        return SQLITE_OK;
      },
      wal_pages_.get());
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  const int flags =
      mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (handle == nullptr) return fail(ErrorKind::kIo, "open {}: out of memory", path);
  Database database(handle);
  if (code != SQLITE_OK) return failure(handle, fmt::format("open {}", path));
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 5000);
  return database;
}

Status Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(handle_.get(), sql);
  }
  return {};
}

Result<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return failure(handle_.get(), sql);
  return Statement(statement);
}

Result<std::uint64_t> Database::query_number(const char* sql) {
  ANTDT_TRY(Statement statement, prepare(sql));
  ANTDT_TRY(const bool has_row, statement.next());
  return has_row ? statement.number(0) : 0;
}

bool Database::is_full() const {
  if (sqlite3_errcode(handle_.get()) == SQLITE_FULL) return true;
  const int cause = sqlite3_system_errno(handle_.get());
  return sqlite3_errcode(handle_.get()) == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT);
}

}  // namespace antdt::shard_server
