// A thread that runs jobs on files one after another, so that a filesystem that does not answer
// blocks this thread and not a daemon's loop.
//
// The loop adds jobs. A job runs on the thread and returns a function that uses its result, and
// deliver() runs that function on the loop's thread. Both happen in the order in which the jobs
// were added. A job must share nothing with the loop except what it was given by value.
//
//   run, offer ──> waiting ──(thread)──> done ──deliver()──> its result is used
//
// The time for which the present job has made no progress is always known. A job that processes
// much data calls `progress()` now and then, so that it does not look stuck.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"

namespace antdt {

class DiskThread {
 public:
  using Then = std::function<void()>;  // runs on the loop's thread; may be empty
  using Job = std::function<Then()>;   // runs on this thread

  // `most_waiting`: how many offered jobs may wait. Both threads read `clock`.
  explicit DiskThread(const Clock& clock, std::size_t most_waiting = 10'000);
  // Waits for all jobs. If a filesystem may not answer, call end() first.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // `what` describes the job to people: "storing a checkpoint". The caller must bound the number of
  // jobs.
  void run(std::string what, Job job);
  // The same for jobs that may be dropped: false, and counted, if too many are waiting.
  bool offer(std::string what, Job job);
  [[nodiscard]] std::uint64_t refused() const;

  // Readable when deliver() has something to do.
  [[nodiscard]] int ready_fd() const;
  void deliver();

  struct Present {
    std::string what;
    Duration still{};         // time without progress
    std::size_t waiting = 0;  // how many jobs wait behind it
  };
  // The job that runs now; empty if there is none.
  [[nodiscard]] std::optional<Present> present() const;
  // Reports that the present job makes progress. Callable from any thread.
  void progress();

  // Waits for at most `patience` until nothing is left to do; whether that is so.
  [[nodiscard]] bool await_idle(Duration patience) const;
  // The same, and then the thread ends. False if a job is stuck, so that the process can only be
  // left by _exit.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt
