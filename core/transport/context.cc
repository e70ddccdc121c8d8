#include <zmq.h>

#include <array>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/log/log.h"
#include "core/loop.h"
#include "core/transport/socket.h"
#include "core/transport/zmq_error.h"

namespace antdt::transport {

namespace {

// Requests and replies of ZeroMQ's authentication protocol
// (https://rfc.zeromq.org/spec/27/), one request a connection.
constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kZapMechanism = 5;
constexpr std::size_t kZapCredentials = 6;

std::vector<std::string> receive_frames(void* socket) {
  std::vector<std::string> frames;
  zmq_msg_t message;
  zmq_msg_init(&message);
  while (zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) >= 0) {
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
    if (zmq_msg_more(&message) == 0) break;
  }
  zmq_msg_close(&message);
  return frames;
}

void send_frames(void* socket, const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    zmq_send(socket, frames[i].data(), frames[i].size(), flags);
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

// The loop calls answer(); the loop may be gone when this is destroyed, so
// nothing is unwatched here.
struct Context::Authentication {
  Authentication(void* zap_socket, NameOfKey names)
      : socket(zap_socket), name_of(std::move(names)) {}
  ~Authentication() { zmq_close(socket); }
  Authentication(const Authentication&) = delete;
  Authentication& operator=(const Authentication&) = delete;

  void answer();
  void note_refusal(const std::string& key);

  void* socket;
  NameOfKey name_of;
  std::string refused_last;  // a peer tries again every second: it is logged once
};

void Context::Authentication::answer() {
  for (int n = 0; n < 64; ++n) {
    const std::vector<std::string> request = receive_frames(socket);
    if (request.size() < 2) return;
    const std::string key = key_of(request);
    const std::string name = key.empty() ? std::string() : name_of(key);
    if (name.empty()) note_refusal(key);
    // 300 and not 400: the peer is cut off without an answer and may try again,
    // so a key that is authorized later gets in without a restart.
    send_frames(socket, {request[0], request[1], name.empty() ? "300" : "200",
                         name.empty() ? "not authorized" : "OK", name, ""});
  }
}

void Context::Authentication::note_refusal(const std::string& key) {
  if (key == refused_last) return;
  refused_last = key;
  log_warn("connection refused: the key '{}' is not authorized", key);
}

Context::Context() : handle_(zmq_ctx_new()) {
  ANTDT_CHECK(handle_ != nullptr, "zmq_ctx_new: {}", zmq_strerror(zmq_errno()));
  zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, 8192);
  zmq_ctx_set(handle_, ZMQ_BLOCKY, 0);
}

Context::~Context() {
  authentication_.reset();
  zmq_ctx_term(handle_);
}

Status Context::serve_authentication(EventLoop& loop, AuthorizedKeys authorized) {
  return serve_authentication(loop, [keys = std::move(authorized)](const std::string& key) mutable {
    return keys.name_of(key);
  });
}

Status Context::serve_authentication(EventLoop& loop, NameOfKey name_of) {
  if (authentication_ != nullptr) {
    return fail(ErrorKind::kInternal, "authentication is served already");
  }
  void* socket = zmq_socket(handle_, ZMQ_REP);
  if (socket == nullptr) return fail_zmq(ErrorKind::kIo, "making the authentication socket");
  auto authentication = std::make_unique<Authentication>(socket, std::move(name_of));
  if (zmq_bind(socket, kZapEndpoint) != 0) {
    return fail_zmq(ErrorKind::kIo, std::string("binding ") + kZapEndpoint);
  }
  loop.watch_handle(socket, [served = authentication.get()] { served->answer(); });
  authentication_ = std::move(authentication);
  return {};
}

}  // namespace antdt::transport

#if defined(__SANITIZE_THREAD__)
// Debian's libzmq and the libsodium it decrypts with are not built for the
// thread sanitizer, which therefore does not see how their threads hand
// messages to ours and takes each for a race.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\nrace:libzmq.so\n";
}
#endif
