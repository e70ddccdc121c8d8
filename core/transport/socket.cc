#include "core/transport/socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <zmq.hpp>

#include "core/check.h"
#include "core/os/fs.h"
#include "core/transport/ipc_path.h"
#include "core/transport/zmq_error.h"
#include "core/wire/packet.h"

namespace antdt::transport {

namespace {

constexpr int kLingerMs = 1000;  // so that a last reply is still sent

// A link over a network detects by itself that the other side is silent; a half-open connection is
// dropped and made again. A host name stands for its IPv4 address; an IPv6 address is in brackets.
void set_tcp_options(zmq::socket_t& socket, const std::string& host_port) {
  socket.set(zmq::sockopt::ipv6, host_port.starts_with('['));
  socket.set(zmq::sockopt::heartbeat_ivl, 2000);
  socket.set(zmq::sockopt::heartbeat_timeout, 10000);
  socket.set(zmq::sockopt::heartbeat_ttl, 15000);
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(kHandshake.count()));
  socket.set(zmq::sockopt::connect_timeout, 5000);
}

// Sets an option to a text that comes from outside and may be wrong.
template <class Option>
Status set_text(zmq::socket_t& socket, Option option, const std::string& value, const char* what) {
  try {
    socket.set(option, value);
    return {};
  } catch (const zmq::error_t& error) {
    return fail_zmq(ErrorKind::kUsage, std::string("using ") + what, error);
  }
}

// How many of `items` are ready; 0 if none is within `timeout`.
std::size_t poll_for(std::vector<zmq::pollitem_t>& items, Duration timeout) {
  // At most a day, so that "forever" does not overflow.
  const MonoTime deadline =
      std::chrono::steady_clock::now() + std::min<Duration>(timeout, std::chrono::hours(24));
  for (;;) {
    const Duration left =
        std::max<Duration>(deadline - std::chrono::steady_clock::now(), Duration::zero());
    try {
      return static_cast<std::size_t>(
          zmq::poll(items, std::chrono::ceil<std::chrono::milliseconds>(left)));
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR || left == Duration::zero()) return 0;
    }
  }
}

bool wait_for(void* socket, short events, Duration timeout) {
  std::vector<zmq::pollitem_t> items{{socket, 0, events, 0}};
  return poll_for(items, timeout) > 0;
}

