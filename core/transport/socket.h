// ZeroMQ sockets that carry wire::Packet, over ipc or CURVE-protected tcp.
//
// What ZeroMQ does by itself and what is done about it here: a ROUTER drops
// messages for a peer that is gone or slow (send() reports it, the caller
// keeps what it must not lose and sends again); no routing id is ever set by
// a peer; binding an ipc path would steal it from a live owner (a lock file
// beside it is taken first; path and lock are removed with the socket); what is
// sent to a server that has just gone, before that is noticed, is lost (requests
// are sent again, with the same seq, until they are answered).
// A frame is at most 64 MiB; a peer that sends more is cut off. Everything is
// non-blocking. zmq headers are included nowhere outside this folder.
#pragma once

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

namespace antdt::transport {

// One for each process. Threads may share it; sockets belong to one thread, and
// are destroyed before it: destroying it waits (up to a second) until what they
// sent last is out.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  [[nodiscard]] void* handle() const { return handle_; }

  // Answers the question "may this key connect?" for every tcp server socket
  // of this context, on `loop`. Call before a tcp bind. The loop must not run
  // any more once the context is destroyed. Who is connected stays so, whatever
  // the answer would be now.
  [[nodiscard]] Status serve_authentication(EventLoop& loop, NameOfKey name_of);
  [[nodiscard]] Status serve_authentication(EventLoop& loop, AuthorizedKeys authorized);
  [[nodiscard]] bool authenticates() const { return authentication_ != nullptr; }

 private:
  struct Authentication;
  void* handle_;
  std::unique_ptr<Authentication> authentication_;
};

enum class SendOutcome {
  kSent,      // handed to ZeroMQ; it may still be lost if the peer goes
  kFull,      // its high-water mark is reached: keep it, try later
  kPeerGone,  // no such peer (any more)
};

class Socket {
 public:
  // A socket that answers many peers. For tcp, `server_keys` are this side's
  // keys and the context must authenticate, otherwise binding is refused.
  [[nodiscard]] static Result<Socket> bind_ipc(Context& context, const std::string& path);
  [[nodiscard]] static Result<Socket> bind_tcp(Context& context, const std::string& host_port,
                                               const KeyPair& server_keys);
  // A socket to one peer. Connecting never fails at once: a peer that is not
  // there is waited for and reconnected to.
  [[nodiscard]] static Result<Socket> connect_ipc(Context& context, const std::string& path);
  [[nodiscard]] static Result<Socket> connect_tcp(Context& context, const std::string& host_port,
                                                  const KeyPair& own_keys,
                                                  const std::string& server_public_z85);
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  [[nodiscard]] SendOutcome send(const wire::Packet& packet);
  // The next packet, or nothing when none is there. Messages that do not have
  // two frames are dropped here.
  [[nodiscard]] std::optional<wire::Packet> receive();
  // Blocks until something can be received or `timeout` is over; for programs
  // without a loop.
  [[nodiscard]] bool wait_readable(Duration timeout);
  // The same of any of these; false at once when the file descriptor `wake` is readable.
  [[nodiscard]] static bool wait_readable(const std::vector<Socket>& sockets, Duration timeout,
                                          int wake);

  // "tcp://10.0.0.1:7700" or "ipc:///run/…": for messages to people; with
  // port 0 asked for, the port that was got.
  [[nodiscard]] const std::string& endpoint() const;
  [[nodiscard]] void* handle() const;

 private:
  struct State;
  explicit Socket(std::unique_ptr<State> state);
  [[nodiscard]] static Result<Socket> open(Context& context, bool router);
  std::unique_ptr<State> state_;
};

// Sends one request and waits for its reply, the packet whose envelope repeats
// `seq`; for command-line programs and tests. Anything else that arrives
// meanwhile is dropped. The error names the
// end point and how long it was tried.
[[nodiscard]] Result<wire::Packet> request(Socket& socket, const wire::Packet& packet,
                                           Duration timeout);

}  // namespace antdt::transport
