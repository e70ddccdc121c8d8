#include "shard_server/history/history.h"

#include <deque>
#include <optional>
#include <utility>

#include "shard_server/history/history_bound.h"
#include "shard_server/history/history_codec.h"
#include "shard_server/history/series_table.h"
#include "shard_server/journal/sqlite.h"

namespace antdt::shard_server {
namespace {

// Size of the WAL at which it is copied back into the database.
constexpr std::uint64_t kCheckpointBytes = 2ULL << 20;
// Most entries that wait while the disk has no room: some tens of MiB.
constexpr std::size_t kMostBuffered = 200'000;
// The size of the database is checked after this many transactions or entries. At most a few
// generations are dropped each time, so that no transaction is long.
constexpr std::uint64_t kLookEvery = 16;
constexpr std::uint64_t kLookEveryEntries = 1000;
constexpr int kMostForgottenAtOnce = 8;

constexpr const char* kHistorySchema =
    "BEGIN IMMEDIATE;"
    "PRAGMA application_id=0x416e7448;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
    "CREATE TABLE generations(generation INTEGER PRIMARY KEY, lineage INTEGER, step INTEGER,"
    "                         members BLOB);"
    "CREATE TABLE steps(generation INTEGER, first INTEGER, body BLOB,"
    "                   PRIMARY KEY(generation, first)) WITHOUT ROWID;"
    "CREATE TABLE grants(generation INTEGER, phase INTEGER, worker INTEGER, place INTEGER,"
    "                    epoch INTEGER, position INTEGER, records INTEGER,"
    "                    PRIMARY KEY(generation, phase, worker, place)) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('format',1),('incarnation',0);"
    "COMMIT";

// Every statement that writes, prepared once.
struct Statements {
  Statement begin, commit, incarnation, touch;
  Statement same_generation, forget_steps, forget_grants, put_generation;
  Statement put_steps, drop_grants, shorten_grant, put_grant;

  [[nodiscard]] static Result<Statements> prepare(Database& db) {
    ANTDT_TRY(Statement begin, db.prepare("BEGIN IMMEDIATE"));
    ANTDT_TRY(Statement commit, db.prepare("COMMIT"));
    ANTDT_TRY(Statement incarnation, db.prepare("SELECT value FROM meta WHERE key='incarnation'"));
    ANTDT_TRY(Statement touch, db.prepare("UPDATE meta SET value=value WHERE key='incarnation'"));
    ANTDT_TRY(Statement same, db.prepare("SELECT count(*) FROM generations WHERE generation=?1 AND "
                                         "lineage=?2 AND step=?3 AND members=?4"));
    ANTDT_TRY(Statement forget_steps, db.prepare("DELETE FROM steps WHERE generation=?1"));
    ANTDT_TRY(Statement forget_grants, db.prepare("DELETE FROM grants WHERE generation=?1"));
    ANTDT_TRY(Statement put_generation,
              db.prepare("INSERT OR REPLACE INTO generations VALUES(?1,?2,?3,?4)"));
    ANTDT_TRY(Statement put_steps, db.prepare("INSERT OR REPLACE INTO steps VALUES(?1,?2,?3)"));
    ANTDT_TRY(Statement drop, db.prepare("DELETE FROM grants WHERE generation=?1 AND phase=?2 AND "
                                         "worker=?3 AND place>=?4"));
    ANTDT_TRY(Statement shorten,
              db.prepare("UPDATE grants SET records=?4-place WHERE generation=?1 AND phase=?2 AND "
                         "worker=?3 AND place<?4 AND place+records>?4"));
    ANTDT_TRY(Statement put_grant, db.prepare("INSERT INTO grants VALUES(?1,?2,?3,?4,?5,?6,?7)"));
    return Statements{std::move(begin),         std::move(commit),         std::move(incarnation),
                      std::move(touch),         std::move(same),           std::move(forget_steps),
                      std::move(forget_grants), std::move(put_generation), std::move(put_steps),
                      std::move(drop),          std::move(shorten),        std::move(put_grant)};
  }
};

Status ran(Result<int> result) {
  if (result) return {};
  return tl::unexpected<Error>(result.error());
}

// Reads a query's single row with a single number.
Result<std::uint64_t> number(Statement& statement) {
  ANTDT_TRY(const bool has_row, statement.next());
  const std::uint64_t value = has_row ? statement.number(0) : 0;
  while (true) {
    ANTDT_TRY(const bool more, statement.next());
    if (!more) return value;
  }
}

}  // namespace

struct History::State {
  std::string path;
  Database database;
  Statements statements;
  SeriesTable series;
  Incarnation incarnation;
  std::uint64_t most_bytes = 0;
  std::uint64_t train_records = 0;  // as the data have now
  std::string sized{};              // the newest phase whose own number of records is written
  std::uint64_t transactions = 0;
  std::uint64_t entries_since_look = 0;
  std::deque<history::Entry> buffer{};
  std::optional<Moment> measured{};  // sums of all measurements that are not written yet
  bool unsynced = false;

