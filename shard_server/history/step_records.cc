#include "shard_server/history/step_records.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/permutation.h"
#include "shard_server/history/history_codec.h"
#include "shard_server/journal/sqlite.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {
namespace {

struct KnownGeneration {
  Generation generation;
  Lineage lineage;
  Step settled_after;
  std::vector<WorkerId> members;
  // last step that is in the model, as far as this lineage knows; empty: the generation goes on
  std::optional<Step> last{};
  [[nodiscard]] bool may_own(Step step) const {
    return step > settled_after && (!last || step <= *last);
  }
};

// Calls `use` for every row.
template <class Use>
Status each_row(Statement& statement, Use&& use) {
  while (true) {
    ANTDT_TRY(const bool has_row, statement.next());
    if (!has_row) return {};
    ANTDT_RETURN_IF_ERROR(use());
  }
}

std::uint64_t record_at(const wire::Piece& piece, const Permutation& order,
                        std::uint64_t position) {
  return piece.shard_first + (piece.shuffled ? order(position) : position);
}

class HistoryReader {
 public:
  explicit HistoryReader(Database database) : database_(std::move(database)) {}

  [[nodiscard]] Result<StepRecords> read(Step step);

 private:
  [[nodiscard]] Status check();
  [[nodiscard]] Result<std::uint64_t> meta(const char* key);
  [[nodiscard]] Status read_data_set();
  [[nodiscard]] Status read_pins();
  [[nodiscard]] Status read_generations();
  // The last run of steps that begins at `step` or before it.
  [[nodiscard]] Result<std::optional<wire::StepRun>> run_of(Generation generation, Step step);
  [[nodiscard]] Result<StepRecords> answer(const KnownGeneration& owner, const wire::StepRun& run,
                                           Step step);
  [[nodiscard]] Status read_member(const KnownGeneration& owner, const wire::StepRun& run,
                                   Interval places, MemberRecords& member,
                                   std::optional<Epoch>& epoch);
  // The training data as they were in this phase.
  [[nodiscard]] Result<DataSet> data_of(Generation generation, std::uint64_t phase);
  [[nodiscard]] tl::unexpected<Error> not_there(Step step);

  Database database_;
  DataSet train_;
  std::vector<KnownGeneration> generations_;  // newest first
};

Result<std::uint64_t> HistoryReader::meta(const char* key) {
  return database_.query_number(
      fmt::format("SELECT coalesce(max(value),0) FROM meta WHERE key='{}'", key).c_str());
}

Status HistoryReader::check() {
  ANTDT_TRY(const std::uint64_t id, database_.query_number("PRAGMA application_id"));
  if (id != kHistoryApplicationId) return fail(ErrorKind::kCorrupt, "it is no history of a run");
  ANTDT_TRY(const std::uint64_t format, meta("format"));
  ANTDT_TRY(const std::uint64_t permutation, meta("permutation"));
  if (format == kHistoryFormat && permutation == kPermutationVersion) return {};
  return fail(ErrorKind::kCorrupt,
              "its format is {} and its order of records {}, this build reads {} and {}: use the "
              "release that wrote it",
              format, permutation, kHistoryFormat, kPermutationVersion);
}

Status HistoryReader::read_data_set() {
  ANTDT_TRY(train_.records, meta("records"));
  ANTDT_TRY(train_.shard_records, meta("shard_records"));
  ANTDT_TRY(const std::uint64_t shuffle, meta("shuffle"));
  ANTDT_TRY(train_.seed, meta("seed"));
  if (train_.shard_records == 0 || shuffle > static_cast<std::uint64_t>(Shuffle::kNone)) {
    return fail(ErrorKind::kCorrupt, "its data set cannot be (shards of {} records, shuffle {})",
                train_.shard_records, shuffle);
  }
  train_.shuffle = static_cast<Shuffle>(shuffle);
  return read_pins();
}

Status HistoryReader::read_pins() {
  ANTDT_TRY(const std::uint64_t runs, meta("pinned_runs"));
  for (std::uint64_t i = 0; i < runs; ++i) {
    PinnedRun run;
    ANTDT_TRY(run.records, meta(fmt::format("pinned.{}.records", i).c_str()));
    ANTDT_TRY(const std::uint64_t domain, meta(fmt::format("pinned.{}.domain", i).c_str()));
    run.domain.value = static_cast<std::uint32_t>(domain);
    if (run.records == 0 || run.domain.value == 0) break;
    train_.pins.runs.push_back(run);
  }
  if (train_.pins.runs.size() == runs && (runs == 0 || train_.pins.records() == train_.records)) {
    return {};
  }
  return fail(ErrorKind::kCorrupt, "its {} runs of pinned records cannot be", runs);
}

Status HistoryReader::read_generations() {
  ANTDT_TRY(Statement rows, database_.prepare("SELECT generation,lineage,step,members FROM "
                                              "generations ORDER BY lineage DESC,generation DESC"));
  // the lowest step after which a later generation of the lineage settled
  std::map<Lineage, Step> settled;
  return each_row(rows, [&]() -> Status {
    ANTDT_TRY(auto members, decode_members(rows.bytes(3)));
    KnownGeneration known{Generation{rows.number(0)}, Lineage{rows.number(1)}, Step{rows.number(2)},
                          std::move(members)};
    const auto [next, first] = settled.try_emplace(known.lineage, known.settled_after);
    if (!first) known.last = next->second;
    next->second = std::min(next->second, known.settled_after);
    generations_.push_back(std::move(known));
    return {};
  });
}

Result<std::optional<wire::StepRun>> HistoryReader::run_of(Generation generation, Step step) {
  ANTDT_TRY(Statement rows,
            database_.prepare("SELECT first,body FROM steps WHERE generation=?1 AND "
                              "first<=?2 ORDER BY first DESC LIMIT 1"));
  rows.bind(1, generation.value).bind(2, std::min<std::uint64_t>(step.value, INT64_MAX));
  ANTDT_TRY(const bool has_row, rows.next());
  if (!has_row) return std::nullopt;
  ANTDT_TRY(wire::StepRun run, decode_run(Step{rows.number(0)}, rows.bytes(1)));
  return run;
}

Result<DataSet> HistoryReader::data_of(Generation generation, std::uint64_t phase) {
  DataSet data = train_;
  ANTDT_TRY(const std::uint64_t records, meta(size_key(generation, phase).c_str()));
  if (records != 0) data.records = records;
  return data;
}

// Converts positions of an epoch's stream to record numbers.
void add(const DataSet& train, Epoch epoch, Interval positions, MemberRecords& member) {
  for (const wire::Piece& piece :
       EpochStream(train, epoch, PhaseKind::kTrain).pieces(positions.from, positions.to)) {
    const auto known = std::ranges::find(member.shards, piece.shard, &ShardRecords::shard);
    ShardRecords& shard = known != member.shards.end()
                              ? *known
                              : member.shards.emplace_back(ShardRecords{piece.shard, {}});
    const Permutation order(piece.shard_records, piece.order_seed);
    for (std::uint64_t p = piece.from; p < piece.to; ++p) {
      shard.records.push_back(record_at(piece, order, p));
    }
  }
}

Status HistoryReader::read_member(const KnownGeneration& owner, const wire::StepRun& run,
                                  Interval places, MemberRecords& member,
                                  std::optional<Epoch>& epoch) {
  ANTDT_TRY(const DataSet train, data_of(owner.generation, run.phase));
  ANTDT_TRY(Statement rows,
            database_.prepare("SELECT place,epoch,position,records FROM grants WHERE generation=?1 "
                              "AND phase=?2 AND worker=?3 AND place<?4 AND place+records>?5 "
                              "ORDER BY place"));
  rows.bind(1, owner.generation.value).bind(2, run.phase).bind(3, number_of(member.worker));
  rows.bind(4, places.to).bind(5, places.from);
  ANTDT_RETURN_IF_ERROR(each_row(rows, [&]() -> Status {
    const std::uint64_t place = rows.number(0), position = rows.number(2), size = rows.number(3);
    if (position > train.records || size > train.records - position) {
      return fail(ErrorKind::kCorrupt, "{} was granted {} records from position {} on, of {}",
                  member.worker, size, position, train.records);
    }
    const std::uint64_t from = std::max(place, places.from);
    const std::uint64_t to = std::min(place + size, places.to);
    epoch = Epoch{static_cast<std::uint32_t>(rows.number(1))};
    add(train, *epoch, {position + (from - place), position + (to - place)}, member);
    return {};
  }));
  for (ShardRecords& shard : member.shards) std::ranges::sort(shard.records);
  return {};
}

Result<StepRecords> HistoryReader::answer(const KnownGeneration& owner, const wire::StepRun& run,
                                          Step step) {
  if (run.records.size() != owner.members.size()) {
    return fail(ErrorKind::kCorrupt, "step {} has parts of {} members, and generation {} has {}",
                step, run.records.size(), owner.generation, owner.members.size());
  }
  StepRecords found{step, owner.lineage, owner.generation, std::nullopt};
  for (const KnownGeneration& other : generations_) {  // newest first
    if (other.lineage > owner.lineage && other.settled_after < step) {
      found.undone_by = other.lineage;
    }
  }
  const std::uint64_t nth = step.value - run.first.value;
  for (std::size_t rank = 0; rank < owner.members.size(); ++rank) {
    MemberRecords& member =
        found.members.emplace_back(MemberRecords{owner.members[rank], run.records[rank]});
    const std::uint64_t from = run.places[rank] + nth * member.records;
    if (member.records == 0) continue;
    ANTDT_RETURN_IF_ERROR(
        read_member(owner, run, {from, from + member.records}, member, found.epoch));
  }
  return found;
}

tl::unexpected<Error> HistoryReader::not_there(Step step) {
  Step last;
  for (const KnownGeneration& known : generations_) {
    auto run = run_of(known.generation, Step{INT64_MAX});
    if (!run) return tl::unexpected<Error>(run.error());
    if (*run) last = std::max(last, std::min((*run)->last(), known.last.value_or((*run)->last())));
  }
  if (step > last) {
    return fail(ErrorKind::kUsage,
                "step {} is not known: the last one is {} (a running job writes down its steps "
                "about once a second)",
                step, last);
  }
  ANTDT_TRY(const std::uint64_t forgotten, meta("forgotten_step"));
  if (forgotten > 0 && step.value <= forgotten) {
    ANTDT_TRY(const std::uint64_t most, meta("most_bytes"));
    return fail(ErrorKind::kUsage,
                "step {} is no longer known: the history is held to {} bytes (logs.history in "
                "job.toml), and what made the steps up to {} was dropped for it",
                step, most, forgotten);
  }
  return fail(ErrorKind::kCorrupt, "step {} is missing, as after a full disk", step);
}

Result<StepRecords> HistoryReader::read(Step step) {
  ANTDT_RETURN_IF_ERROR(check());
  ANTDT_RETURN_IF_ERROR(read_data_set());
  ANTDT_RETURN_IF_ERROR(read_generations());
  if (generations_.empty()) return fail(ErrorKind::kAborted, "no step is known");
  for (const KnownGeneration& known : generations_) {
    if (!known.may_own(step)) continue;
    ANTDT_TRY(const auto run, run_of(known.generation, step));
    if (run && run->last() >= step) return answer(known, *run, step);
  }
  return not_there(step);
}

}  // namespace

