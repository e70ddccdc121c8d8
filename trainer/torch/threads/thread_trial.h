// Whether more than one compute thread pays, decided from the times of a worker's first steps.
//
// LibTorch computes with the threads of its OpenMP pool. OpenBLAS, as Debian configures it by
// default, computes the products of matrices with a pool of its own. The threads of both spin for a
// while when they have no work, so with as many threads in each as there are cores the two pools
// take the cores from each other: the MLP on 2 cores then makes fewer steps than with one thread.
// Which pool pays depends on the model (ResNet's convolutions use LibTorch's, an MLP's layers
// OpenBLAS's), on the batch, and on what else runs on the host, so it is measured:
//
//   round 1    one thread; two threads in OpenBLAS, in LibTorch, in both
//   round 2    the best two of them, again
//   doubling   the winner against twice as many threads (at most as many as the job allows), for as
//              long as twice as many win
//   watching   now() has more than one thread, and its steps are compared with those of its last
//              round: if they take half as long again, round 1 begins anew, because something else
//              has come to need the cores
//   settled    one thread; now() changes no more
//
// A round tries its candidates one after another. A candidate's first steps are not counted,
// because the threads of the candidate before may still spin. The median of the others counts. With
// more threads a candidate wins only if it is faster by a twentieth, and it is given up early if
// none of its steps was near the best so far.
//
// The time between two trials doubles, so that a host whose load never stays as it is does not try
// all the time. Nothing of this is in a checkpoint: a process that starts tries again. Sums may be
// rounded differently with other numbers of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.h"

namespace antdt::trainer {

// Threads of each pool, the calling thread included.
struct PoolThreads {
  std::uint32_t torch = 1;
  std::uint32_t blas = 1;
  bool operator==(const PoolThreads&) const = default;
};

class ThreadTrial {
 public:
  // `threads`: as many as the job allows, at least 1; with 1 it is settled from the start.
  // `two_pools`: OpenBLAS has a pool of its own; otherwise both numbers are the same.
  ThreadTrial(std::uint32_t threads, bool two_pools);

  // What the next step is to compute with.
  [[nodiscard]] PoolThreads now() const { return candidates_[at_].threads; }
  [[nodiscard]] bool settled() const { return stage_ == Stage::kSettled; }
  // A step computed `records` with now() and took this long, without waiting for other members. A
  // step without records says nothing.
  void step(Duration took, std::uint64_t records);

 private:
  enum class Stage { kFirstRound, kSecondRound, kDoubling, kWatching, kSettled };
  struct Candidate {
    PoolThreads threads;
    double seconds = 0;  // for a record: the median of its last round
  };
  void begin_trial();
  void begin(Stage stage, std::vector<PoolThreads> candidates);
  [[nodiscard]] bool is_hopeless() const;
  [[nodiscard]] double take_median();
  void next_candidate();
  void compare_with_last_round();
  void conclude();
  void double_or_settle(PoolThreads best);
  void settle(PoolThreads best);
  [[nodiscard]] PoolThreads doubled(PoolThreads t) const;
  [[nodiscard]] PoolThreads winner() const;

  std::uint32_t most_;
  bool two_pools_;
  Stage stage_ = Stage::kFirstRound;
  std::vector<Candidate> candidates_;  // of the round, by ascending threads
  std::size_t at_ = 0;                 // the one that is tried
  Duration skipped_{};                 // how long its steps that do not count took
  Duration measured_{};                // and those that do
  std::vector<double> seconds_;        // for a record, of the latter
  Duration watched_;                   // how long steps are watched before they are compared
};

}  // namespace antdt::trainer