  Status write(const history::Settled& e);
  Status write(const history::Grant& e);
  Status write_size(const history::Grant& e);
  Status write(const history::Cut& e);
  Status write(const history::Steps& e);
  Status write(const history::Measured& e) { return series.put(e); }
  Status cut(Generation generation, std::uint64_t phase, WorkerId worker, std::uint64_t place);
  Status write_all();
  Status transaction();
  Status keep_within_bound();
};

// ------------------------------------------------------------------- opening

namespace {

Status create_if_new(Database& db) {
  ANTDT_TRY(const std::uint64_t tables, db.query_number("SELECT count(*) FROM sqlite_master"));
  if (tables == 0) return db.execute(kHistorySchema);
  ANTDT_TRY(const std::uint64_t id, db.query_number("PRAGMA application_id"));
  ANTDT_TRY(const std::uint64_t format,
            db.query_number("SELECT value FROM meta WHERE key='format'"));
  if (id == kHistoryApplicationId && format == kHistoryFormat) return {};
  return fail(ErrorKind::kCorrupt, "it is no history of format {} (application id {:08x})",
              kHistoryFormat, id);
}

Status set(Database& db, const char* key, std::uint64_t value) {
  ANTDT_TRY(Statement statement,
            db.prepare(fmt::format("INSERT OR REPLACE INTO meta VALUES('{}',?1)", key).c_str()));
  return ran(statement.bind(1, value).run());
}

// If the data have grown since, the phases so far keep the number of records that they had.
Status keep_sizes(Database& db, std::uint64_t records) {
  ANTDT_TRY(const std::uint64_t before,
            db.query_number("SELECT coalesce(max(value),0) FROM meta WHERE key='records'"));
  if (before == 0 || before == records) return {};
  return db.execute(fmt::format("INSERT OR IGNORE INTO meta SELECT DISTINCT "
                                "'records.'||generation||'.'||phase,{} FROM grants",
                                before)
                        .c_str());
}

// Records pinned to domains are in another order (read_data_set in step_records.cc).
Status keep_pins(Database& db, const Pins& pins) {
  if (pins.empty()) return {};
  ANTDT_RETURN_IF_ERROR(set(db, "pinned_runs", pins.runs.size()));
  for (std::size_t i = 0; i < pins.runs.size(); ++i) {
    const PinnedRun& run = pins.runs[i];
    ANTDT_RETURN_IF_ERROR(set(db, fmt::format("pinned.{}.records", i).c_str(), run.records));
    ANTDT_RETURN_IF_ERROR(set(db, fmt::format("pinned.{}.domain", i).c_str(), run.domain.value));
  }
  return {};
}

Status begin_incarnation(Database& db, const DataSet& train, Incarnation incarnation,
                         std::uint64_t most_bytes) {
  ANTDT_RETURN_IF_ERROR(db.execute("BEGIN IMMEDIATE"));
  ANTDT_RETURN_IF_ERROR(keep_sizes(db, train.records));
  ANTDT_RETURN_IF_ERROR(set(db, "incarnation", incarnation.value));
  ANTDT_RETURN_IF_ERROR(set(db, "permutation", kPermutationVersion));
  ANTDT_RETURN_IF_ERROR(set(db, "records", train.records));
  ANTDT_RETURN_IF_ERROR(set(db, "shard_records", train.shard_records));
  ANTDT_RETURN_IF_ERROR(set(db, "shuffle", static_cast<std::uint64_t>(train.shuffle)));
  ANTDT_RETURN_IF_ERROR(set(db, "seed", train.seed));
  ANTDT_RETURN_IF_ERROR(set(db, "most_bytes", most_bytes));
  ANTDT_RETURN_IF_ERROR(keep_pins(db, train.pins));
  return db.execute("COMMIT");
}

template <class T>
Result<T> about_history(const std::string& path, Result<T> result) {
  if (result) return result;
  return fail(result.error().kind, "history {}: {}", path, result.error().message);
}

}  // namespace

Result<History> History::open(const std::string& path, const DataSet& train,
                              Incarnation incarnation, std::uint64_t most_bytes) {
  const auto make = [&]() -> Result<std::unique_ptr<State>> {
    ANTDT_TRY(Database db, Database::open(path, Database::Mode::kReadWriteCreate));
    ANTDT_RETURN_IF_ERROR(
        db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=OFF;"
                   "PRAGMA journal_size_limit=4194304"));
    ANTDT_RETURN_IF_ERROR(create_if_new(db));
    ANTDT_RETURN_IF_ERROR(begin_incarnation(db, train, incarnation, most_bytes));
    ANTDT_RETURN_IF_ERROR(SeriesTable::create(db));
    ANTDT_TRY(Statements statements, Statements::prepare(db));
    ANTDT_TRY(SeriesTable series, SeriesTable::open(db));
    return std::make_unique<State>(State{path, std::move(db), std::move(statements),
                                         std::move(series), incarnation, most_bytes,
                                         train.records});
  };
  ANTDT_TRY(auto state, about_history(path, make()));
  return History(std::move(state));
}

