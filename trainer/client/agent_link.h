// The link over which a client exchanges packets with its agent.
#pragma once

#include <optional>

#include "core/transport/socket.h"
#include "core/wire/envelope.h"

namespace antdt::client {

// Used only by the client's message thread, and destroyed after that has ended. No call blocks.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // kFull: there is no room now; the client tries again.
  [[nodiscard]] virtual transport::SendOutcome send(const wire::Packet& packet) = 0;
  // The next packet; empty if there is none.
  [[nodiscard]] virtual std::optional<wire::Packet> receive() = 0;
  // Always the same descriptor: readable when receive() should be called until it returns nothing.
  [[nodiscard]] virtual int fd() const = 0;
};

}  // namespace antdt::client