// Neither of these waits. If a signal interrupts the call, it is made again.
bool send_frame(zmq::socket_t& socket, const std::string& frame, zmq::send_flags flags) {
  for (;;) {
    try {
      return socket.send(zmq::buffer(frame), flags | zmq::send_flags::dontwait).has_value();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

using Count = std::shared_ptr<std::atomic<std::size_t>>;

struct CountedFrame {
  std::string bytes;
  Count count;
};

// Called by a thread of ZeroMQ once it has no more use for the frame.
void release_frame(void*, void* frame) {
  const std::unique_ptr<CountedFrame> ended(static_cast<CountedFrame*>(frame));
  ended->count->fetch_sub(ended->bytes.size());
}

bool send_counted(zmq::socket_t& socket, const std::string& bytes, const Count& count,
                  zmq::send_flags flags) {
  auto frame = std::make_unique<CountedFrame>(CountedFrame{bytes, count});
  zmq::message_t message(frame->bytes.data(), frame->bytes.size(), release_frame, frame.get());
  count->fetch_add(bytes.size());
  static_cast<void>(frame.release());  // the message's
  for (;;) {
    try {
      return socket.send(message, flags | zmq::send_flags::dontwait).has_value();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

bool receive_frame(zmq::socket_t& socket, zmq::message_t& message) {
  for (;;) {
    try {
      return socket.recv(message, zmq::recv_flags::dontwait).has_value();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) return false;
    }
  }
}

}  // namespace

struct Socket::State {
  State(zmq::context_t& context, bool is_router)
      : socket(context, is_router ? zmq::socket_type::router : zmq::socket_type::dealer),
        router(is_router) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] bool next_frame(std::string& frame);
  void drop_frames();
  void note_user(wire::Packet& packet);

  zmq::socket_t socket;
  bool router;
  bool curve = false;
  zmq::message_t message;  // the frame that was received last
  std::string endpoint;
  std::string ipc_path;  // path to remove; empty unless this side bound one
  std::optional<FileLock> lock;
};

Socket::State::~State() {
  // The path is removed while the lock is still held, so that another owner's path is not removed.
  if (!ipc_path.empty()) unlink(ipc_path.c_str());
  socket.close();
}

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
Socket::~Socket() = default;

const std::string& Socket::endpoint() const { return state_->endpoint; }
void* Socket::handle() const { return state_->socket.handle(); }

// -------------------------------------------------------------------- opening

namespace {

// The message of the error is the cause alone.
Status bind_to(zmq::socket_t& socket, const std::string& endpoint) {
  try {
    socket.bind(endpoint);
    return {};
  } catch (const zmq::error_t& error) {
    return fail(ErrorKind::kIo, "{}", error.what());
  }
}

Status connect_to(zmq::socket_t& socket, const std::string& endpoint, const char* hint) {
  try {
    socket.connect(endpoint);
    return {};
  } catch (const zmq::error_t& error) {
    return fail_zmq(ErrorKind::kUsage, "connecting to " + endpoint + hint, error);
  }
}

}  // namespace

Result<Socket> Socket::open(Context& context, bool router) {
  try {
    Socket opened(std::make_unique<State>(context.native(), router));
    zmq::socket_t& socket = opened.state_->socket;
    if (router) socket.set(zmq::sockopt::router_mandatory, true);
    socket.set(zmq::sockopt::sndhwm, kHighWaterMark);
    socket.set(zmq::sockopt::rcvhwm, kHighWaterMark);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::backlog, 1024);
    socket.set(zmq::sockopt::reconnect_ivl, 50);
    socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(wire::kMostFrameBytes));
    return opened;
  } catch (const zmq::error_t& error) {
    if (error.num() == EMFILE) {
      return fail(ErrorKind::kIo,
                  "making a socket: {}; a higher limit of open files of this process helps (see "
                  "'ulimit -n')",
                  error.what());
    }
    return fail_zmq(ErrorKind::kIo, "making a socket", error);
  }
}

Result<Socket> Socket::bind_ipc(Context& context, const std::string& path, int unread) {
  ANTDT_RETURN_IF_ERROR(check_ipc_path(path));
  ANTDT_TRY(FileLock lock, FileLock::acquire(path + ".lock"));
  ANTDT_TRY(Socket socket, open(context, true));
  State& state = *socket.state_;
  state.socket.set(zmq::sockopt::rcvhwm, unread);
  state.endpoint = "ipc://" + path;
  state.lock.emplace(std::move(lock));
  const mode_t before = umask(0177);
  const Status bound = bind_to(state.socket, state.endpoint);
  umask(before);
  if (!bound) {
    return fail(ErrorKind::kIo, "binding {}: {}", state.endpoint, bound.error().message);
  }
  state.ipc_path = path;
  return socket;
}

Result<Socket> Socket::bind_tcp(Context& context, const std::string& host_port,
                                const KeyPair& server_keys) {
  if (!context.authenticates()) {
    return fail(ErrorKind::kUsage,
                "refusing to listen on tcp://{} without authorized keys: make keys with 'antdt "
                "keygen' and name them",
                host_port);
  }
  ANTDT_TRY(Socket socket, open(context, true));
  State& state = *socket.state_;
  state.curve = true;
  state.endpoint = "tcp://" + host_port;
  set_tcp_options(state.socket, host_port);
  state.socket.set(zmq::sockopt::curve_server, true);
  ANTDT_RETURN_IF_ERROR(set_text(state.socket, zmq::sockopt::curve_secretkey,
                                 server_keys.secret_z85, "the server's key"));
  state.socket.set(zmq::sockopt::zap_domain, "antdt");
  std::string wanted = state.endpoint;
  if (wanted.ends_with(":0")) wanted.replace(wanted.size() - 1, 1, "*");
  if (const Status bound = bind_to(state.socket, wanted); !bound) {
    return fail(ErrorKind::kIo,
                "listening on {}: {}; is the address this machine's and the port free?",
                state.endpoint, bound.error().message);
  }
  state.endpoint = state.socket.get(zmq::sockopt::last_endpoint);
  return socket;
}

Result<Socket> Socket::connect_ipc(Context& context, const std::string& path) {
  ANTDT_RETURN_IF_ERROR(check_ipc_path(path));
  ANTDT_TRY(Socket socket, open(context, false));
  State& state = *socket.state_;
  state.endpoint = "ipc://" + path;
  ANTDT_RETURN_IF_ERROR(connect_to(state.socket, state.endpoint, ""));
  return socket;
}

Result<Socket> Socket::connect_tcp(Context& context, const std::string& host_port,
                                   const KeyPair& own_keys, const std::string& server_public_z85) {
  ANTDT_TRY(Socket socket, open(context, false));
  State& state = *socket.state_;
  state.endpoint = "tcp://" + host_port;
  set_tcp_options(state.socket, host_port);
  ANTDT_RETURN_IF_ERROR(set_text(state.socket, zmq::sockopt::curve_serverkey, server_public_z85,
                                 "the server's public key"));
  ANTDT_RETURN_IF_ERROR(set_text(state.socket, zmq::sockopt::curve_publickey, own_keys.public_z85,
                                 "the own public key"));
  ANTDT_RETURN_IF_ERROR(set_text(state.socket, zmq::sockopt::curve_secretkey, own_keys.secret_z85,
                                 "the own secret key"));
  ANTDT_RETURN_IF_ERROR(connect_to(state.socket, state.endpoint, " (expected host:port)"));
  return socket;
}

// ------------------------------------------------------- sending and receiving

// Only the first frame of a message can fail for lack of room or because the peer is gone: ZeroMQ
// accepts a message as a whole.
SendOutcome Socket::send_frames(const wire::Packet& packet, const InFlight::Count& count) {
  zmq::socket_t& socket = state_->socket;
  const auto send_one = [&](const std::string& frame, zmq::send_flags flags) {
    return count == nullptr ? send_frame(socket, frame, flags)
                            : send_counted(socket, frame, count, flags);
  };
  try {
    const bool sent =
        (!state_->router || send_frame(socket, packet.peer, zmq::send_flags::sndmore)) &&
        send_one(packet.envelope, zmq::send_flags::sndmore) &&
        send_one(packet.body, zmq::send_flags::none);
    return sent ? SendOutcome::kSent : SendOutcome::kFull;
  } catch (const zmq::error_t& error) {
    ANTDT_CHECK(error.num() == EHOSTUNREACH, "sending: {}", error.what());
    return SendOutcome::kPeerGone;
  }
}

SendOutcome Socket::send(const wire::Packet& packet) { return send_frames(packet, nullptr); }

SendOutcome Socket::send(const wire::Packet& packet, InFlight& in_flight) {
  return send_frames(packet, in_flight.bytes_);
}

bool Socket::State::next_frame(std::string& frame) {
  if (!receive_frame(socket, message)) return false;
  frame.assign(message.data<char>(), message.size());
  return true;
}

void Socket::State::drop_frames() {
  while (message.more()) {
    if (!receive_frame(socket, message)) return;
  }
}

void Socket::State::note_user(wire::Packet& packet) {
  try {
    packet.user = message.gets("User-Id");
  } catch (const zmq::error_t&) {
    packet.user.clear();  // it says none
  }
}

std::optional<wire::Packet> Socket::receive() {
  wire::Packet packet;
  const zmq::message_t& last = state_->message;
  // A message arrives as a whole: if its first frame is there, all are.
  for (;;) {
    if (state_->router) {
      if (!state_->next_frame(packet.peer)) return std::nullopt;
      if (!last.more()) continue;
    }
    if (!state_->next_frame(packet.envelope)) return std::nullopt;
    if (!last.more()) continue;
    if (!state_->next_frame(packet.body)) return std::nullopt;
    if (last.more()) {
      state_->drop_frames();
      continue;
    }
    if (state_->curve) state_->note_user(packet);
    return packet;
  }
}

bool Socket::wait_readable(Duration timeout) {
  return wait_for(state_->socket.handle(), ZMQ_POLLIN, timeout);
}

bool Socket::wait_readable(const std::vector<Socket>& sockets, Duration timeout, int wake) {
  std::vector<zmq::pollitem_t> items{{nullptr, wake, ZMQ_POLLIN, 0}};
  for (const Socket& socket : sockets) items.push_back({socket.handle(), 0, ZMQ_POLLIN, 0});
  return poll_for(items, timeout) > 0 && items.front().revents == 0;
}

// --------------------------------------------------------------------- request

Result<wire::Packet> request(Socket& socket, const wire::Packet& packet, Duration timeout) {
  const MonoTime deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] { return deadline - std::chrono::steady_clock::now(); };
  ANTDT_TRY(const wire::Envelope asked, wire::open_envelope(packet));
  while (socket.send(packet) != SendOutcome::kSent) {
    if (!wait_for(socket.handle(), ZMQ_POLLOUT, left())) {
      return fail(ErrorKind::kUnreachable, "sending '{}' to {}: no room for {} s", asked.kind,
                  socket.endpoint(), to_seconds(timeout));
    }
  }
  while (socket.wait_readable(left())) {
    std::optional<wire::Packet> reply = socket.receive();
    if (!reply) continue;
    const Result<wire::Envelope> envelope = wire::open_envelope(*reply);
    if (envelope && envelope->seq == asked.seq) return std::move(*reply);
  }
  return fail(ErrorKind::kUnreachable, "no answer to '{}' from {} within {} s", asked.kind,
              socket.endpoint(), to_seconds(timeout));
}

}  // namespace antdt::transport
