#include "core/transport/ipc_dealer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "core/log/log.h"
#include "core/os/owned_fd.h"
#include "core/transport/ipc_path.h"
#include "core/transport/zmtp.h"

namespace antdt::transport {

namespace {

constexpr std::size_t kMaxKept = 10000;  // packets
constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr Duration kFirstRetry = std::chrono::milliseconds(50);
constexpr Duration kLastRetry = std::chrono::seconds(1);
constexpr Duration kLinger = std::chrono::seconds(1);

MonoTime now() { return std::chrono::steady_clock::now(); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxIpcPath);
  return address;
}

bool try_later(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Number of bytes that the system accepted, or -1 with errno.
ssize_t send_some(int fd, std::string_view bytes) {
  ssize_t sent = -1;
  do sent = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t receive_some(int fd, std::vector<char>& into) {
  ssize_t got = -1;
  do got = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

// fd() returns `events`, an epoll set: it is readable when one of its members is, and stays the
// same when the connection changes. Nothing here waits for it.
struct IpcDealer::State {
  explicit State(const std::string& path)
      : endpoint("ipc://" + path), address(address_of(path)), buffer(kReadBytes) {}
  ~State() { linger(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] Status prepare();
  void dial();
  void lose();
  void refuse(const std::string& problem);
  [[nodiscard]] bool together() const { return connection.is_open() && reader.ready(); }
  SendOutcome send(const wire::Packet& packet);
  void flush();
  [[nodiscard]] bool send_front();
  void sending_failed();
  [[nodiscard]] bool take_in();
  void understand();
  void watch();
  void progress();
  void wait(Duration timeout);
  void linger();

  const std::string endpoint;
  const sockaddr_un address;
  OwnedFd events;
  OwnedFd retry_timer;
  OwnedFd connection;  // no descriptor while apart
  Duration retry_after = kFirstRetry;
  std::string refused_last;  // a peer is tried again every second, so it is logged once

  std::vector<char> buffer;
  ZmtpReader reader;
  std::deque<wire::Packet> received;
  std::string scratch;             // buffer for the packet that is being sent
  std::deque<std::string> unsent;  // packets as bytes
  std::size_t front_sent = 0;      // bytes of the first of them, on this connection
  bool watches_output = false;
};

// ------------------------------------------------------------------ connecting

Status IpcDealer::State::prepare() {
  events = OwnedFd(::epoll_create1(EPOLL_CLOEXEC));
  retry_timer = OwnedFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (!events.is_open() || !retry_timer.is_open() ||
      ::epoll_ctl(events.get(), EPOLL_CTL_ADD, retry_timer.get(), &readable) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "preparing a connection to " + endpoint);
  }
  dial();
  return {};
}

// A local socket connects at once or not at all.
void IpcDealer::State::dial() {
  connection = OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  epoll_event readable{};
  readable.events = EPOLLIN;
  const std::string opening = zmtp_opening();
  const bool connected =
      connection.is_open() &&
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0 &&
      ::epoll_ctl(events.get(), EPOLL_CTL_ADD, connection.get(), &readable) == 0 &&
      send_some(connection.get(), opening) == static_cast<ssize_t>(opening.size());
  if (!connected) lose();
}

// The first packet is sent again as a whole, because the peer drops a message of which it received
// only a part.
void IpcDealer::State::lose() {
  connection.close();
  reader = {};
  front_sent = 0;
  watches_output = false;
  itimerspec spec{};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(retry_after);
  spec.it_value = {.tv_sec = seconds.count(), .tv_nsec = (retry_after - seconds).count()};
  ::timerfd_settime(retry_timer.get(), 0, &spec, nullptr);
  retry_after = std::min(2 * retry_after, kLastRetry);
}

void IpcDealer::State::refuse(const std::string& problem) {
  if (std::exchange(refused_last, problem) != problem) {
    log_warn("who answers on {} is no agent of this release: {}", endpoint, problem);
  }
  lose();
}

// --------------------------------------------------------------------- sending

SendOutcome IpcDealer::State::send(const wire::Packet& packet) {
  if (!connection.is_open()) progress();
  if (unsent.size() >= kMaxKept) return SendOutcome::kFull;
  scratch.clear();
  append_zmtp(scratch, packet);
  if (!together() || !unsent.empty()) {
    unsent.push_back(scratch);
    return SendOutcome::kSent;
  }
  const ssize_t sent = send_some(connection.get(), scratch);
  if (sent == static_cast<ssize_t>(scratch.size())) return SendOutcome::kSent;
  const int error = errno;
  unsent.push_back(scratch);
  if (sent > 0) front_sent = static_cast<std::size_t>(sent);
  if (sent < 0 && !try_later(error)) {
    sending_failed();
  } else {
    watch();
  }
  return SendOutcome::kSent;
}

// True when the first packet has been sent; false when the rest has to wait.
bool IpcDealer::State::send_front() {
  const std::string_view rest = std::string_view(unsent.front()).substr(front_sent);
  const ssize_t sent = send_some(connection.get(), rest);
  if (sent < 0) {
    if (!try_later(errno)) sending_failed();
    return false;
  }
  front_sent += static_cast<std::size_t>(sent);
  if (front_sent < unsent.front().size()) return false;
  unsent.pop_front();
  front_sent = 0;
  return true;
}

void IpcDealer::State::flush() {
  while (together() && !unsent.empty() && send_front()) {
  }
  watch();
}

// The peer has gone; what it sent before that can still be read.
void IpcDealer::State::sending_failed() {
  while (connection.is_open() && take_in()) {
  }
  if (connection.is_open()) lose();
}

// Writability of the connection matters only while there is something to write.
void IpcDealer::State::watch() {
  const bool wanted = together() && !unsent.empty();
  if (wanted == watches_output || !connection.is_open()) return;
  epoll_event event{};
  event.events = EPOLLIN | (wanted ? EPOLLOUT : 0U);
  ::epoll_ctl(events.get(), EPOLL_CTL_MOD, connection.get(), &event);
  watches_output = wanted;
}

// ------------------------------------------------------------------- receiving

// True when there may be more to read at once.
bool IpcDealer::State::take_in() {
  const ssize_t got = receive_some(connection.get(), buffer);
  if (got < 0 && try_later(errno)) return false;
  if (got <= 0) {
    lose();
    return false;
  }
  reader.feed({buffer.data(), static_cast<std::size_t>(got)});
  understand();
  return connection.is_open() && got == static_cast<ssize_t>(buffer.size());
}

void IpcDealer::State::understand() {
  const bool was_together = reader.ready();
  while (auto packet = reader.next()) received.push_back(std::move(*packet));
  if (!reader.problem().empty()) return refuse(std::string(reader.problem()));
  if (std::string answers = reader.take_answers(); !answers.empty() && unsent.size() < kMaxKept) {
    // Answers go between two packets: behind one that is partly sent.
    unsent.insert(unsent.begin() + (front_sent > 0 ? 1 : 0), std::move(answers));
  }
  if (!was_together && reader.ready()) retry_after = kFirstRetry;
}

// Does everything that can be done without waiting, until there is something to receive.
void IpcDealer::State::progress() {
  if (!connection.is_open()) {
    std::uint64_t times = 0;
    if (::read(retry_timer.get(), &times, sizeof(times)) == sizeof(times)) dial();
    return;
  }
  while (connection.is_open() && received.empty() && take_in()) {
  }
  if (!unsent.empty()) flush();
}

void IpcDealer::State::wait(Duration timeout) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  pollfd item{};
  item.fd = connection.is_open() ? connection.get() : retry_timer.get();
  item.events = POLLIN;
  if (watches_output) item.events |= POLLOUT;
  ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(ms, 0)));
  progress();
}

// Waits for a second, and longer only as long as the peer accepts data.
void IpcDealer::State::linger() {
  const auto left = [this] { return std::pair(unsent.size(), front_sent); };
  MonoTime deadline = now() + kLinger;
  while (!unsent.empty() && now() < deadline) {
    received.clear();  // nobody will read it
    const auto before = left();
    wait(deadline - now());
    if (connection.is_open() && left() != before) deadline = now() + kLinger;
  }
}

// ---------------------------------------------------------------------- public

Result<IpcDealer> IpcDealer::connect(const std::string& path) {
  ANTDT_RETURN_IF_ERROR(check_ipc_path(path));
  auto state = std::make_unique<State>(path);
  ANTDT_RETURN_IF_ERROR(state->prepare());
  return IpcDealer(std::move(state));
}

IpcDealer::IpcDealer(std::unique_ptr<State> state) : state_(std::move(state)) {}
IpcDealer::IpcDealer(IpcDealer&&) noexcept = default;
IpcDealer& IpcDealer::operator=(IpcDealer&&) noexcept = default;
IpcDealer::~IpcDealer() = default;

int IpcDealer::fd() const { return state_->events.get(); }
const std::string& IpcDealer::endpoint() const { return state_->endpoint; }

SendOutcome IpcDealer::send(const wire::Packet& packet) { return state_->send(packet); }

std::optional<wire::Packet> IpcDealer::receive() {
  if (state_->received.empty()) state_->progress();
  if (state_->received.empty()) return std::nullopt;
  wire::Packet packet = std::move(state_->received.front());
  state_->received.pop_front();
  return packet;
}

bool IpcDealer::wait_readable(Duration timeout) {
  if (!state_->received.empty()) return true;
  // At most a day, so that "forever" does not overflow.
  const Duration longest = std::min<Duration>(timeout, std::chrono::hours(24));
  const MonoTime deadline = now() + longest;
  state_->wait(longest);
  while (state_->received.empty()) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) return false;
    state_->wait(left);
  }
  return true;
}

}  // namespace antdt::transport
