// The states of a job and of its processes, as reports and messages name them.
//
// Reports hold the names as text, so that a state that only a newer version knows stays readable.
// core/report/states.h finds the state of such a text.
#pragma once

#include <cstdint>

#include "core/names.h"

namespace antdt {

// ctl/lifecycle/lifecycle.h has the transitions.
enum class JobState : std::uint8_t {
  kStarting,
  kForming,
  kTraining,
  kEvaluating,
  kFinishing,
  kStopping,
  kDone,
  kFailed,
  kStopped,
};
constexpr auto names_of(JobState) {
  return names("starting", "forming", "training", "evaluating", "finishing", "stopping", "done",
               "failed", "stopped");
}

// How a job ends.
enum class JobEnd : std::uint8_t { kDone, kFailed, kStopped };
constexpr auto names_of(JobEnd) { return names("done", "failed", "stopped"); }

// The state in which a job is once it has ended so.
[[nodiscard]] constexpr JobState state_after(JobEnd end) {
  switch (end) {
    case JobEnd::kDone:
      return JobState::kDone;
    case JobEnd::kFailed:
      return JobState::kFailed;
    case JobEnd::kStopped:
      return JobState::kStopped;
  }
  return JobState::kFailed;
}

// A process of a worker or a server, as it is reported. ctl/processes/worker_process.h has the
// transitions.
enum class ProcessState : std::uint8_t {
  kPlanned,
  kStarted,
  kJoined,
  kExited,
  kWaiting,
  kRemoved,
  kLeaving,  // it runs, and was asked to leave
};
constexpr auto names_of(ProcessState) {
  return names("planned", "started", "joined", "exited", "waiting", "removed", "leaving");
}

// What a process does for the parameter server to which it belongs.
enum class ServerRole : std::uint8_t {
  kNone,  // it has no part in the group
  kAlone,
  kPrimary,
  kBackup,
  kJoining,  // it receives the state, and will be the backup
};
constexpr auto names_of(ServerRole) { return names("", "alone", "primary", "backup", "joining"); }

}  // namespace antdt
