// Which records made which step: what `antdt data which` reads.
//
// The history holds what each member was granted, as places in the order of its consumption, and
// how many records of each member every step took. Together these say which records a step trained.
// The job does not need them to go on (it needs the journal), so they are in a file of their own,
// most turns write to it without a sync, and its loss stops no job.
//
// On disk, one SQLite database in WAL mode:
//
//   meta(key TEXT PRIMARY KEY, value INTEGER)  'format' = 1, 'incarnation', 'permutation',
//                                              and the data set: 'records', 'shard_records',
//                                              'shuffle', 'seed'; 'forgotten_step', where
//                                              the oldest were dropped, and 'most_bytes'
//   generations(generation, lineage, step, members BLOB)   settled after `step`; ids by rank
//   steps(generation, first, body BLOB)                    a wire::StepRun without these two
//   grants(generation, phase, worker, place, epoch, position, records)
//                                              from `place` on, positions of the epoch's stream
//
//   series(bucket, body BLOB)                  what the workers measured (series.h)
//
// The number of rows grows with grants (one is a second or two of work) and with changes of plan,
// not with steps. Numbers in bodies are LEB128. When the rows exceed a bound, the oldest are
// dropped (history_bound.h).
//
// The history is written beside the journal, and only a caller that asks for a sync waits for it.
// After a kill it may lack entries that the journal has, or have entries that were never sent. The
// latter are replaced: a grant replaces those from its place on, and a generation replaces the one
// of the same number. Missing entries are written again: the daemon writes the journal's latest
// grants, and the members, which forget only steps that are synced, report their steps again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "shard_server/history/series.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {

namespace history {

// A generation settled. Its steps are those after `step`; in the model, the generation before it
// ends at `step`.
struct Settled {
  Lineage lineage;
  Generation generation;
  Step step;
  std::vector<WorkerId> members;  // by rank
};
struct Grant {
  Generation generation;
  std::uint64_t phase = 0;
  Epoch epoch;
  WorkerId worker;
  std::uint64_t place = 0;  // place of the grant's first record
  Interval at;
  std::uint64_t records = 0;  // of the phase; 0: as many as the data have now
};
// `worker` gave back what it was granted from `place` on, before it began with it.
struct Cut {
  Generation generation;
  std::uint64_t phase = 0;
  WorkerId worker;
  std::uint64_t place = 0;
};
struct Steps {
  Generation generation;
  wire::StepRun run;
};

// The next second of the series. It is not synced on its own.
using Measured = Moment;

using Entry = std::variant<Settled, Grant, Cut, Steps, Measured>;

}  // namespace history

class History {
 public:
  // Opens the history, or makes it. From here on, the writer of another incarnation writes nothing.
  // The oldest entries are dropped when there are more than `most_bytes`; 0 means no bound.
  [[nodiscard]] static Result<History> open(const std::string& path, const DataSet& train,
                                            Incarnation incarnation, std::uint64_t most_bytes = 0);
  History(History&&) noexcept;
  History& operator=(History&&) noexcept;
  ~History();

  // Buffers an entry. If entries cannot be written for long, the oldest are dropped, and the
  // moments of the series are merged into one.
  void append(history::Entry entry);
  [[nodiscard]] bool dirty() const;
  // Whether something was committed or buffered since the last sync; measurements do not count.
  [[nodiscard]] bool unsynced() const;
  // Writes the buffer in one transaction. After an error everything is still buffered.
  [[nodiscard]] Status commit();
  // Commits, and syncs, so that the whole file survives a power failure.
  [[nodiscard]] Status sync();

 private:
  struct State;
  explicit History(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::shard_server
