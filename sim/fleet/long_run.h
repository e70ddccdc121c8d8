// A job that runs for weeks in virtual time. At the end of each virtual day it measures what the
// job daemon keeps and writes, to check the promise that nothing grows with time (docs/journal.md).
//
// The job, its journal and its history (files in `directory`) and the status reply are real. The
// workers are played, and so are the events of weeks, more frequent than in reality: an action
// every ten seconds, a process that fails every twenty minutes, a host that is lost every few
// hours, evictions, resizes, checkpoints, the loss of all hosts at once, and job daemons that are
// killed and replay.
//
// Some things are coarser than in a real run, so that a month can be played in minutes: a step
// takes four minutes, workers report and the controller decides once a minute, and the job daemon
// looks at its clock every five seconds. All events of one virtual moment are one turn, so turns
// are larger than in a real run.
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

// The state at the end of a virtual day. Counts cover the run so far, the turns' bytes this day.
struct LongDay {
  double day = 0;
  std::uint64_t steps = 0, generations = 0, lineages = 0, incarnations = 0;
  std::uint64_t actions = 0, failures = 0, epochs = 0;
  std::uint64_t turns = 0, turn_p99 = 0, turn_most = 0;
  std::uint64_t image = 0, snapshot = 0;  // bytes
  std::uint64_t state_db = 0;             // the day's largest size of the journal's files, WAL
                                          // included
  std::uint64_t history_db = 0;           // the day's largest size of the history's files, with the
                                          // series
  std::uint64_t status = 0;               // size of the status reply in bytes
  std::uint64_t heap = 0, resident = 0;   // of this program, which holds the job and the played
                                          // workers
  double replay_s = 0;                    // the day's longest restart of a job daemon
};

// Calls `on_day` after each day. Errors: a file cannot be written, the job ended, or a replay of
// the journal gives another state.
[[nodiscard]] Status play(const LongRun& run, const std::function<void(const LongDay&)>& on_day);

// One sentence for each bound of docs/journal.md, for a job of this size, that the day exceeds.
[[nodiscard]] std::vector<std::string> exceeded(const LongDay& day, const LongRun& run);

}  // namespace antdt::fleet
