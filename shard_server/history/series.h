// What the workers of a run measured, about once a second, from its beginning to
// its end: what a page draws and a replay starts from. Beside the history of steps
// (history.h), in the same file, and as little needed to go on as that.
//
// On disk:
//
//   series(bucket INTEGER PRIMARY KEY, body BLOB)   a Moment; bucket = from_s / width
//   meta 'series_width_s'                           whole seconds, 1 at first
//
// Its size is bounded: when there are too many rows (some hours of few workers, see
// most_moments), the width doubles and two rows become one. So all of a run is
// there, a long one in less detail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

// Sums over the batches (parts of a step, of all micro-batches) that it reported.
struct WorkerMoment {
  Member member;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t data_us = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;      // in the collective, or for servers
  std::uint32_t micro_batch = 0;  // of the newest plan; 0: it has no part in it
  std::uint32_t accumulation = 0;
  std::string verdict = {};  // "transient", "persistent", "deterministic", "leader"; empty: none
  std::string cause = {};    // as ctl::Cause; empty: not known
  double severity = 1;       // as ctl::Verdict
};

struct Moment {
  double from_s = 0;   // of the job's time, as events.jsonl has it
  double seconds = 0;  // of it that this tells of; less than to the next one where nobody reported
  Step step;           // of the newest of these, like all that is no sum
  std::uint64_t samples_done = 0;
  double loss = 0;                    // of training, over the last seconds; 0: not known
  std::vector<WorkerMoment> workers;  // that reported, rising
};

// `later` is added to `to`: sums are summed, of the rest the later counts.
void add_moment(Moment& to, const Moment& later);

// Rows at most; some 8 MiB.
[[nodiscard]] constexpr std::size_t most_moments(std::size_t workers) {
  return std::clamp<std::size_t>(200'000 / std::max<std::size_t>(workers, 1), 100, 7200);
}

struct Series {
  double width_s = 1;
  std::vector<Moment> moments;  // rising
};
// Reads history.db of a run, also while the job runs. A history without a series (of an
// older release, or before training) has no moments. kCorrupt, kIo: it cannot be read.
[[nodiscard]] Result<Series> read_series(const std::string& path);

}  // namespace antdt::shard_server
