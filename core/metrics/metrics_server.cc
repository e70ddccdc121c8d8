#include "core/metrics/metrics_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "core/os/net.h"

namespace antdt::metrics {
namespace {

// A text of this age is still answered.
constexpr Duration kFresh = std::chrono::milliseconds(500);
// How long nobody is accepted after the system had no descriptor for a connection.
constexpr Duration kUntilDescriptorsAreFree = std::chrono::seconds(1);
// Of what a client sends after its request, more than this is not read.
constexpr std::size_t kMostIgnored = 65536;

std::uint16_t port_of(const std::string& end_point) {
  std::uint16_t port = 0;
  std::from_chars(end_point.data() + end_point.rfind(':') + 1, end_point.data() + end_point.size(),
                  port);
  return port;
}

// Bytes that arrived: 0 at the end, negative (with errno) if there are none.
ssize_t receive(const OwnedFd& fd, std::array<char, 4096>& into) {
  while (true) {
    const ssize_t got = recv(fd.get(), into.data(), into.size(), 0);
    if (got >= 0 || errno != EINTR) return got;
  }
}

Result<OwnedFd> open_listener(const std::string& end_point) {
  const auto refused = [&](const std::string& why) {
    return fail(ErrorKind::kUsage, "metrics cannot be served at {}: {}", end_point, why);
  };
  if (!is_end_point(end_point, /*any=*/true)) {
    return refused("it is no address and port, such as 127.0.0.1:9400");
  }
  auto listener = listen_tcp(host_of(end_point), port_of(end_point));
  if (listener) return listener;
  return refused(fmt::format("{}; choose an address of this machine and a port that is free",
                             listener.error().message));
}

bool only_later() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(EventLoop& loop,
                                                             const std::string& end_point,
                                                             std::function<std::string()> content,
                                                             Duration patience) {
  ANTDT_TRY(OwnedFd listener, open_listener(end_point));
  ANTDT_TRY(std::string address, local_address(listener));
  return std::unique_ptr<MetricsServer>(new MetricsServer(
      loop, std::move(listener), std::move(address), std::move(content), patience));
}

Status MetricsServer::check(const std::string& end_point) {
  ANTDT_TRY([[maybe_unused]] const OwnedFd listener, open_listener(end_point));
  return {};
}

MetricsServer::MetricsServer(EventLoop& loop, OwnedFd listener, std::string address,
                             std::function<std::string()> content, Duration patience)
    : loop_(loop),
      listener_(std::move(listener)),
      address_(std::move(address)),
      content_(std::move(content)),
      patience_(patience) {
  watch_listener();
}

MetricsServer::~MetricsServer() {
  loop_.cancel(accept_again_);
  loop_.unwatch_fd(listener_.get());
  while (!connections_.empty()) drop(connections_.begin()->first);
}

void MetricsServer::watch_listener() {
  loop_.watch_fd(listener_.get(), [this] { accept_all(); });
}

void MetricsServer::accept_all() {
  // In one turn no more than there may be, so that newcomers alone cannot keep the loop busy.
  for (std::size_t i = 0; i < kMostConnections; ++i) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.is_open()) {
      add(std::move(fd));
    } else if (only_later()) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The connection waits, so the listener would be ready again at once.
      loop_.unwatch_fd(listener_.get());
      accept_again_ = loop_.call_after(kUntilDescriptorsAreFree, [this] { watch_listener(); });
      return;
    }
  }
}

void MetricsServer::add(OwnedFd fd) {
  if (connections_.size() >= kMostConnections) drop(connections_.begin()->first);
  const std::uint64_t number = next_++;
  Connection& connection = connections_[number];
  connection.fd = std::move(fd);
  connection.deadline = loop_.call_after(patience_, [this, number] { drop(number); });
  loop_.watch_fd(connection.fd.get(), [this, number] { read(number); });
}

void MetricsServer::read(std::uint64_t number) {
  Connection& connection = connections_.at(number);
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = receive(connection.fd, bytes);
    if (got < 0 && only_later()) return;
    if (got <= 0) return drop(number);
    connection.received.append(bytes.data(), static_cast<std::size_t>(got));
    const HttpRequest request = read_request(connection.received);
    if (request.whole) return answer(number, request.answer);
  }
}

void MetricsServer::answer(std::uint64_t number, HttpStatus status) {
  Connection& connection = connections_.at(number);
  connection.received = {};
  connection.answer = http_answer(status, status == HttpStatus::kOk ? text() : "");
  loop_.watch_writable_fd(connection.fd.get(), [this, number] { write(number); });
}

void MetricsServer::write(std::uint64_t number) {
  Connection& connection = connections_.at(number);
  while (connection.sent < connection.answer.size()) {
    const ssize_t put = send(connection.fd.get(), connection.answer.data() + connection.sent,
                             connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && only_later()) return;
    if (put < 0) return drop(number);
    connection.sent += static_cast<std::size_t>(put);
  }
  shutdown(connection.fd.get(), SHUT_WR);
  loop_.watch_fd(connection.fd.get(), [this, number] { await_close(number); });
}

// A socket that is closed with unread bytes resets the connection, and the client may lose the
// answer. So the client closes first.
void MetricsServer::await_close(std::uint64_t number) {
  Connection& connection = connections_.at(number);
  std::array<char, 4096> bytes{};
  while (connection.ignored <= kMostIgnored) {
    const ssize_t got = receive(connection.fd, bytes);
    if (got < 0 && only_later()) return;
    if (got <= 0) break;
    connection.ignored += static_cast<std::size_t>(got);
  }
  drop(number);
}

void MetricsServer::drop(std::uint64_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  loop_.cancel(found->second.deadline);
  loop_.unwatch_fd(found->second.fd.get());
  connections_.erase(found);
}

const std::string& MetricsServer::text() {
  if (!made_at_ || loop_.now() - *made_at_ >= kFresh) {
    text_ = content_();
    made_at_ = loop_.now();
  }
  return text_;
}

}  // namespace antdt::metrics
