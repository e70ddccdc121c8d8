// The categories of a worker's wall time. The names are those of wire::TimeAccount.
#pragma once

#include <cstddef>
#include <cstdint>

namespace antdt::worker {

enum class TimeUse : std::uint8_t {
  kCompute,         // forward, backward, update, injected delays
  kData,            // waiting for records that are being read
  kCollectiveWait,  // waiting for other members
  kShardWait,       // waiting for records to be granted
  kReconfigure,     // from the end of one membership to the next phase
  kCheckpoint,
  kStartup,  // until the first phase
  kOther,
};
inline constexpr std::size_t kTimeUses = 8;
// The name of the field of wire::TimeAccount; it lives as long as the program.
[[nodiscard]] const char* name_of(TimeUse use);

}  // namespace antdt::worker
