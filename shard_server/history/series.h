// What the workers of a run measured, about once a second, from its beginning to its end. The
// report
// page draws it, and a replay starts from it. It lies beside the history of steps (history.h), in
// the same file; the job does not need it to go on.
//
// On disk:
//
//   series(bucket INTEGER PRIMARY KEY, body BLOB)   a Moment; bucket = from_s / width
//   meta 'series_width_s'                           whole seconds, 1 at first
//
// Its size is bounded: when there are too many rows (after some hours with few workers, see
// most_moments), the width doubles and two rows become one. So the series covers the whole run, and
// a long run has less detail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

// Sums over the batches that a worker reported. A batch is its part of a step, with all
// micro-batches.
struct WorkerMoment {
  Member member;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t data_us = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;      // waiting in the collective or for servers
  std::uint32_t micro_batch = 0;  // of the newest plan; 0: the worker has no part in it
  std::uint32_t accumulation = 0;
  std::string verdict = {};  // "transient", "persistent", "deterministic", "leader"; empty: none
  std::string cause = {};    // as ctl::Cause; empty: not known
  double severity = 1;       // as ctl::Verdict
};

struct Moment {
  double from_s = 0;  // in seconds of the job's time, as in events.jsonl
  // how much time the moment covers; less than the distance to the next one if nobody reported
  double seconds = 0;
  Step step;  // of the newest report, like every other field that is not a sum
  std::uint64_t samples_done = 0;
  double loss = 0;                    // training loss over the last seconds; 0: not known
  std::vector<WorkerMoment> workers;  // the workers that reported, by rising id
};

// Adds `later` to `to`: sums are added, other fields are taken from `later`.
void add_moment(Moment& to, const Moment& later);

// The most rows that are kept, about 8 MiB of them.
[[nodiscard]] constexpr std::size_t most_moments(std::size_t workers) {
  return std::clamp<std::size_t>(200'000 / std::max<std::size_t>(workers, 1), 100, 7200);
}

struct Series {
  double width_s = 1;
  std::vector<Moment> moments;  // by rising time
};
// Reads the series from a run's history.db. The job may be running. A history without a series
// (written by an older release, or before training began) has no moments. Errors: kCorrupt or kIo
// if it cannot be read.
[[nodiscard]] Result<Series> read_series(const std::string& path);

}  // namespace antdt::shard_server
