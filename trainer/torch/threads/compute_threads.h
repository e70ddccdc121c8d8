// The threads with which LibTorch and OpenBLAS compute in this process.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "trainer/torch/threads/thread_trial.h"

namespace antdt::trainer {

// Sets how many threads both use, in the calling thread and in the process.
void set_compute_threads(PoolThreads threads);

// Lets a worker compute with at most so many threads, or with fewer where more do not pay
// (thread_trial.h). All calls are on the thread that computes. What lies between begin() and end()
// is the step's time: the wait for records is a part of it, because compute threads may take the
// cores of the thread that reads them; the wait for other members is not.
class ComputeThreads {
 public:
  explicit ComputeThreads(std::uint32_t most);

  void begin() {
    if (!trial_.settled()) began_ = clock_.now();
  }
  void end();
  void computed(std::uint64_t records) { records_ += records; }
  void finish_step();
  void forget_step();  // it was broken off

 private:
  ThreadTrial trial_;
  SteadyClock clock_;
  MonoTime began_{};
  Duration took_{};            // of the step's parts so far
  std::uint64_t records_ = 0;  // in them
};

}  // namespace antdt::trainer