History::History(std::unique_ptr<State> state) : state_(std::move(state)) {}
History::History(History&&) noexcept = default;
History& History::operator=(History&&) noexcept = default;
History::~History() = default;

// ------------------------------------------------------------------- writing

Status History::State::write(const history::Settled& e) {
  Statements& s = statements;
  const std::string members = encode_members(e.members);
  s.same_generation.bind(1, e.generation.value).bind(2, e.lineage.value);
  s.same_generation.bind(3, e.step.value).bind(4, members);
  ANTDT_TRY(const std::uint64_t known, number(s.same_generation));
  if (known > 0) return {};
  ANTDT_RETURN_IF_ERROR(ran(s.forget_steps.bind(1, e.generation.value).run()));
  ANTDT_RETURN_IF_ERROR(ran(s.forget_grants.bind(1, e.generation.value).run()));
  s.put_generation.bind(1, e.generation.value).bind(2, e.lineage.value);
  return ran(s.put_generation.bind(3, e.step.value).bind(4, members).run());
}

Status History::State::cut(Generation generation, std::uint64_t phase, WorkerId worker,
                           std::uint64_t place) {
  for (Statement* s : {&statements.drop_grants, &statements.shorten_grant}) {
    s->bind(1, generation.value).bind(2, phase).bind(3, number_of(worker)).bind(4, place);
    ANTDT_RETURN_IF_ERROR(ran(s->run()));
  }
  return {};
}

Status History::State::write(const history::Grant& e) {
  ANTDT_RETURN_IF_ERROR(cut(e.generation, e.phase, e.worker, e.place));
  if (e.records != 0 && e.records != train_records) ANTDT_RETURN_IF_ERROR(write_size(e));
  Statement& s = statements.put_grant;
  s.bind(1, e.generation.value).bind(2, e.phase).bind(3, number_of(e.worker)).bind(4, e.place);
  return ran(s.bind(5, e.epoch.value).bind(6, e.at.from).bind(7, e.at.size()).run());
}

