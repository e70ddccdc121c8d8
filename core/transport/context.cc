#include <array>
#include <cstring>
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
// one request for each connection.
constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kZapMechanism = 5;
constexpr std::size_t kZapCredentials = 6;

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

// The loop calls answer(). The loop may have been destroyed before this object, so nothing is
// unwatched here.
struct Context::Authentication {
  Authentication(zmq::context_t& context, NameOfKey names)
      : socket(context, zmq::socket_type::rep), name_of(std::move(names)) {}

  // Answers what has arrived. If that fails the peers try again.
  void answer() noexcept;
  void answer_all();
  void note_refusal(const std::string& key);

  zmq::socket_t socket;
  NameOfKey name_of;
  std::string refused_last;  // a peer tries again every second, so it is logged once
};

void Context::Authentication::answer() noexcept {
  try {
    answer_all();
  } catch (const zmq::error_t& error) {
    log_warn("answering who may connect: {}", error.what());
  }
}

void Context::Authentication::answer_all() {
  for (int n = 0; n < 64; ++n) {
    const std::vector<std::string> request = receive_frames(socket);
    if (request.size() < 2) return;
    const std::string key = key_of(request);
    const std::string name = key.empty() ? std::string() : name_of(key);
    if (name.empty()) note_refusal(key);
    // The code is 300 and not 400: the peer is disconnected without an answer and may try again, so
    // a key that is authorized later is admitted without a restart.
    send_frames(socket, {request[0], request[1], name.empty() ? "300" : "200",
                         name.empty() ? "not authorized" : "OK", name, ""});
  }
}

void Context::Authentication::note_refusal(const std::string& key) {
  if (key == refused_last) return;
  refused_last = key;
  log_warn("connection refused: the key '{}' is not authorized", key);
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
    auto authentication = std::make_unique<Authentication>(*context_, std::move(name_of));
    authentication->socket.bind(kZapEndpoint);
    loop.watch_handle(authentication->socket.handle(),
                      [served = authentication.get()] { served->answer(); });
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
