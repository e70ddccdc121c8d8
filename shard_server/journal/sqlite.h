// The part of SQLite that the journal needs, with errors as values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace antdt::shard_server {

class Database;

// A prepared statement; must not outlive its database.
class Statement {
 public:
  Statement& bind(int index, std::uint64_t value);
  // The bytes must stay valid until run().
  Statement& bind(int index, std::string_view bytes);

  // Runs it, expecting no rows; returns how many rows it changed.
  [[nodiscard]] Result<int> run();
  // Steps to the next row: false at the end, which also resets it.
  [[nodiscard]] Result<bool> next();
  [[nodiscard]] std::uint64_t number(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;  // valid until the next next()

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Mode { kReadOnly, kReadWriteCreate };
  [[nodiscard]] static Result<Database> open(const std::string& path, Mode mode);

  // One or more statements without results.
  [[nodiscard]] Status execute(const char* sql);
  [[nodiscard]] Result<Statement> prepare(const char* sql);
  // The first value of the first row, or 0 if there is no row.
  [[nodiscard]] Result<std::uint64_t> query_number(const char* sql);

  // Whether the last call failed for lack of room.
  [[nodiscard]] bool is_full() const;
  // Size of the write-ahead log after the last commit.
  [[nodiscard]] std::uint64_t wal_bytes() const { return *wal_pages_ * kPageBytes; }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(sqlite3* handle);
  std::unique_ptr<sqlite3, Close> handle_;
  // on the heap, so that it stays in place when the database is moved
  std::unique_ptr<std::uint64_t> wal_pages_;
};

}  // namespace antdt::shard_server
