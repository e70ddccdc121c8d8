// Why processes and jobs end, in classes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/names.h"

namespace antdt::ctl {

// Why a process ended. The order is that of causation: an earlier class can explain a later one,
// never the reverse.
enum class FailureClass : std::uint8_t {
  kConfiguration,  // cannot be executed, or ended with an error before the job made a step
  kNeverAgain,     // exit code 93
  kHost,           // its host was lost
  kOom,            // there is evidence that memory ran out
  kProgram,        // exited with an error
  kSignal,         // killed by a signal that this job did not send
  kHang,           // ended by the job, because it did not answer or made no progress
  kCollective,     // it lost its peers, so it is a victim
  kResumable,      // exit code 75: it wants the job to stop and go on later
  kAsked,          // ended as it was asked to
  kNone,           // exit code 0
  kOrphaned,       // ended by its host, because the job daemon was silent for too long
  kDevice,         // a GPU that it had under lease failed, or its data cannot be read: exit code 74
};
constexpr auto names_of(FailureClass) {
  return names("configuration", "never-again", "host", "oom", "program", "signal", "hang",
               "collective", "resumable", "asked", "none", "orphaned", "device");
}

// Why a job ended: the class of the failure that ended it, or one of those that no process has.
enum class ExitClass : std::uint8_t {
  kConfiguration,
  kNeverAgain,
  kHost,
  kOom,
  kProgram,
  kSignal,
  kHang,
  kCollective,
  kResumable,
  kAsked,
  kNone,
  kOrphaned,
  kDone,
  kStopped,
  kData,        // records cannot be trained, or hosts do not have the same data
  kCheckpoint,  // a checkpoint cannot be gone on from
  kDelivery,    // records were lost or repeated, against the promise
  kDevice,      // of a process; kept numbers do not change, so it is not among those above
};
constexpr auto names_of(ExitClass) {
  constexpr auto kOfProcesses = names_of(FailureClass{});
  constexpr auto kOfJobs = names("done", "stopped", "data", "checkpoint", "delivery");
  constexpr std::size_t kFirst = static_cast<std::size_t>(FailureClass::kDevice);
  std::array<std::string_view, kFirst + kOfJobs.size() + 1> all{};
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    all[i] = i < kFirst ? kOfProcesses[i] : kOfJobs[i - kFirst];
  }
  all.back() = kOfProcesses[kFirst];
  return all;
}
[[nodiscard]] constexpr ExitClass exit_class_of(FailureClass cls) {
  static_assert(static_cast<int>(ExitClass::kOrphaned) ==
                static_cast<int>(FailureClass::kOrphaned));
  return cls == FailureClass::kDevice ? ExitClass::kDevice : static_cast<ExitClass>(cls);
}

}  // namespace antdt::ctl
