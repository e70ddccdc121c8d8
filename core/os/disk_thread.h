// A thread that does one job about files after another, so that a filesystem that stands still
// holds up this thread and not a daemon's loop.
//
// The loop gives it jobs; a job runs on the thread and returns what is to be done with its
// result, which deliver() then runs on the loop's thread. Both go in the order in which the jobs
// were given. A job must share nothing with the loop but what it was given by value.
//
//   run, offer ──> waiting ──(thread)──> done ──deliver()──> its result is used
//
// How long the present job has been at it is known at any time: a job that goes through much
// data says `progress()` now and then, and then it is not one that stands still.
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
  using Then = std::function<void()>;  // on the loop's thread; may be empty
  using Job = std::function<Then()>;   // on this thread

  // `most_waiting`: of jobs that are offered. `clock` is read on both threads.
  explicit DiskThread(const Clock& clock, std::size_t most_waiting = 10'000);
  // Waits for what was given. Where a filesystem may stand still, end() comes first.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // `what` is for people: "storing a checkpoint". Of jobs that the caller bounds.
  void run(std::string what, Job job);
  // The same for what may be lost: false, and counted, if too many wait already.
  bool offer(std::string what, Job job);
  [[nodiscard]] std::uint64_t refused() const;

  // Readable when deliver() has something to do.
  [[nodiscard]] int ready_fd() const;
  void deliver();

  struct Present {
    std::string what;
    Duration still{};         // without progress
    std::size_t waiting = 0;  // behind it
  };
  // The job that runs now; nothing while there is none.
  [[nodiscard]] std::optional<Present> present() const;
  // For a job: it moves. From any thread.
  void progress();

  // Waits until nothing is left to do, at most so long; whether that is so.
  [[nodiscard]] bool await_idle(Duration patience) const;
  // The same, and then the thread ends. False: a job stands still, and the process can only be
  // left by _exit.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt
