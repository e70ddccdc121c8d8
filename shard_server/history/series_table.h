// The writer's side of the series (series.h). Inside the library only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "shard_server/history/series.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {

[[nodiscard]] std::string encode_moment(const Moment& moment);
[[nodiscard]] Result<Moment> decode_moment(std::string_view bytes);

// Works in a database that History has opened, inside its transactions. If a transaction is rolled
// back, `width_` and `rows_` must be read again: see reload().
class SeriesTable {
 public:
  // Makes the table in a database that an older release wrote.
  [[nodiscard]] static Status create(Database& db);
  [[nodiscard]] static Result<SeriesTable> open(Database& db);

  [[nodiscard]] Status put(const Moment& moment);
  [[nodiscard]] Status reload();

 private:
  SeriesTable(Statement width, Statement rows, Statement all, Statement find, Statement put,
              Statement clear, Statement set_width)
      : read_width_(std::move(width)),
        count_(std::move(rows)),
        all_(std::move(all)),
        find_(std::move(find)),
        put_(std::move(put)),
        clear_(std::move(clear)),
        set_width_(std::move(set_width)) {}
  [[nodiscard]] Status write(std::uint64_t bucket, const Moment& moment);
  [[nodiscard]] Status halve();

  Statement read_width_, count_, all_, find_, put_, clear_, set_width_;
  std::uint64_t width_ = 1;
  std::uint64_t rows_ = 0;
  // the most workers that any written row had, since they may report one by one
  std::size_t workers_ = 0;
};

}  // namespace antdt::shard_server
