#include "trainer/collective/greeting.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/log/log.h"
#include "core/os/net.h"

namespace antdt::trainer {
namespace {

// How many are accepted in one turn, so that existing connections get their turn, too.
constexpr int kAcceptedAtOnce = 64;
// A connection that could not be accepted stays in the listener's queue, which remains readable.
constexpr Duration kPauseOfAccepting = std::chrono::milliseconds(100);
constexpr Duration kFirstRedial = std::chrono::milliseconds(10);
constexpr Duration kLongestRedial = std::chrono::milliseconds(320);

MonoTime now() { return std::chrono::steady_clock::now(); }

bool sends(const OwnedFd& fd, const std::string& text) {
  // These are among the first bytes of a connection, so they fit, or the connection is broken.
  return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

}  // namespace

Result<std::map<std::uint32_t, Greeting::Met>> Greeting::meet(
    const std::vector<std::uint32_t>& peers, std::span<const std::string> addresses,
    Duration timeout) {
  peers_ = peers;
  addresses_ = addresses;
  const MonoTime until = now() + timeout;
  ANTDT_RETURN_IF_ERROR(dial_all());
  const auto is_missing = [&](std::uint32_t peer) { return !connected_.contains(peer); };
  while (std::ranges::any_of(peers_, is_missing)) {
    ANTDT_RETURN_IF_ERROR(wait(until));
    ANTDT_RETURN_IF_ERROR(dial_again());
    ANTDT_RETURN_IF_ERROR(accept_some());
    for (std::size_t i = 0; i < halves_.size();) {
      ANTDT_TRY(const Progress progress, go_on(halves_[i]));
      if (progress == Progress::kGoesOn) {
        ++i;
        continue;
      }
      if (progress == Progress::kMet) {
        const Handshake& member = halves_[i].handshake;
        met_[member.peer()] = {std::move(halves_[i].fd), member.keys()};
        connected_.insert(member.peer());
      }
      halves_.erase(halves_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  stop_dialling();
  return std::exchange(met_, {});
}

Status Greeting::dial_all() {
  for (const std::uint32_t peer : peers_) {
    if (peer > self_.rank || has_met_) ANTDT_RETURN_IF_ERROR(dial(peer));
  }
  return {};
}

// Members that are dialling this one stay, for the next call.
void Greeting::stop_dialling() {
  std::erase_if(halves_, [](const Half& half) { return half.dialled; });
  redials_.clear();
  has_met_ = true;
}

Status Greeting::dial(std::uint32_t peer) {
  auto fd = dial_(addresses_[peer]);
  if (!fd) return fail(ErrorKind::kIo, "cannot reach rank {}: {}", peer, fd.error().message);
  if (!fd->is_open()) {
    plan_redial(peer);
    return {};
  }
  ANTDT_TRY(const crypto::Nonce nonce, crypto::random_nonce());
  const bool watches = peer < self_.rank;
  halves_.push_back(
      {std::move(*fd), Handshake::dialling(self_, peer, nonce), true, false, watches});
  return {};
}

Status Greeting::dial_again() {
  for (auto& [peer, redial] : redials_) {
    if (redial.at > now()) continue;
    redial.at = MonoTime::max();
    if (connected_.contains(peer)) continue;
    ANTDT_RETURN_IF_ERROR(dial(peer));
  }
  return {};
}

bool Greeting::drop_oldest_stranger() {
  const auto oldest =
      std::ranges::find_if(halves_, [](const Half& half) { return half.is_stranger(); });
  if (oldest == halves_.end()) return false;
  halves_.erase(oldest);
  return true;
}

Status Greeting::accept_some() {
  for (int n = 0; n < kAcceptedAtOnce; ++n) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.is_open()) {  // no more connections, one that is gone already, or no room
      const int error = errno;
      const bool room = error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
      if (!room && drop_oldest_stranger()) continue;
      not_accepted_ = room ? 0 : error;
      return {};
    }
    const auto strangers = std::ranges::count_if(halves_, &Half::is_stranger);
    if (strangers >= static_cast<std::ptrdiff_t>(kMostStrangers)) drop_oldest_stranger();
    ANTDT_TRY(const crypto::Nonce nonce, crypto::random_nonce());
    halves_.push_back({std::move(fd), Handshake::listening(self_, nonce)});
  }
  return {};
}

Status Greeting::time_is_over() const {
  std::string why;
  if (not_accepted_ != 0) {
    why = fmt::format(": it could not take their connections: {}{}", std::strerror(not_accepted_),
                      how_to_mend(not_accepted_));
  } else if (!odd_.empty()) {
    why = "; " + odd_;
  }
  return fail(ErrorKind::kIo, "rank {} of {} waited in vain for {}{}", self_.rank, self_.size,
              missing(), why);
}

Status Greeting::wait(MonoTime until) {
  const MonoTime begin = now();
  if (until <= begin) return time_is_over();
  polled_.assign(1, {wake_.get(), POLLIN, 0});
  const bool accepts = not_accepted_ == 0;
  polled_.push_back({listener_.get(), static_cast<short>(accepts ? POLLIN : 0), 0});
  for (const Half& half : halves_) {
    const bool writes = half.dialled && !half.said;
    polled_.push_back({half.fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  MonoTime next = accepts ? until : std::min(until, begin + kPauseOfAccepting);
  for (const auto& [peer, redial] : redials_) next = std::min(next, redial.at);
  const Duration left = std::max(next - begin, Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  if (poll(polled_.data(), polled_.size(), static_cast<int>(ms)) < 0 && errno != EINTR) {
    return fail_errno(ErrorKind::kIo, errno, "waiting for the other members");
  }
  if ((polled_.front().revents & POLLIN) == 0) return {};
  return fail(ErrorKind::kAborted, "the forming of the group was aborted");
}

std::string Greeting::missing() const {
  std::string text;
  for (const std::uint32_t peer : peers_) {
    if (!connected_.contains(peer))
      text += fmt::format("{}{}", text.empty() ? "rank " : ", ", peer);
  }
  return text;
}

Result<Greeting::Progress> Greeting::go_on(Half& half) {
  if (half.dialled && !half.said) {
    pollfd writable{half.fd.get(), POLLOUT, 0};
    if (poll(&writable, 1, 0) == 0) return Progress::kGoesOn;
    ANTDT_RETURN_IF_ERROR(say_hello(half));
    if (!half.said) return Progress::kTurnedAway;
  }
  std::array<std::byte, 256> bytes;
  const std::size_t wanted = std::min(half.handshake.wants(), bytes.size());
  const ssize_t n = recv(half.fd.get(), bytes.data(), wanted, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return Progress::kGoesOn;
  }
  if (n <= 0) return on_silence(half, n == 0 ? 0 : errno);
  const std::string reply =
      half.handshake.heard(std::span(bytes).first(static_cast<std::size_t>(n)));
  return on_state(half, reply);
}

Status Greeting::say_hello(Half& half) {
  if (const int error = connect_error(half.fd); error != 0) {
    return fail_errno(ErrorKind::kIo, error,
                      fmt::format("connecting to rank {}", half.handshake.peer()));
  }
  half.said = half.watches || sends(half.fd, half.handshake.opening());
  if (!half.said) std::ignore = on_silence(half, errno);
  return {};
}

// The connection ended in the middle. The member that was dialled may have had no room for another
// unproven connection. If it does not listen any more, the next attempt fails with that.
Result<Greeting::Progress> Greeting::on_silence(const Half& half, int error) {
  if (!half.dialled) return Progress::kTurnedAway;
  if (error != 0 && error != ECONNRESET && error != EPIPE) {
    return fail_errno(ErrorKind::kIo, error,
                      fmt::format("greeting rank {}", half.handshake.peer()));
  }
  plan_redial(half.handshake.peer());
  return Progress::kTurnedAway;
}

void Greeting::plan_redial(std::uint32_t peer) {
  Redial& redial = redials_[peer];
  redial.pause = std::clamp(redial.pause * 2, kFirstRedial, kLongestRedial);
  redial.at = now() + redial.pause;
}

Result<Greeting::Progress> Greeting::on_state(Half& half, const std::string& reply) {
  Handshake& handshake = half.handshake;
  std::string said = reply;
  if (handshake.state() == Handshake::State::kAsked) {
    said = expects(handshake) ? handshake.welcome() : handshake.refuse();
  }
  const bool sent = said.empty() || sends(half.fd, said);
  if (handshake.state() == Handshake::State::kOver) {
    if (half.dialled) {
      return fail(ErrorKind::kRefused, "rank {} of {} is not connected to rank {}: {}", self_.rank,
                  self_.size, handshake.peer(), handshake.why());
    }
    if (!handshake.why().empty() &&
        odd_.empty()) {  // once, because strangers may repeat it forever
      odd_ = handshake.why();
      log_warn("rank {} of {}: {}", self_.rank, self_.size, odd_);
    }
    return Progress::kTurnedAway;
  }
  if (!sent) return Progress::kTurnedAway;
  return handshake.state() == Handshake::State::kMet ? Progress::kMet : Progress::kGoesOn;
}

// A second hello with the same nonce only repeats what a member has sent.
bool Greeting::expects(const Handshake& member) {
  const bool admitted =
      admits_ == Admits::kAllMembers || std::ranges::find(peers_, member.peer()) != peers_.end();
  return heard_.insert(member.peer_nonce()).second && member.peer() < self_.rank &&
         !connected_.contains(member.peer()) && admitted;
}

}  // namespace antdt::trainer
