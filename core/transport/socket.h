// ZeroMQ sockets that carry wire::Packet, over ipc or CURVE-protected tcp.
//
// What ZeroMQ does by itself, and what is done about it here: a ROUTER drops messages for a peer
// that is gone or slow (send() reports it, and the caller keeps what must not be lost and sends it
// again); peers never set routing ids; binding an ipc path would take it from a live owner (a lock
// file beside it is taken first; path and lock are removed with the socket); a message to a server
// that has just gone, before that is noticed, is lost (requests are sent again, with the same seq,
// until they are answered). A frame is at most 64 MiB, and a peer that sends more is disconnected.
// Everything is non-blocking. zmq headers are only included in this folder.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/keys.h"
#include "core/wire/envelope.h"

namespace antdt {
class EventLoop;
}
namespace zmq {
class context_t;
}

namespace antdt::transport {

// How long a peer of a tcp socket may take until it is admitted. It then tries again.
inline constexpr std::chrono::milliseconds kHandshake{5000};

// One for each process. Threads may share it. A socket belongs to one thread and must be destroyed
// before the context, whose destructor waits (up to a second) until the last messages are sent.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  [[nodiscard]] zmq::context_t& native() { return *context_; }

  // Decides for every tcp server socket of this context which keys may connect; runs on `loop`.
  // Call it before a tcp bind. The loop must not run any more once the context is destroyed.
  // Existing connections stay, whatever the decision would be now. A peer whose key becomes
  // authorized while it waits, for up to kHandshake, gets in at once.
  [[nodiscard]] Status serve_authentication(EventLoop& loop, NameOfKey name_of);
  [[nodiscard]] Status serve_authentication(EventLoop& loop, AuthorizedKeys authorized);
  [[nodiscard]] bool authenticates() const { return authentication_ != nullptr; }

 private:
  struct Authentication;
  std::unique_ptr<zmq::context_t> context_;
  std::shared_ptr<Authentication> authentication_;  // goes before its context
};

enum class SendOutcome {
  kSent,      // passed to ZeroMQ; it may still be lost if the peer goes
  kFull,      // the high-water mark is reached: keep the message and try later
  kPeerGone,  // no such peer (any more)
};

// The bytes of messages that were passed to ZeroMQ and that it still has, because it has not
// written them to a connection. It bounds only their number, so a sender that wants to bound the
// memory that a slow peer takes counts them by this.
class InFlight {
 public:
  [[nodiscard]] std::size_t bytes() const { return *bytes_; }

 private:
  friend class Socket;
  using Count = std::shared_ptr<std::atomic<std::size_t>>;  // shared with ZeroMQ's threads
  Count bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
};

// How many messages a socket keeps for each peer, in each direction.
inline constexpr int kHighWaterMark = 10000;

class Socket {
 public:
  // A socket that answers many peers. For tcp, `server_keys` are this side's keys, and the context
  // must authenticate; otherwise binding is refused. `unread`: how many messages of each peer may
  // wait for receive(); a peer that sends more waits.
  [[nodiscard]] static Result<Socket> bind_ipc(Context& context, const std::string& path,
                                               int unread = kHighWaterMark);
  [[nodiscard]] static Result<Socket> bind_tcp(Context& context, const std::string& host_port,
                                               const KeyPair& server_keys);
  // A socket to one peer. Connecting does not fail if the peer is not there; the socket waits and
  // connects again.
  [[nodiscard]] static Result<Socket> connect_ipc(Context& context, const std::string& path);
  [[nodiscard]] static Result<Socket> connect_tcp(Context& context, const std::string& host_port,
                                                  const KeyPair& own_keys,
                                                  const std::string& server_public_z85);
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  [[nodiscard]] SendOutcome send(const wire::Packet& packet);
  // The same; the packet counts in `in_flight` until ZeroMQ has written it.
  [[nodiscard]] SendOutcome send(const wire::Packet& packet, InFlight& in_flight);
  // The next packet; empty if there is none. Messages that do not have two frames are dropped here.
  [[nodiscard]] std::optional<wire::Packet> receive();
  // Blocks until something can be received or `timeout` is over; for programs without a loop.
  [[nodiscard]] bool wait_readable(Duration timeout);
  // The same for any of these sockets; false at once when the file descriptor `wake` is readable.
  [[nodiscard]] static bool wait_readable(const std::vector<Socket>& sockets, Duration timeout,
                                          int wake);

  // "tcp://10.0.0.1:7700" or "ipc:///run/…", for messages to people; if port 0 was requested, with
  // the actual port.
  [[nodiscard]] const std::string& endpoint() const;
  [[nodiscard]] void* handle() const;

 private:
  struct State;
  explicit Socket(std::unique_ptr<State> state);
  [[nodiscard]] static Result<Socket> open(Context& context, bool router);
  [[nodiscard]] SendOutcome send_frames(const wire::Packet& packet, const InFlight::Count& count);
  std::unique_ptr<State> state_;
};

// Sends one request and waits for its reply, the packet whose envelope repeats `seq`; for
// command-line programs and tests. Other packets that arrive meanwhile are dropped. The error names
// the end point and how long it was tried.
[[nodiscard]] Result<wire::Packet> request(Socket& socket, const wire::Packet& packet,
                                           Duration timeout);

}  // namespace antdt::transport
