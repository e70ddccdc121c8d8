#include "ctl/processes/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

namespace antdt::ctl {
namespace {

// Whether the exit follows from our own request to stop.
bool ends_as_asked(const WorkerProcess& w) {
  if (w.leaving() && w.signal == 0 && (w.code == 0 || w.code == kExitResumable)) return true;
  if (!w.asked_to_stop()) return false;
  return w.code == 0 || w.code == kExitResumable || w.signal == SIGTERM ||
         w.code == 128 + SIGTERM || (w.signal == SIGKILL && w.is_to_be_killed(w.exited_at_s));
}

// A process that says why it ends says it of a failed device, too.
bool failed_by_itself(const WorkerProcess& w) {
  const bool says_why = w.code == 0 || w.code == kExitResumable || w.code == kExitNeverAgain ||
                        w.code == kExitCollectiveBroken;
  return w.signal != 0 || !says_why;
}

}  // namespace

FailureClass classify(const WorkerProcess& w, bool made_progress, Protocol protocol) {
  if (w.hung()) return FailureClass::kHang;
  if (ends_as_asked(w)) return FailureClass::kAsked;
  if (w.orphaned) return FailureClass::kOrphaned;
  if (!w.error.empty()) return FailureClass::kConfiguration;
  if (!w.device.empty() && failed_by_itself(w)) return FailureClass::kDevice;
  if (!w.oom.empty()) return FailureClass::kOom;
  if (w.signal != 0) return FailureClass::kSignal;
  switch (w.code) {
    case 0:
      return FailureClass::kNone;
    case kExitResumable:
      return FailureClass::kResumable;
    case kExitNeverAgain:
      return FailureClass::kNeverAgain;
    case kExitCollectiveBroken:
      if (protocol == Protocol::kAntdt) return FailureClass::kCollective;
      break;
    case kExitDataLost:
      if (protocol == Protocol::kAntdt) return FailureClass::kDevice;
      break;
    default:
      break;
  }
  return made_progress ? FailureClass::kProgram : FailureClass::kConfiguration;
}

bool records_are_suspect(const WorkerProcess& w, FailureClass cls) {
  if (cls == FailureClass::kSignal) return w.signal != SIGKILL && w.signal != SIGTERM;
  return cls == FailureClass::kProgram || cls == FailureClass::kOom;
}

std::string describe_end(const WorkerProcess& w, FailureClass cls) {
  if (cls == FailureClass::kHost) return fmt::format("was lost: {}", w.error);
  if (w.hung()) return fmt::format("was ended because it hung: {}", w.error);
  if (w.orphaned) {
    return "was ended on its host because the job daemon or the agent had been silent for "
           "failure.orphan_timeout";
  }
  if (!w.error.empty()) return fmt::format("could not be executed: {}", w.error);
  if (cls == FailureClass::kDevice && w.device.empty() && w.code == kExitDataLost) {
    return "could not read its data any more: its error output names the file";
  }
  if (!w.device.empty()) {
    return fmt::format(
        "failed with its device ({}; {})", w.device,
        w.signal != 0 ? fmt::format("signal {}", w.signal) : fmt::format("exit code {}", w.code));
  }
  if (!w.oom.empty()) return fmt::format("ran out of memory ({})", w.oom);
  if (w.signal != 0) {
    const char* name = sigabbrev_np(w.signal);
    return name == nullptr ? fmt::format("was killed by signal {}", w.signal)
                           : fmt::format("was killed by signal {} (SIG{})", w.signal, name);
  }
  if (cls == FailureClass::kCollective && w.code == kExitCollectiveBroken) {
    return "lost its connection to the other workers";
  }
  return fmt::format("exited with code {}", w.code);
}

double Budgets::refilled(double trained_s) const {
  return refill_s_ > 0 ? std::max(0.0, (trained_s - image_.trained_s) / refill_s_) : 0;
}

bool Budgets::take(FailureClass cls, double trained_s) {
  if (left(cls, trained_s) == 0) return false;
  image_.used.resize(names_of(FailureClass{}).size());
  const double back = refilled(trained_s);
  for (double& used : image_.used) used = std::max(0.0, used - back);
  image_.trained_s = std::max(image_.trained_s, trained_s);
  image_.used[static_cast<std::size_t>(cls)] += 1;
  return true;
}

std::uint32_t Budgets::limit(FailureClass cls) const {
  const auto found = limits_.find(std::string(name_of(cls)));
  return found == limits_.end() ? 0 : found->second;
}

std::uint32_t Budgets::left(FailureClass cls, double trained_s) const {
  const auto index = static_cast<std::size_t>(cls);
  const double used = index < image_.used.size() ? image_.used[index] : 0;
  constexpr double kRounding = 1e-9;
  const double rest = limit(cls) - std::max(0.0, used - refilled(trained_s)) + kRounding;
  return rest < 0 ? 0 : static_cast<std::uint32_t>(rest);
}

// If a character does not end within the bound, all of it is cut off.
void shorten_cause(FailureRecord& failure) {
  std::string& cause = failure.cause;
  std::size_t end = FailureRecord::kMostOfACause;
  if (cause.size() <= end) return;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(cause[at]) & 0xc0U) == 0x80U;
  };
  while (end > 0 && continues(end)) --end;
  cause.resize(end);
  cause.shrink_to_fit();
}

namespace {

// The lower of two is the cause. Peers lose their connections to an orphan. A device that failed
// explains what its process did, but not that a host was lost.
int rank(const FailureRecord& failure) {
  if (failure.cls == static_cast<std::uint8_t>(FailureClass::kDevice)) {
    return 2 * static_cast<int>(FailureClass::kHost) + 1;
  }
  const bool orphan = failure.cls == static_cast<std::uint8_t>(FailureClass::kOrphaned);
  return orphan ? 2 * static_cast<int>(FailureClass::kCollective) - 1 : 2 * failure.cls;
}

}  // namespace

std::size_t first_cause(const std::vector<FailureRecord>& failures, std::uint64_t incident) {
  // Exits on different hosts are reported over links with different delays.
  constexpr double kClockErrorSeconds = 0.5;
  std::size_t first = failures.size();
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const FailureRecord& f = failures[i];
    if (f.incident != incident) continue;
    if (first == failures.size()) {
      first = i;
      continue;
    }
    const FailureRecord& best = failures[first];
    const double error = f.host == best.host ? 0 : kClockErrorSeconds;
    const bool earlier = f.time_s + error < best.time_s;
    if (rank(f) < rank(best) || (f.cls == best.cls && earlier)) first = i;
  }
  return first;
}

}  // namespace antdt::ctl
