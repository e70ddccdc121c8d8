// A job that runs for weeks, in virtual time: what its job daemon keeps and writes, measured at
// the end of each virtual day. For the promise that nothing grows with time (docs/journal.md).
//
// Real: the job, its journal and its history (files in `directory`), the status reply. Played: the
// workers, and what befalls a job in weeks, more often than it should: an action every ten seconds,
// a process that fails every twenty minutes, a host that is lost every few hours, evictions,
// resizes, checkpoints, the loss of all hosts at once, and job daemons that are killed and replay.
//
// What is coarser than in a real run: a step takes four minutes, workers report and the controller
// decides once a minute, and the job daemon looks at its clock every five seconds, so that a month
// can be played in minutes. All that happens at one virtual moment is one turn: those of a real run
// are smaller.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::fleet {

struct LongRun {
  std::uint32_t workers = 1000;
  std::uint32_t workers_a_host = 8;
  double days = 30;
  std::string directory;  // for state.db and history.db; empty: in memory, and removed
  std::uint64_t history_bytes = 256ULL << 20;  // logs.history
  double step_s = 240;
  double failure_every_s = 1200;
  double action_every_s = 10;
  double epoch_hours = 4;
  std::uint64_t seed = 1;
};

// At the end of a virtual day; counts are of the run so far, the turns' bytes of the day.
struct LongDay {
  double day = 0;
  std::uint64_t steps = 0, generations = 0, lineages = 0, incarnations = 0;
  std::uint64_t actions = 0, failures = 0, epochs = 0;
  std::uint64_t turns = 0, turn_p99 = 0, turn_most = 0;
  std::uint64_t image = 0, snapshot = 0;  // bytes
  std::uint64_t state_db = 0;             // files of the journal, WAL included: the day's most
  std::uint64_t history_db = 0;           // the same of the history, with the series
  std::uint64_t status = 0;               // the reply, bytes
  std::uint64_t heap = 0, resident = 0;   // of this program: the job, and the played workers
  double replay_s = 0;                    // the day's longest restart of a job daemon
};

// Calls `on_day` after each. Errors: a file that cannot be written, a job that ended, a journal
// whose replay comes to another state.
[[nodiscard]] Status play(const LongRun& run, const std::function<void(const LongDay&)>& on_day);

// What docs/journal.md says of a job of that size: a sentence for each bound that the day exceeds.
[[nodiscard]] std::vector<std::string> exceeded(const LongDay& day, const LongRun& run);

}  // namespace antdt::fleet
