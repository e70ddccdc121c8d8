#include "core/transport/socket.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/check.h"
#include "core/os/fs.h"
#include "core/transport/ipc_path.h"
#include "core/transport/zmq_error.h"
#include "core/wire/packet.h"

namespace antdt::transport {

namespace {

constexpr int kHighWaterMark = 10000;  // messages, each way, each peer
constexpr std::int64_t kMaxMessageBytes = 64LL * 1024 * 1024;
constexpr int kLingerMs = 1000;  // a last reply still gets out

void set_int(void* socket, int option, int value) {
  const int rc = zmq_setsockopt(socket, option, &value, sizeof(value));
  ANTDT_CHECK(rc == 0, "zmq option {} = {}: {}", option, value, zmq_strerror(zmq_errno()));
}

Status set_text(void* socket, int option, const std::string& value, const char* what) {
  if (zmq_setsockopt(socket, option, value.c_str(), value.size()) == 0) return {};
  return fail_zmq(ErrorKind::kUsage, std::string("using ") + what);
}

// A link over a network finds out by itself that the other side is silent; a
// half-open connection is dropped and made again.
// A name stands for its IPv4 address; an IPv6 address is in brackets.
void set_tcp_options(void* socket, const std::string& host_port) {
  set_int(socket, ZMQ_IPV6, host_port.starts_with('[') ? 1 : 0);
  set_int(socket, ZMQ_HEARTBEAT_IVL, 2000);
  set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, 10000);
  set_int(socket, ZMQ_HEARTBEAT_TTL, 15000);
  set_int(socket, ZMQ_HANDSHAKE_IVL, 5000);
  set_int(socket, ZMQ_CONNECT_TIMEOUT, 5000);
}

// How many of `items` are ready; 0: none within `timeout`.
int poll_for(std::vector<zmq_pollitem_t>& items, Duration timeout) {
  // A day at most, so that "for ever" overflows nothing.
  const MonoTime deadline =
      std::chrono::steady_clock::now() + std::min<Duration>(timeout, std::chrono::hours(24));
  for (;;) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready = zmq_poll(items.data(), static_cast<int>(items.size()),
                               static_cast<long>(std::max<std::int64_t>(ms, 0)));
    if (ready > 0) return ready;
    if (ready == 0 || zmq_errno() != EINTR || left <= Duration::zero()) return 0;
  }
}

bool wait_for(void* socket, short events, Duration timeout) {
  std::vector<zmq_pollitem_t> items{{socket, 0, events, 0}};
  return poll_for(items, timeout) > 0;
}

}  // namespace

struct Socket::State {
  State(void* zmq_socket, bool is_router) : handle(zmq_socket), router(is_router) {
    zmq_msg_init(&message);
  }
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] bool next_frame(std::string& frame);
  void drop_frames();
  void note_user(wire::Packet& packet);

  void* handle;
  bool router;
  bool curve = false;
  zmq_msg_t message;  // the frame received last
  std::string endpoint;
  std::string ipc_path;  // to remove; empty unless this side bound one
  std::optional<FileLock> lock;
};

Socket::State::~State() {
  zmq_msg_close(&message);
  // The path goes while it is still locked, so that nobody else's is removed.
  if (!ipc_path.empty()) unlink(ipc_path.c_str());
  zmq_close(handle);
}

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
Socket::~Socket() = default;

const std::string& Socket::endpoint() const { return state_->endpoint; }
void* Socket::handle() const { return state_->handle; }

// -------------------------------------------------------------------- opening

Result<Socket> Socket::open(Context& context, bool router) {
  void* handle = zmq_socket(context.handle(), router ? ZMQ_ROUTER : ZMQ_DEALER);
  if (handle == nullptr) return fail_zmq(ErrorKind::kIo, "making a socket");
  Socket socket(std::make_unique<State>(handle, router));
  if (router) set_int(handle, ZMQ_ROUTER_MANDATORY, 1);
  set_int(handle, ZMQ_SNDHWM, kHighWaterMark);
  set_int(handle, ZMQ_RCVHWM, kHighWaterMark);
  set_int(handle, ZMQ_LINGER, kLingerMs);
  set_int(handle, ZMQ_BACKLOG, 1024);
  set_int(handle, ZMQ_RECONNECT_IVL, 50);
  set_int(handle, ZMQ_RECONNECT_IVL_MAX, 1000);
  zmq_setsockopt(handle, ZMQ_MAXMSGSIZE, &kMaxMessageBytes, sizeof(kMaxMessageBytes));
  return socket;
}

