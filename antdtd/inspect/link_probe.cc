#include "antdtd/inspect/link_probe.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/os/net.h"
#include "core/os/port_range.h"

namespace antdt::antdtd {
namespace {

constexpr std::size_t kHalf = wire::kPortSecretBytes / 2;
constexpr Duration kListens = std::chrono::seconds(10);
constexpr Duration kMeasures = std::chrono::seconds(15);
constexpr Duration kConnects = std::chrono::seconds(2);
constexpr Duration kProves = std::chrono::seconds(3);
constexpr time_t kSilenceSeconds = 3;  // of the other end
// How long the last data may be on its way over a slow link.
constexpr time_t kArrivesSeconds = 12;
constexpr int kMostStrangers = 16;
constexpr int kRoundTrips = 15;
constexpr int kMostPings = 100;
constexpr std::size_t kBuffer = std::size_t{256} * 1024;
// What the kernel may hold that is not under way yet: without a bound megabytes wait there, and a
// slow link takes many seconds for them after the measurement.
constexpr int kMostUnsent = 128 * 1024;

// The time that this takes does not depend on where the two differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

void wait_at_most(int socket, time_t seconds) {
  const timeval silence{seconds, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
}

void make_blocking(int socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  wait_at_most(socket, kSilenceSeconds);
  const timeval silence{kSilenceSeconds, 0};
  ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsent, sizeof(kMostUnsent));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence));
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool send_whole(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// False also where the other end sends so little at a time that it takes longer than `most`.
bool receive_whole(int socket, char* bytes, std::size_t size, Duration most = kMeasures) {
  const SteadyClock clock;
  const MonoTime until = clock.now() + most;
  while (size > 0 && clock.now() < until) {
    const ssize_t got = ::recv(socket, bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return size == 0;
}

// Answers one that has proved itself.
void answer_measurement(int socket) {
  char byte = 0;
  for (int pings = 0; receive_whole(socket, &byte, 1) && byte == 'p'; ++pings) {
    if (pings >= kMostPings || !send_whole(socket, "p")) return;
  }
  if (byte != 'd') return;
  const SteadyClock clock;
  const MonoTime until = clock.now() + kMeasures;
  std::vector<char> buffer(kBuffer);
  std::uint64_t bytes = 0;
  for (;;) {
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || clock.now() > until || bytes > wire::kMostLinkBytes) return;
    if (got == 0) break;
    bytes += static_cast<std::uint64_t>(got);
  }
  std::array<char, 8> count{};
  for (std::size_t i = 0; i < count.size(); ++i) count[i] = static_cast<char>(bytes >> (8 * i));
  std::ignore = send_whole(socket, {count.data(), count.size()});
}

// False: a stranger, who learns nothing.
bool proves_itself(int socket, std::string_view secret) {
  std::array<char, kHalf> said{};
  if (!receive_whole(socket, said.data(), said.size(), kProves)) return false;
  if (!same_secret({said.data(), said.size()}, secret.substr(0, kHalf))) return false;
  return send_whole(socket, secret.substr(kHalf));
}

void listen_for_one(const OwnedFd& listening, int end, const std::string& secret) {
  const SteadyClock clock;
  const MonoTime until = clock.now() + kListens;
  for (int strangers = 0; strangers < kMostStrangers; ++strangers) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
    std::array<pollfd, 2> watched{{{listening.get(), POLLIN, 0}, {end, POLLIN, 0}}};
    const int ready =
        left <= 0 ? 0 : ::poll(watched.data(), watched.size(), static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || watched[1].revents != 0) return;
    const OwnedFd peer(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.is_open()) continue;
    make_blocking(peer.get());
    if (proves_itself(peer.get(), secret)) return answer_measurement(peer.get());
  }
}

Status check_secret(const std::string& secret) {
  if (secret.size() == wire::kPortSecretBytes) return {};
  return fail(ErrorKind::kUsage, "the secret of a measurement has {} bytes instead of {}",
              secret.size(), wire::kPortSecretBytes);
}

tl::unexpected<Error> broke_off(const std::string& address, const char* when) {
  return fail(ErrorKind::kUnreachable, "{} accepted the connection, which broke off {}", address,
              when);
}

Result<std::uint32_t> round_trip(int socket, const std::string& address) {
  const SteadyClock clock;
  std::vector<Duration> times;
  for (int i = 0; i < kRoundTrips; ++i) {
    const MonoTime begin = clock.now();
    char byte = 0;
    if (!send_whole(socket, "p") || !receive_whole(socket, &byte, 1)) {
      return broke_off(address, "while the round trip was measured");
    }
    times.push_back(clock.now() - begin);
  }
  std::ranges::sort(times);
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(times[times.size() / 2]);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, us.count()));
}

}  // namespace

