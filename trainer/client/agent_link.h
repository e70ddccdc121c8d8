// What a client exchanges packets with its agent over.
#pragma once

#include <optional>

#include "core/transport/socket.h"
#include "core/wire/envelope.h"

namespace antdt::client {

// Used by the client's message thread alone, and destroyed when that has ended. Nothing blocks.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // kFull: not now; the client tries again.
  [[nodiscard]] virtual transport::SendOutcome send(const wire::Packet& packet) = 0;
  // The next packet, or nothing when none is there.
  [[nodiscard]] virtual std::optional<wire::Packet> receive() = 0;
  // The same one always: readable when receive() should be called until it gives nothing.
  [[nodiscard]] virtual int fd() const = 0;
};

}  // namespace antdt::client