Status History::State::write_size(const history::Grant& e) {
  std::string key = size_key(e.generation, e.phase);
  if (key == sized) return {};
  ANTDT_RETURN_IF_ERROR(set(database, key.c_str(), e.records));
  sized = std::move(key);
  return {};
}

Status History::State::write(const history::Cut& e) {
  return cut(e.generation, e.phase, e.worker, e.place);
}

Status History::State::write(const history::Steps& e) {
  const std::string body = encode_run(e.run);
  Statement& s = statements.put_steps;
  return ran(s.bind(1, e.generation.value).bind(2, e.run.first.value).bind(3, body).run());
}

Status History::State::write_all() {
  ANTDT_TRY(const std::uint64_t owner, number(statements.incarnation));
  if (owner != incarnation.value) {
    return fail(ErrorKind::kRefused, "incarnation {} of the job daemon writes it, this is {}",
                owner, incarnation);
  }
  // Writes something in any case, because only a transaction that writes is synced.
  ANTDT_RETURN_IF_ERROR(ran(statements.touch.run()));
  for (const history::Entry& entry : buffer) {
    ANTDT_RETURN_IF_ERROR(std::visit([this](const auto& e) { return write(e); }, entry));
  }
  if (measured) ANTDT_RETURN_IF_ERROR(series.put(*measured));
  ANTDT_RETURN_IF_ERROR(keep_within_bound());
  return ran(statements.commit.run());
}

// Called now and then, because checking the size costs more than a small transaction.
Status History::State::keep_within_bound() {
  entries_since_look += buffer.size();
  const bool due = ++transactions % kLookEvery == 0 || entries_since_look >= kLookEveryEntries;
  if (most_bytes == 0 || !due) return {};
  entries_since_look = 0;
  for (int i = 0; i < kMostForgottenAtOnce; ++i) {
    ANTDT_TRY(const std::uint64_t used, used_bytes(database));
    if (used <= most_bytes) return {};
    ANTDT_RETURN_IF_ERROR(forget_oldest(database));
  }
  return {};
}

Status History::State::transaction() {
  ANTDT_RETURN_IF_ERROR(ran(statements.begin.run()));
  Status written = write_all();
  if (!written) {
    // SQLite may have rolled back by itself; then this finds nothing to do.
    static_cast<void>(database.execute("ROLLBACK").has_value());
    static_cast<void>(series.reload().has_value());
    return written;
  }
  unsynced = unsynced || !buffer.empty();
  buffer.clear();
  measured.reset();
  if (database.wal_bytes() < kCheckpointBytes) return {};
  return database.execute("PRAGMA wal_checkpoint(PASSIVE)");
}

void History::append(history::Entry entry) {
  if (auto* moment = std::get_if<history::Measured>(&entry)) {
    auto& measured = state_->measured;
    measured ? add_moment(*measured, *moment) : void(measured = std::move(*moment));
    return;
  }
  if (state_->buffer.size() >= kMostBuffered) state_->buffer.pop_front();
  state_->buffer.push_back(std::move(entry));
}

bool History::dirty() const { return !state_->buffer.empty() || state_->measured; }
bool History::unsynced() const { return state_->unsynced || !state_->buffer.empty(); }

Status History::commit() {
  if (!dirty()) return {};
  return about_history(state_->path, state_->transaction());
}

// A synced transaction syncs the whole log, which contains the earlier transactions.
Status History::sync() {
  if (!unsynced()) return {};
  Database& db = state_->database;
  ANTDT_RETURN_IF_ERROR(about_history(state_->path, db.execute("PRAGMA synchronous=FULL")));
  const Status written = about_history(state_->path, state_->transaction());
  ANTDT_RETURN_IF_ERROR(about_history(state_->path, db.execute("PRAGMA synchronous=NORMAL")));
  ANTDT_RETURN_IF_ERROR(written);
  state_->unsynced = false;
  return {};
}

}  // namespace antdt::shard_server
