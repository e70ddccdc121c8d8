#include "ctl/monitor/view.h"

#include <algorithm>
#include <optional>

namespace antdt::ctl {

double shared_wait_s(const std::vector<WorkerView>& workers) {
  std::optional<double> least;
  for (const WorkerView& w : workers) {
    if (w.measured) least = std::min(least.value_or(w.wait_s()), w.wait_s());
  }
  return least.value_or(0);
}

std::string_view to_string(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kNone:
      return "none";
    case VerdictKind::kTransient:
      return "transient";
    case VerdictKind::kPersistent:
      return "persistent";
    case VerdictKind::kDeterministic:
      return "deterministic";
    case VerdictKind::kLeader:
      return "leader";
  }
  return "none";
}

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::kUnknown:
      return "unknown";
    case Cause::kData:
      return "data";
    case Cause::kCompute:
      return "compute";
    case Cause::kThrottled:
      return "throttled";
    case Cause::kStolen:
      return "stolen";
    case Cause::kContended:
      return "contended";
    case Cause::kMemory:
      return "memory";
    case Cause::kClocks:
      return "clocks";
    case Cause::kNetwork:
      return "network";
    case Cause::kDevice:
      return "device";
  }
  return "unknown";
}

}  // namespace antdt::ctl
