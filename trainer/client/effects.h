// What a worker's client wants done (client_core.h).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/messages.h"

namespace antdt::client {

using OutboundBody = std::variant<wire::Hello, wire::Join, wire::Address, wire::Ready, wire::Fetch,
                                  wire::Recalled, wire::Report, wire::Progress,
                                  wire::CheckpointBegun, wire::CheckpointWritten, wire::Bye>;
// To the agent, in this order.
struct SendMessage {
  Generation generation;
  std::uint64_t seq = 0;
  OutboundBody body;
};
// Whatever waits in the collective of this generation, or of an earlier one, is to be released.
struct ReleaseCollective {
  Generation generation;
};
using Effect = std::variant<SendMessage, ReleaseCollective>;
using Effects = std::vector<Effect>;

}  // namespace antdt::client
