#include "shard_server/history/history_bound.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/wire/membership_messages.h"
#include "shard_server/history/history_codec.h"

namespace antdt::shard_server {
namespace {

Status run(Statement& statement) {
  const auto done = statement.run();
  if (done) return {};
  return tl::unexpected<Error>(done.error());
}

Status note_forgotten(Database& db, Step step) {
  ANTDT_TRY(Statement put,
            db.prepare("INSERT INTO meta VALUES('forgotten_step',?1) ON CONFLICT(key) DO UPDATE "
                       "SET value=max(value,excluded.value)"));
  return run(put.bind(1, step.value));
}

// The last run of steps that begins at `step` or before it.
Result<std::optional<wire::StepRun>> run_at(Database& db, std::uint64_t generation, Step step) {
  ANTDT_TRY(Statement rows, db.prepare("SELECT first,body FROM steps WHERE generation=?1 AND "
                                       "first<=?2 ORDER BY first DESC LIMIT 1"));
  rows.bind(1, generation).bind(2, std::min<std::uint64_t>(step.value, INT64_MAX));
  ANTDT_TRY(const bool has_row, rows.next());
  if (!has_row) return std::nullopt;
  ANTDT_TRY(wire::StepRun found, decode_run(Step{rows.number(0)}, rows.bytes(1)));
  return found;
}

Status forget_generation(Database& db, std::uint64_t generation) {
  ANTDT_TRY(const auto last, run_at(db, generation, Step{INT64_MAX}));
  if (last) ANTDT_RETURN_IF_ERROR(note_forgotten(db, last->last()));
  // Generations before it that were granted nothing go with it.
  for (const char* sql :
       {"DELETE FROM steps WHERE generation=?1", "DELETE FROM grants WHERE generation=?1",
        "DELETE FROM generations WHERE generation<=?1"}) {
    ANTDT_TRY(Statement forget, db.prepare(sql));
    ANTDT_RETURN_IF_ERROR(run(forget.bind(1, generation)));
  }
  return {};
}

Result<std::vector<WorkerId>> members_of(Database& db, std::uint64_t generation) {
  ANTDT_TRY(Statement rows, db.prepare("SELECT members FROM generations WHERE generation=?1"));
  rows.bind(1, generation);
  ANTDT_TRY(const bool has_row, rows.next());
  if (!has_row) return std::vector<WorkerId>{};
  return decode_members(rows.bytes(0));
}

// Makes the generation's known steps begin at `cut`, which is where `left` begins.
Status forget_before(Database& db, std::uint64_t generation, const wire::StepRun& left,
                     const std::vector<WorkerId>& members) {
  ANTDT_TRY(Statement phases, db.prepare("DELETE FROM grants WHERE generation=?1 AND phase<?2"));
  ANTDT_RETURN_IF_ERROR(run(phases.bind(1, generation).bind(2, left.phase)));
  ANTDT_TRY(Statement places, db.prepare("DELETE FROM grants WHERE generation=?1 AND phase=?2 AND "
                                         "worker=?3 AND place<?4 AND place+records<=?4"));
  for (std::size_t rank = 0; rank < std::min(members.size(), left.places.size()); ++rank) {
    places.bind(1, generation).bind(2, left.phase).bind(3, number_of(members[rank]));
    ANTDT_RETURN_IF_ERROR(run(places.bind(4, left.places[rank])));
  }
  ANTDT_TRY(Statement steps, db.prepare("DELETE FROM steps WHERE generation=?1 AND first<=?2"));
  ANTDT_RETURN_IF_ERROR(run(steps.bind(1, generation).bind(2, left.first.value)));
  ANTDT_TRY(Statement put, db.prepare("INSERT OR REPLACE INTO steps VALUES(?1,?2,?3)"));
  const std::string body = encode_run(left);
  ANTDT_RETURN_IF_ERROR(run(put.bind(1, generation).bind(2, left.first.value).bind(3, body)));
  return note_forgotten(db, Step{left.first.value - 1});
}

// Forgets the first quarter of the only generation.
Status forget_quarter(Database& db, std::uint64_t generation) {
  ANTDT_TRY(const std::uint64_t first,
            db.query_number(fmt::format("SELECT coalesce(min(first),0) FROM steps WHERE "
                                        "generation={}",
                                        generation)
                                .c_str()));
  ANTDT_TRY(const auto last, run_at(db, generation, Step{INT64_MAX}));
  if (!last || last->last().value < first + 4) return {};  // there is nothing to drop
  const Step cut{first + (last->last().value - first) / 4};
  ANTDT_TRY(auto left, run_at(db, generation, cut));
  if (!left || left->steps == 0) return {};
  const std::uint64_t skipped = std::min(cut.value - left->first.value, left->steps - 1);
  left->first.value += skipped;
  left->steps -= skipped;
  // The row itself begins earlier, so the places are moved to the cut.
  for (std::size_t rank = 0; rank < left->places.size(); ++rank) {
    left->places[rank] += left->records[rank] * skipped;
  }
  ANTDT_TRY(const auto members, members_of(db, generation));
  return forget_before(db, generation, *left, members);
}

}  // namespace

Result<std::uint64_t> used_bytes(Database& database) {
  ANTDT_TRY(const std::uint64_t pages, database.query_number("PRAGMA page_count"));
  ANTDT_TRY(const std::uint64_t unused, database.query_number("PRAGMA freelist_count"));
  ANTDT_TRY(const std::uint64_t page, database.query_number("PRAGMA page_size"));
  return (pages - unused) * page;
}

Status forget_oldest(Database& database) {
  ANTDT_TRY(
      const std::uint64_t oldest,
      database.query_number("SELECT min((SELECT coalesce(min(generation),0x7fffffff) FROM "
                            "grants),(SELECT coalesce(min(generation),0x7fffffff) FROM steps))"));
  ANTDT_TRY(const std::uint64_t newest,
            database.query_number("SELECT coalesce(max(generation),0) FROM generations"));
  if (oldest < newest) return forget_generation(database, oldest);
  return forget_quarter(database, newest);
}

}  // namespace antdt::shard_server
