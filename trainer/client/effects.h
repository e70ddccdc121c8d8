// The effects of a worker's client (client_core.h).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/messages.h"

namespace antdt::client {

using OutboundBody =
    std::variant<wire::Hello, wire::Join, wire::Address, wire::Ready, wire::Fetch, wire::Recalled,
                 wire::Report, wire::Progress, wire::CheckpointBegun, wire::CheckpointWritten,
                 wire::Bye, wire::Traced, wire::StackTold>;
// Send to the agent, in this order.
struct SendMessage {
  Generation generation;
  std::uint64_t seq = 0;
  OutboundBody body;
};
// Release whatever waits in the collective of this generation or an earlier one.
struct ReleaseCollective {
  Generation generation;
};
using Effect = std::variant<SendMessage, ReleaseCollective>;
using Effects = std::vector<Effect>;

}  // namespace antdt::client