Result<Socket> Socket::bind_ipc(Context& context, const std::string& path) {
  ANTDT_RETURN_IF_ERROR(check_ipc_path(path));
  ANTDT_TRY(FileLock lock, FileLock::acquire(path + ".lock"));
  ANTDT_TRY(Socket socket, open(context, true));
  State& state = *socket.state_;
  state.endpoint = "ipc://" + path;
  state.lock.emplace(std::move(lock));
  const mode_t before = umask(0177);
  const int rc = zmq_bind(state.handle, state.endpoint.c_str());
  const int error = zmq_errno();
  umask(before);
  if (rc != 0) {
    return fail(ErrorKind::kIo, "binding {}: {}", state.endpoint, zmq_strerror(error));
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
  set_tcp_options(state.handle, host_port);
  set_int(state.handle, ZMQ_CURVE_SERVER, 1);
  ANTDT_RETURN_IF_ERROR(
      set_text(state.handle, ZMQ_CURVE_SECRETKEY, server_keys.secret_z85, "the server's key"));
  ANTDT_RETURN_IF_ERROR(set_text(state.handle, ZMQ_ZAP_DOMAIN, "antdt", "the ZAP domain"));
  std::string wanted = state.endpoint;
  if (wanted.ends_with(":0")) wanted.replace(wanted.size() - 1, 1, "*");
  if (zmq_bind(state.handle, wanted.c_str()) != 0) {
    return fail(ErrorKind::kIo,
                "listening on {}: {}; is the address this machine's and the port free?",
                state.endpoint, zmq_strerror(zmq_errno()));
  }
  std::array<char, 256> got{};
  std::size_t size = got.size();
  if (zmq_getsockopt(state.handle, ZMQ_LAST_ENDPOINT, got.data(), &size) == 0) {
    state.endpoint = got.data();
  }
  return socket;
}

Result<Socket> Socket::connect_ipc(Context& context, const std::string& path) {
  ANTDT_RETURN_IF_ERROR(check_ipc_path(path));
  ANTDT_TRY(Socket socket, open(context, false));
  State& state = *socket.state_;
  state.endpoint = "ipc://" + path;
  if (zmq_connect(state.handle, state.endpoint.c_str()) != 0) {
    return fail_zmq(ErrorKind::kUsage, "connecting to " + state.endpoint);
  }
  return socket;
}

Result<Socket> Socket::connect_tcp(Context& context, const std::string& host_port,
                                   const KeyPair& own_keys, const std::string& server_public_z85) {
  ANTDT_TRY(Socket socket, open(context, false));
  State& state = *socket.state_;
  state.endpoint = "tcp://" + host_port;
  set_tcp_options(state.handle, host_port);
  ANTDT_RETURN_IF_ERROR(
      set_text(state.handle, ZMQ_CURVE_SERVERKEY, server_public_z85, "the server's public key"));
  ANTDT_RETURN_IF_ERROR(
      set_text(state.handle, ZMQ_CURVE_PUBLICKEY, own_keys.public_z85, "the own public key"));
  ANTDT_RETURN_IF_ERROR(
      set_text(state.handle, ZMQ_CURVE_SECRETKEY, own_keys.secret_z85, "the own secret key"));
  if (zmq_connect(state.handle, state.endpoint.c_str()) != 0) {
    return fail_zmq(ErrorKind::kUsage, "connecting to " + state.endpoint + " (expected host:port)");
  }
  return socket;
}

// ------------------------------------------------------- sending and receiving

namespace {

SendOutcome outcome_of(int error) {
  ANTDT_CHECK(error == EAGAIN || error == EHOSTUNREACH, "sending: {}", zmq_strerror(error));
  return error == EAGAIN ? SendOutcome::kFull : SendOutcome::kPeerGone;
}

// Only the first frame of a message can fail for want of room or of a peer:
// ZeroMQ takes a message whole.
bool send_frame(void* socket, const std::string& frame, int flags) {
  int rc = -1;
  do rc = zmq_send(socket, frame.data(), frame.size(), flags | ZMQ_DONTWAIT);
  while (rc < 0 && zmq_errno() == EINTR);
  return rc >= 0;
}

}  // namespace

SendOutcome Socket::send(const wire::Packet& packet) {
  void* handle = state_->handle;
  if (state_->router && !send_frame(handle, packet.peer, ZMQ_SNDMORE)) {
    return outcome_of(zmq_errno());
  }
  if (!send_frame(handle, packet.envelope, ZMQ_SNDMORE)) return outcome_of(zmq_errno());
  if (!send_frame(handle, packet.body, 0)) return outcome_of(zmq_errno());
  return SendOutcome::kSent;
}

bool Socket::State::next_frame(std::string& frame) {
  int rc = -1;
  do rc = zmq_msg_recv(&message, handle, ZMQ_DONTWAIT);
  while (rc < 0 && zmq_errno() == EINTR);
  if (rc < 0) return false;
  frame.assign(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
  return true;
}

void Socket::State::drop_frames() {
  while (zmq_msg_more(&message) != 0) {
    if (zmq_msg_recv(&message, handle, ZMQ_DONTWAIT) < 0) return;
  }
}

void Socket::State::note_user(wire::Packet& packet) {
  if (const char* user = zmq_msg_gets(&message, "User-Id")) packet.user = user;
}

std::optional<wire::Packet> Socket::receive() {
  wire::Packet packet;
  // A message arrives whole: once its first frame is there, all are.
  for (;;) {
    if (state_->router) {
      if (!state_->next_frame(packet.peer)) return std::nullopt;
      if (zmq_msg_more(&state_->message) == 0) continue;
    }
    if (!state_->next_frame(packet.envelope)) return std::nullopt;
    if (zmq_msg_more(&state_->message) == 0) continue;
    if (!state_->next_frame(packet.body)) return std::nullopt;
    if (zmq_msg_more(&state_->message) != 0) {
      state_->drop_frames();
      continue;
    }
    if (state_->curve) state_->note_user(packet);
    return packet;
  }
}

bool Socket::wait_readable(Duration timeout) {
  return wait_for(state_->handle, ZMQ_POLLIN, timeout);
}

bool Socket::wait_readable(const std::vector<Socket>& sockets, Duration timeout, int wake) {
  std::vector<zmq_pollitem_t> items{{nullptr, wake, ZMQ_POLLIN, 0}};
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