std::uint64_t StepRecords::records() const {
  std::uint64_t sum = 0;
  for (const MemberRecords& member : members) sum += member.records;
  return sum;
}

std::uint64_t StepRecords::unknown() const {
  std::uint64_t named = 0;
  for (const MemberRecords& member : members) {
    for (const ShardRecords& shard : member.shards) named += shard.records.size();
  }
  return records() - named;
}

Result<StepRecords> read_step(const std::string& path, Step step) {
  const auto read = [&]() -> Result<StepRecords> {
    ANTDT_TRY(Database database, Database::open(path, Database::Mode::kReadOnly));
    ANTDT_RETURN_IF_ERROR(database.execute("BEGIN"));
    return HistoryReader(std::move(database)).read(step);
  };
  auto found = read();
  if (found) return found;
  return fail(found.error().kind, "history {}: {}", path, found.error().message);
}

// ------------------------------------------------------------------- text

std::string as_ranges(const std::vector<std::uint64_t>& rising) {
  std::string text;
  for (std::size_t i = 0; i < rising.size();) {
    std::size_t end = i + 1;
    while (end < rising.size() && rising[end] == rising[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : " ", rising[i]);
    if (end - i > 1) text += fmt::format("-{}", rising[end - 1]);
    i = end;
  }
  return text;
}

std::string step_table(const StepRecords& found) {
  std::string text;
  if (found.records() == 0) {
    text = fmt::format(
        "step {} trained no record: it closed a phase or a generation, or no worker held any\n",
        found.step);
  } else {
    constexpr std::string_view kRow = "{:<7}  {:>5}  {:>8}  {}\n";
    text = fmt::format(kRow, "worker", "epoch", "shard", "records");
    for (const MemberRecords& member : found.members) {
      for (const ShardRecords& shard : member.shards) {
        text += fmt::format(kRow, to_string(member.worker), found.epoch.value_or(Epoch{}).value + 1,
                            shard.shard, as_ranges(shard.records));
      }
    }
    text += fmt::format("step {}: {} records, generation {}, lineage {}\n", found.step,
                        found.records(), found.generation, found.lineage);
  }
  if (found.undone_by) {
    text += fmt::format("not in the model: lineage {} began from a checkpoint before this step\n",
                        *found.undone_by);
  }
  if (found.unknown() > 0) {
    text += fmt::format("{} of them are not known: the history has a gap\n", found.unknown());
  }
  return text;
}

std::string step_json(const StepRecords& found) {
  using Json = nlohmann::ordered_json;
  Json workers = Json::array();
  for (std::size_t rank = 0; rank < found.members.size(); ++rank) {
    const MemberRecords& member = found.members[rank];
    Json shards = Json::array();
    std::vector<std::uint64_t> all;
    for (const ShardRecords& shard : member.shards) {
      shards.push_back({{"shard", shard.shard}, {"records", shard.records}});
      all.insert(all.end(), shard.records.begin(), shard.records.end());
    }
    std::ranges::sort(all);
    workers.push_back({{"worker", to_string(member.worker)},
                       {"rank", rank},
                       {"records", std::move(all)},
                       {"shards", std::move(shards)}});
  }
  Json json = {{"schema", 1},
               {"step", found.step.value},
               {"lineage", found.lineage.value},
               {"generation", found.generation.value},
               {"epoch", found.epoch ? Json(found.epoch->value) : Json()},
               {"undone_by", found.undone_by ? Json(found.undone_by->value) : Json()},
               {"records_total", found.records()},
               {"unknown", found.unknown()},
               {"workers", std::move(workers)}};
  return json.dump();
}

}  // namespace antdt::shard_server
