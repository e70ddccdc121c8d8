// A worker's end of its agent's ipc socket: a DEALER, as ZeroMQ's is to the
// ROUTER at the other end, without ZeroMQ.
//
// Why: a ZeroMQ socket hands each message to an I/O thread of its process and
// is woken by it for each answer. For one request and its answer that is two
// more thread switches each way than the write and the read that are needed,
// and with many clients on few cores it was the largest part of what a request
// cost (docs/wire-protocol.md has the numbers). Here the calling thread writes
// and reads. For ipc alone: what crosses a network stays with ZeroMQ and CURVE.
//
//     apart ──connect──> greeting ──READY of the peer──> together
//       ^                    │                              │
//       └──── closed, or the peer breaks the protocol ──────┘
//             (then again after 50 ms, later up to a second)
//
// As with ZeroMQ: a peer that is not there is waited for and found again after
// a restart; what is sent meanwhile is kept, up to 10,000 packets; what the
// system had taken when the peer went is lost (requests are sent again, with
// the same seq). Everything but wait_readable() is non-blocking. It belongs to
// one thread.
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
  // Never fails for a peer that is not there.
  [[nodiscard]] static Result<IpcDealer> connect(const std::string& path);
  IpcDealer(IpcDealer&&) noexcept;
  IpcDealer& operator=(IpcDealer&&) noexcept;
  // What was sent last still gets out, unless the peer takes nothing for a second.
  ~IpcDealer();

  // kSent: with the system, or kept until the peer takes it. kFull: too much is
  // kept already.
  [[nodiscard]] SendOutcome send(const wire::Packet& packet);
  // The next packet, or nothing when none is there.
  [[nodiscard]] std::optional<wire::Packet> receive();
  // Blocks until something can be received or `timeout` is over.
  [[nodiscard]] bool wait_readable(Duration timeout);

  // For a loop: the same one always, readable when receive() should be called
  // until it returns nothing. That also connects again and sends what was kept.
  [[nodiscard]] int fd() const;
  [[nodiscard]] const std::string& endpoint() const;

 private:
  struct State;
  explicit IpcDealer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::transport
