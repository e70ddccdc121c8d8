#include "shard_server/history/series.h"

#include "shard_server/history/history_codec.h"
#include "shard_server/history/series_table.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {
namespace {

Result<Series> read_from(const std::string& path) {
  ANTDT_TRY(Database db, Database::open(path, Database::Mode::kReadOnly));
  ANTDT_TRY(const std::uint64_t id, db.query_number("PRAGMA application_id"));
  if (id != kHistoryApplicationId) return fail(ErrorKind::kCorrupt, "it is no history of a run");
  Series series;
  // One transaction, so that the width belongs to the rows that are read.
  ANTDT_RETURN_IF_ERROR(db.execute("BEGIN"));
  ANTDT_TRY(const std::uint64_t tables,
            db.query_number("SELECT count(*) FROM sqlite_master WHERE name='series'"));
  if (tables == 0) return series;
  ANTDT_TRY(const std::uint64_t width,
            db.query_number("SELECT value FROM meta WHERE key='series_width_s'"));
  if (width > 0) series.width_s = static_cast<double>(width);
  ANTDT_TRY(Statement rows, db.prepare("SELECT body FROM series ORDER BY bucket"));
  while (true) {
    ANTDT_TRY(const bool has_row, rows.next());
    if (!has_row) return series;
    ANTDT_TRY(Moment moment, decode_moment(rows.bytes(0)));
    series.moments.push_back(std::move(moment));
  }
}

}  // namespace

Result<Series> read_series(const std::string& path) {
  auto series = read_from(path);
  if (series) return series;
  return fail(series.error().kind, "history {}: {}", path, series.error().message);
}

}  // namespace antdt::shard_server
