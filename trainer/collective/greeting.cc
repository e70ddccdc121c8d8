#include "trainer/collective/greeting.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/net.h"

namespace antdt::trainer {
namespace {

constexpr std::uint64_t kMagic = 0x31'6c6c'6f63'5444;
// Strangers that dialled and say nothing; with more of them the oldest has to go.
constexpr std::size_t kMostStrangers = 64;
// Who could not be taken stays in the listener's queue, which can be read all the time.
constexpr Duration kPauseOfAccepting = std::chrono::milliseconds(100);

}  // namespace

Result<std::map<std::uint32_t, OwnedFd>> Greeting::meet(const std::vector<std::uint32_t>& peers,
                                                        std::span<const std::string> addresses,
                                                        Duration timeout) {
  peers_ = peers;
  const MonoTime until = std::chrono::steady_clock::now() + timeout;
  for (const std::uint32_t peer : peers_) {
    if (peer > self_.rank) ANTDT_RETURN_IF_ERROR(dial(peer, addresses[peer]));
  }
  while (met_.size() < peers_.size()) {
    ANTDT_RETURN_IF_ERROR(wait(until));
    accept_all();
    for (std::size_t i = 0; i < halves_.size();) {
      ANTDT_TRY(const Progress progress, go_on(halves_[i]));
      if (progress == Progress::kGoesOn) {
        ++i;
        continue;
      }
      if (progress == Progress::kMet) {
        const Half& half = halves_[i];
        met_[half.dialled ? half.peer : half.heard.from] = std::move(halves_[i].fd);
      }
      halves_.erase(halves_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::move(met_);
}

Status Greeting::dial(std::uint32_t peer, const std::string& address) {
  auto fd = start_to_connect(address);
  if (!fd) return fail(ErrorKind::kIo, "cannot reach rank {}: {}", peer, fd.error().message);
  Half& half = halves_.emplace_back();
  half.fd = std::move(*fd);
  half.dialled = true;
  half.peer = peer;
  return {};
}

void Greeting::accept_all() {
  while (true) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) {  // nobody more, one that is gone already, or there is no room
      const int error = errno;
      const bool room = error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
      not_accepted_ = room ? 0 : error;
      return;
    }
    const auto stranger = [](const Half& half) { return !half.dialled; };
    if (std::count_if(halves_.begin(), halves_.end(), stranger) >=
        static_cast<std::ptrdiff_t>(kMostStrangers)) {
      halves_.erase(std::find_if(halves_.begin(), halves_.end(), stranger));
    }
    halves_.emplace_back().fd = std::move(fd);
  }
}

Status Greeting::wait(MonoTime until) {
  const Duration left = until - std::chrono::steady_clock::now();
  if (left <= Duration::zero()) {
    std::string why;
    if (not_accepted_ != 0) {
      why = fmt::format(": it could not take their connections: {}{}", std::strerror(not_accepted_),
                        how_to_mend(not_accepted_));
    }
    return fail(ErrorKind::kIo, "rank {} of {} waited in vain for {}{}", self_.rank, self_.size,
                missing(), why);
  }
  polled_.assign(1, {wake_.get(), POLLIN, 0});
  const bool accepts = not_accepted_ == 0;
  polled_.push_back({listener_.get(), static_cast<short>(accepts ? POLLIN : 0), 0});
  for (const Half& half : halves_) {
    const bool writes = half.dialled && !half.said;
    polled_.push_back({half.fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(
                      accepts ? left : std::min(left, kPauseOfAccepting))
                      .count();
  if (poll(polled_.data(), polled_.size(), static_cast<int>(ms)) < 0 && errno != EINTR) {
    return fail_errno(ErrorKind::kIo, errno, "waiting for the other members");
  }
  if ((polled_.front().revents & POLLIN) == 0) return {};
  return fail(ErrorKind::kAborted, "the forming of the group was aborted");
}

std::string Greeting::missing() const {
  std::string text;
  for (const std::uint32_t peer : peers_) {
    if (!met_.contains(peer)) text += fmt::format("{}{}", text.empty() ? "rank " : ", ", peer);
  }
  return text;
}

Result<Greeting::Progress> Greeting::go_on(Half& half) {
  if (half.dialled && !half.said) {
    pollfd writable{half.fd.get(), POLLOUT, 0};
    if (poll(&writable, 1, 0) == 0) return Progress::kGoesOn;
    ANTDT_RETURN_IF_ERROR(say_hello(half));
  }
  auto* const into = reinterpret_cast<std::byte*>(&half.heard);
  const ssize_t n =
      recv(half.fd.get(), into + half.bytes, sizeof(Hello) - half.bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return Progress::kGoesOn;
  }
  if (n <= 0) {
    if (!half.dialled) return Progress::kTurnedAway;
    return fail(ErrorKind::kIo, "rank {} closed the connection before it had answered", half.peer);
  }
  half.bytes += static_cast<std::size_t>(n);
  if (half.bytes < sizeof(Hello)) return Progress::kGoesOn;
  return half.dialled ? judge_answer(half) : judge_hello(half);
}

Status Greeting::say_hello(Half& half) {
  if (const int error = connect_error(half.fd); error != 0) {
    return fail_errno(ErrorKind::kIo, error, fmt::format("connecting to rank {}", half.peer));
  }
  const Hello hello{kMagic, self_.key, self_.size, self_.rank, half.peer, 0};
  // The first bytes of a connection: they fit, or it is broken.
  if (::send(half.fd.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("greeting rank {}", half.peer));
  }
  half.said = true;
  return {};
}

Result<Greeting::Progress> Greeting::judge_answer(const Half& half) const {
  const Hello& h = half.heard;
  const bool ours = h.magic == kMagic && h.key == self_.key && h.size == self_.size &&
                    h.from == half.peer && h.to == self_.rank;
  if (ours && h.welcome == 1) return Progress::kMet;
  return fail(ErrorKind::kRefused,
              "rank {} of {} was not expected where rank {} should be: who listens there belongs "
              "to another generation, or has that rank connected already",
              self_.rank, self_.size, half.peer);
}

bool Greeting::expects(const Hello& h) const {
  return h.magic == kMagic && h.key == self_.key && h.size == self_.size && h.to == self_.rank &&
         h.from < self_.rank && !met_.contains(h.from) &&
         std::find(peers_.begin(), peers_.end(), h.from) != peers_.end();
}

// Who does not know the key is not told it.
Greeting::Progress Greeting::judge_hello(Half& half) {
  const bool expected = expects(half.heard);
  Hello answer{kMagic, 0, self_.size, self_.rank, half.heard.from, 0};
  if (expected) {
    answer.key = self_.key;
    answer.welcome = 1;
  }
  const bool sent = ::send(half.fd.get(), &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer);
  return expected && sent ? Progress::kMet : Progress::kTurnedAway;
}

}  // namespace antdt::trainer
