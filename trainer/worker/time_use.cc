#include "trainer/worker/time_use.h"

namespace antdt::worker {

const char* name_of(TimeUse use) {
  switch (use) {
    case TimeUse::kCompute:
      return "compute";
    case TimeUse::kData:
      return "data";
    case TimeUse::kCollectiveWait:
      return "collective_wait";
    case TimeUse::kShardWait:
      return "shard_wait";
    case TimeUse::kReconfigure:
      return "reconfigure";
    case TimeUse::kCheckpoint:
      return "checkpoint";
    case TimeUse::kStartup:
      return "startup";
    case TimeUse::kOther:
      return "other";
  }
  return "";
}

}  // namespace antdt::worker
