// What a worker's wall time goes to. The names are those of wire::TimeAccount.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antdt::worker {

enum class TimeUse : std::uint8_t {
  kCompute,         // forward, backward, update, injected delays
  kData,            // for records that are being read
  kCollectiveWait,  // for other members
  kShardWait,       // for records to be handed out
  kReconfigure,     // from the end of one membership to the next phase
  kCheckpoint,
  kStartup,  // until the first phase
  kOther,
};
inline constexpr std::size_t kTimeUses = 8;
// The name of the field of wire::TimeAccount; lives as long as the program.
[[nodiscard]] const char* name_of(TimeUse use);

}  // namespace antdt::worker
