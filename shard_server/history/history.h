// Which records made which step: the run's memory for `antdt data which`.
//
// What a member was granted, as places in the order of its consumption, and how
// many records of each member every step took: together they say which records a
// step trained. Neither is needed to go on (that is the journal), so it lies in a
// file of its own, is written without a sync of its own in most turns, and its
// loss harms nobody.
//
// On disk, one SQLite database in WAL mode:
//
//   meta(key TEXT PRIMARY KEY, value INTEGER)  'format' = 1, 'incarnation', 'permutation',
//                                              and the data set: 'records', 'shard_records',
//                                              'shuffle', 'seed'; 'forgotten_step', where
//                                              the oldest were dropped, and 'most_bytes'
//   generations(generation, lineage, step, members BLOB)   settled after `step`; ids by rank
//   steps(generation, first, body BLOB)                    a wire::StepRun, without the former
//   grants(generation, phase, worker, place, epoch, position, records)
//                                              from `place` on, positions of the epoch's stream
//
//   series(bucket, body BLOB)                  what the workers measured (series.h)
//
// Rows grow with grants (a second or two of work) and with changes of plan, not
// with steps. Numbers in bodies are LEB128. When they take more than a bound the oldest are
// dropped (history_bound.h).
//
// It is written beside the journal, and nobody waits for it but who asks for a sync: after a
// kill it may lack what the journal has, or have what was never sent. The latter is replaced: a
// grant replaces those from its place on, a generation its namesake. What is lacking is told
// again: the journal's latest grants by the daemon, steps by the members, which forget only what
// is synced.
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

// A generation settled: its steps are those after `step`, and this is the end of
// the generation before, as far as the model is concerned.
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
  std::uint64_t place = 0;  // of its first record
  Interval at;
};
// What `worker` was granted from `place` on was taken back unstarted.
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

// The series' next second: not synced for its own sake.
using Measured = Moment;

using Entry = std::variant<Settled, Grant, Cut, Steps, Measured>;

}  // namespace history

class History {
 public:
  // Opens or makes it; from here on another incarnation's writer writes nothing.
  // `most_bytes`: the oldest goes when there is more; 0: no bound.
  [[nodiscard]] static Result<History> open(const std::string& path, const DataSet& train,
                                            Incarnation incarnation, std::uint64_t most_bytes = 0);
  History(History&&) noexcept;
  History& operator=(History&&) noexcept;
  ~History();

  // Buffers. What nobody could write for long is dropped, the oldest first; of the
  // series it becomes one moment.
  void append(history::Entry entry);
  [[nodiscard]] bool dirty() const;
  // Something was committed, or is buffered, since the last sync; measurements do not count.
  [[nodiscard]] bool unsynced() const;
  // One transaction. After an error all is still buffered.
  [[nodiscard]] Status commit();
  // The same, and all of the file survives a power failure.
  [[nodiscard]] Status sync();

 private:
  struct State;
  explicit History(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::shard_server
