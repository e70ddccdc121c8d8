#include "trainer/collective/shm/mates.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace antdt::trainer::shm {
namespace {

constexpr std::uint32_t kBellEvent = ~0U;  // in place of a member's index

Status add_event(const OwnedFd& events, const OwnedFd& fd, std::uint32_t mark) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u32 = mark;
  if (epoll_ctl(events.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return {};
  return fail_errno(ErrorKind::kIo, errno, "watching the connections to members of this host");
}

}  // namespace

Result<std::unique_ptr<Mates>> Mates::of(std::uint32_t self, std::vector<Mate> mates,
                                         SharedMemory memory, std::shared_ptr<Bell> bell,
                                         Waiting waiting) {
  std::unique_ptr<Mates> made(
      new Mates(self, std::move(mates), std::move(memory), std::move(bell), waiting));
  ANTDT_RETURN_IF_ERROR(made->watch_connections());
  return made;
}

Status Mates::watch_connections() {
  events_ = OwnedFd(epoll_create1(EPOLL_CLOEXEC));
  if (!events_.is_open()) return fail_errno(ErrorKind::kIo, errno, "making an epoll");
  ANTDT_RETURN_IF_ERROR(add_event(events_, bell_->fd, kBellEvent));
  for (std::uint32_t member = 0; member < size(); ++member) {
    if (member == self_) continue;
    ANTDT_RETURN_IF_ERROR(add_event(events_, mates_[member].connection, member));
  }
  return {};
}

void Mates::post(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  word.store(value);
  for (std::uint32_t member = 0; member < size(); ++member) {
    std::atomic<std::uint32_t>& sleeps_for = words(member).sleeps_for;
    if (sleeps_for.load() != self_ + 1) continue;
    std::uint32_t expected = self_ + 1;
    if (sleeps_for.compare_exchange_strong(expected, 0)) Bell::ring(mates_[member].bell);
  }
}

Status Mates::sleep_until(std::uint32_t member, const Reaches& reaches) {
  std::atomic<std::uint32_t>& sleeps_for = words(self_).sleeps_for;
  while (true) {
    ANTDT_RETURN_IF_ERROR(alive());
    sleeps_for.store(member + 1);
    if (reaches(member)) break;
    // A member posts before it leaves, so its words are looked at after its end was noticed.
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (gone_[other] && !reaches(other)) {
        return die(fmt::format("rank {} has closed the connection", rank_of(other)));
      }
    }
    const MonoTime began = std::chrono::steady_clock::now();
    const Status slept = sleep();
    if (ledger_) ledger_->waited(rank_of(member), std::chrono::steady_clock::now() - began);
    ANTDT_RETURN_IF_ERROR(slept);
  }
  sleeps_for.store(0);
  return {};
}

Status Mates::sleep() {
  std::array<epoll_event, 16> events{};
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(waiting_.timeout).count();
  const int ready = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(timeout));
  if (ready < 0 && errno != EINTR) {
    return die(fmt::format("waiting: {}", std::strerror(errno)));
  }
  if (ready == 0) {
    return die(fmt::format("nothing came for {:.0f} s", to_seconds(waiting_.timeout)));
  }
  for (int i = 0; i < ready; ++i) {
    const std::uint32_t mark = events[static_cast<std::size_t>(i)].data.u32;
    if (mark == kBellEvent) {
      bell_->hush();
    } else {
      // Nothing is ever sent over it, so whatever happened to it is its end.
      gone_[mark] = true;
      epoll_ctl(events_.get(), EPOLL_CTL_DEL, mates_[mark].connection.get(), nullptr);
      mates_[mark].connection.close();
    }
  }
  return {};
}

Status Mates::alive() {
  if (bell_->aborted) {
    close_all();
    return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank_of(self_));
  }
  if (death_.empty()) return {};
  return fail(death_kind_, "the collective of rank {} is broken: {}", rank_of(self_), death_);
}

Status Mates::die(std::string cause, ErrorKind kind) {
  if (death_.empty()) {
    death_ = std::move(cause);
    death_kind_ = kind;
    close_all();
  }
  return alive();
}

void Mates::close_all() {
  for (Mate& mate : mates_) mate.connection.close();
}

}  // namespace antdt::trainer::shm