LinkListener::LinkListener(OwnedFd listening, std::uint16_t port, std::string secret)
    : port_(port), end_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([listening = std::move(listening), end = end_.get(),
                         secret = std::move(secret)] { listen_for_one(listening, end, secret); });
}

LinkListener::~LinkListener() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(end_.get(), &one, sizeof(one));
  thread_.join();
}

Result<LinkListener> LinkListener::open(const wire::FilePort& request) {
  ANTDT_RETURN_IF_ERROR(check_secret(request.secret));
  ANTDT_TRY(const PortRange range, parse_port_range(request.ports));
  Result<OwnedFd> listening = listen_tcp(request.address, range.first);
  for (std::uint32_t n = 1; !listening && !range.any() && n < range.count(); ++n) {
    listening = listen_tcp(request.address, range.at(0, n));
  }
  if (!listening) return tl::unexpected<Error>(listening.error());
  ANTDT_TRY(const std::string at, local_address(*listening));
  const int port = std::atoi(at.c_str() + at.rfind(':') + 1);
  return LinkListener(std::move(*listening), static_cast<std::uint16_t>(port), request.secret);
}

Result<wire::FileLinkTold> measure_link(const wire::FileLink& request) {
  ANTDT_RETURN_IF_ERROR(check_secret(request.secret));
  if (request.send_ms > wire::kMostLinkMs || request.most_bytes > wire::kMostLinkBytes) {
    return fail(ErrorKind::kUsage, "a measurement may send for {} ms, {} bytes", wire::kMostLinkMs,
                wire::kMostLinkBytes);
  }
  ANTDT_TRY(const OwnedFd socket, connect_within(request.address, kConnects));
  make_blocking(socket.get());
  std::array<char, kHalf> proof{};
  if (!send_whole(socket.get(), std::string_view(request.secret).substr(0, kHalf)) ||
      !receive_whole(socket.get(), proof.data(), proof.size())) {
    return broke_off(request.address, "before the other end proved itself");
  }
  if (!same_secret({proof.data(), proof.size()}, std::string_view(request.secret).substr(kHalf))) {
    return fail(ErrorKind::kRefused, "{} is not the host that was asked to listen there",
                request.address);
  }
  wire::FileLinkTold told;
  ANTDT_TRY(told.round_trip_us, round_trip(socket.get(), request.address));

  const SteadyClock clock;
  const MonoTime begin = clock.now();
  const MonoTime until = begin + std::chrono::milliseconds(request.send_ms);
  const std::string data(kBuffer, 'x');
  bool well = send_whole(socket.get(), "d");
  for (std::uint64_t sent = 0; well && sent < request.most_bytes && clock.now() < until;) {
    const std::size_t size = std::min<std::uint64_t>(data.size(), request.most_bytes - sent);
    well = send_whole(socket.get(), std::string_view(data).substr(0, size));
    sent += size;
  }
  std::array<unsigned char, 8> count{};
  ::shutdown(socket.get(), SHUT_WR);
  wait_at_most(socket.get(), kArrivesSeconds);
  if (!well || !receive_whole(socket.get(), reinterpret_cast<char*>(count.data()), count.size())) {
    return broke_off(request.address, "while data was sent");
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock.now() - begin);
  told.took_us = static_cast<std::uint64_t>(std::max<std::int64_t>(1, took.count()));
  for (std::size_t i = 0; i < count.size(); ++i) {
    told.bytes |= static_cast<std::uint64_t>(count[i]) << (8 * i);
  }
  return told;
}

}  // namespace antdt::antdtd
