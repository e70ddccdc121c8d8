#include "ctl/view.h"

namespace antdt::ctl {

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
