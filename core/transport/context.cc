#include <array>
#include <cstring>
#include <deque>
#include <vector>
#include <zmq.hpp>

#include "core/log/log.h"
#include "core/loop.h"
#include "core/threads/blocked_signals.h"
#include "core/transport/socket.h"
#include "core/transport/zmq_error.h"

namespace antdt::transport {

namespace {

// Requests and replies of ZeroMQ's authentication protocol (https://rfc.zeromq.org/spec/27/), with
// one request for each connection. Before them are the address of the asking socket and an empty
// frame.
constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kZapVersion = 2;
constexpr std::size_t kZapRequest = 3;
constexpr std::size_t kZapMechanism = 7;
constexpr std::size_t kZapCredentials = 8;

// How often keys that are not authorized are looked at again, for how long at a time, and how many
// may wait.
constexpr Duration kLookAgain = std::chrono::milliseconds(20);
constexpr Duration kLooking = std::chrono::milliseconds(1);
constexpr std::size_t kMostWaiting = 1024;

std::vector<std::string> receive_frames(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t message;
  while (socket.recv(message, zmq::recv_flags::dontwait)) {
    frames.push_back(message.to_string());
    if (!message.more()) break;
  }
  return frames;
}

void send_frames(zmq::socket_t& socket, const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const bool last = i + 1 == frames.size();
    const auto flags =
        last ? zmq::send_flags::dontwait : zmq::send_flags::dontwait | zmq::send_flags::sndmore;
    if (!socket.send(zmq::buffer(frames[i]), flags)) return;
  }
}

std::string key_of(const std::vector<std::string>& request) {
  if (request.size() != kZapCredentials + 1 || request[kZapMechanism] != "CURVE" ||
      request[kZapCredentials].size() != 32) {
    return {};
  }
  std::array<char, 41> z85{};
  zmq_z85_encode(z85.data(), reinterpret_cast<const std::uint8_t*>(request[kZapCredentials].data()),
                 32);
  return z85.data();
}

}  // namespace

// A peer whose key is not authorized is not answered until it is, or until the handshake is over:
// it may be one of a group that begins, where the key is authorized a moment later. A refusal would
// cost such a peer the whole time of a handshake (socket.h), because ZeroMQ leaves a connection
// that was refused for a while as it is.
//
// The loop calls arrived() and look_again(). The loop may have been destroyed before this object,
// so nothing is unwatched here.
struct Context::Authentication : std::enable_shared_from_this<Context::Authentication> {
  Authentication(zmq::context_t& context, EventLoop& with_loop, NameOfKey names)
      : socket(context, zmq::socket_type::router), loop(with_loop), name_of(std::move(names)) {}

  struct Waiting {
    std::vector<std::string> request;
    std::string key;
    MonoTime until;
  };

  // If answering fails the peers try again.
  void arrived() noexcept;
  void look_again() noexcept;
  void take_all();
  [[nodiscard]] bool admits(const Waiting& peer);
  void answer(const Waiting& peer, const std::string& name);
  void refuse(const Waiting& peer);
  void look_soon();

  zmq::socket_t socket;
  EventLoop& loop;
  NameOfKey name_of;
  std::deque<Waiting> waiting;  // in the order of their arrival
  std::size_t next = 0;         // of them: which is looked at next
  bool looks = false;
  std::string refused_last;  // a peer tries again and again, so it is logged once
};

void Context::Authentication::arrived() noexcept {
  try {
    take_all();
  } catch (const zmq::error_t& error) {
    log_warn("answering who may connect: {}", error.what());
  }
}

void Context::Authentication::take_all() {
  for (int n = 0; n < 64; ++n) {
    std::vector<std::string> request = receive_frames(socket);
    if (request.empty()) break;
    if (request.size() <= kZapRequest) continue;
    Waiting peer{std::move(request), {}, loop.now() + kHandshake};
    peer.key = key_of(peer.request);
    if (admits(peer)) continue;
    const bool may_wait = !peer.key.empty() && waiting.size() < kMostWaiting;
    may_wait ? waiting.push_back(std::move(peer)) : refuse(peer);
  }
  look_soon();
}

void Context::Authentication::look_again() noexcept {
  looks = false;
  try {
    const MonoTime stop = loop.now() + kLooking;
    for (std::size_t n = waiting.size(); n > 0 && loop.now() < stop; --n) {
      if (next >= waiting.size()) next = 0;
      admits(waiting[next])
          ? void(waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(next)))
          : void(++next);
    }
    while (!waiting.empty() && waiting.front().until <= loop.now()) {
      refuse(waiting.front());
      waiting.pop_front();
    }
  } catch (const zmq::error_t& error) {
    log_warn("answering who may connect: {}", error.what());
  }
  look_soon();
}

void Context::Authentication::look_soon() {
  if (looks || waiting.empty()) return;
  looks = true;
  loop.call_after(kLookAgain, [served = weak_from_this()] {
    if (const auto self = served.lock()) self->look_again();
  });
}

bool Context::Authentication::admits(const Waiting& peer) {
  const std::string name = peer.key.empty() ? std::string() : name_of(peer.key);
  if (!name.empty()) answer(peer, name);
  return !name.empty();
}

// The code of a refusal is 300 and not 400: the peer is disconnected without an answer and may try
// again, so a key that is authorized later is admitted without a restart.
void Context::Authentication::answer(const Waiting& peer, const std::string& name) {
  const bool known = !name.empty();
  send_frames(socket, {peer.request[0], peer.request[1], peer.request[kZapVersion],
                       peer.request[kZapRequest], known ? "200" : "300",
                       known ? "OK" : "not authorized", name, ""});
}

void Context::Authentication::refuse(const Waiting& peer) {
  answer(peer, "");
  if (peer.key == refused_last) return;
  refused_last = peer.key;
  log_warn("connection refused: the key '{}' is not authorized", peer.key);
}

Context::Context() : context_(std::make_unique<zmq::context_t>()) {
  context_->set(zmq::ctxopt::max_sockets, 8192);
  context_->set(zmq::ctxopt::blocky, 0);
  // The first socket starts ZeroMQ's threads.
  const BlockedSignals blocked;
  static_cast<void>(zmq::socket_t(*context_, zmq::socket_type::pair));
}

Context::~Context() = default;

Status Context::serve_authentication(EventLoop& loop, AuthorizedKeys authorized) {
  return serve_authentication(loop, [keys = std::move(authorized)](const std::string& key) mutable {
    return keys.name_of(key);
  });
}

Status Context::serve_authentication(EventLoop& loop, NameOfKey name_of) {
  if (authentication_ != nullptr) {
    return fail(ErrorKind::kInternal, "authentication is served already");
  }
  try {
    auto authentication = std::make_shared<Authentication>(*context_, loop, std::move(name_of));
    authentication->socket.bind(kZapEndpoint);
    loop.watch_handle(authentication->socket.handle(),
                      [served = authentication.get()] { served->arrived(); });
    authentication_ = std::move(authentication);
    return {};
  } catch (const zmq::error_t& error) {
    return fail_zmq(ErrorKind::kIo, std::string("binding ") + kZapEndpoint, error);
  }
}

}  // namespace antdt::transport

#if defined(__SANITIZE_THREAD__)
// Debian's libzmq and the libsodium that it uses are not built for the thread sanitizer, which
// therefore does not see how their threads pass messages to ours, and reports races that do not
// exist. The sanitizer's library looks for this name.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\nrace:libzmq.so\n";
}
#endif
