// A worker's end of its agent's ipc socket: a DEALER like ZeroMQ's, connected to a ROUTER, but
// without ZeroMQ.
//
// Why: a ZeroMQ socket passes each message to an I/O thread of its process, which wakes it for each
// answer. For a request and its answer that is two more thread switches in each direction than the
// necessary write and read. With many clients on few cores this was the largest part of the cost of
// a request (docs/wire-protocol.md has the numbers). Here the calling thread writes and reads. This
// is for ipc only: what crosses a network stays with ZeroMQ and CURVE.
//
//     apart ──connect──> greeting ──READY of the peer──> together
//       ^                    │                              │
//       └──── closed, or the peer breaks the protocol ──────┘
//             (then again after 50 ms, later up to a second)
//
// As with ZeroMQ, a peer that is not there is waited for, and found again after a restart. Packets
// that are sent meanwhile are kept, up to 10,000. What the system had accepted when the peer went
// is lost (requests are sent again, with the same seq). Everything but wait_readable() is
// non-blocking. The object belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"

namespace antdt::transport {

class IpcDealer {
 public:
  // Does not fail if the peer is not there.
  [[nodiscard]] static Result<IpcDealer> connect(const std::string& path);
  IpcDealer(IpcDealer&&) noexcept;
  IpcDealer& operator=(IpcDealer&&) noexcept;
  // The last packets are still sent, unless the peer accepts nothing for a second.
  ~IpcDealer();

  // kSent: the system has it, or it is kept until the peer accepts it. kFull: too much is kept
  // already.
  [[nodiscard]] SendOutcome send(const wire::Packet& packet);
  // The next packet; empty if there is none.
  [[nodiscard]] std::optional<wire::Packet> receive();
  // Blocks until something can be received or `timeout` is over.
  [[nodiscard]] bool wait_readable(Duration timeout);

  // For a loop: always the same descriptor, readable when receive() should be called until it
  // returns nothing. receive() also reconnects, and sends what was kept.
  [[nodiscard]] int fd() const;
  [[nodiscard]] const std::string& endpoint() const;

 private:
  struct State;
  explicit IpcDealer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::transport
