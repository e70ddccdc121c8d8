#include "trainer/collective/shm/handover.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace antdt::trainer::shm {
namespace {

struct Note {
  std::uint64_t magic = 0;
  cpu_set_t cpus{};
};
constexpr std::uint64_t kMagic = 0x31'6d'68'73'74'64'6e'61;  // "andtshm1", the layout of the memory
constexpr std::size_t kMostDescriptors = 2;

struct Control {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes{};
};

std::vector<OwnedFd> descriptors_in(msghdr& message) {
  std::vector<OwnedFd> found;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

Status hand_over(const OwnedFd& connection, const OwnedFd& bell, const OwnedFd* memory,
                 const cpu_set_t& cpus) {
  Note note{kMagic, cpus};
  iovec part{&note, sizeof(note)};
  Control control;
  const std::array<int, kMostDescriptors> fds{bell.get(), memory == nullptr ? -1 : memory->get()};
  const std::size_t bytes = sizeof(int) * (memory == nullptr ? 1 : 2);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(c), fds.data(), bytes);
  // These are among the first bytes of a connection, so they fit, or the connection is broken.
  const ssize_t n = sendmsg(connection.get(), &message, MSG_NOSIGNAL);
  if (n == static_cast<ssize_t>(sizeof(note))) return {};
  return fail_errno(ErrorKind::kIo, n < 0 ? errno : EIO, "handing memory to a member of this host");
}

Result<Handover> take_over(const OwnedFd& connection, bool with_memory, const OwnedFd& wake,
                           MonoTime until) {
  const Duration left = std::max(until - std::chrono::steady_clock::now(), Duration::zero());
  std::array<pollfd, 2> polled{pollfd{wake.get(), POLLIN, 0}, pollfd{connection.get(), POLLIN, 0}};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(ms));
  if (ready < 0 && errno != EINTR) return fail_errno(ErrorKind::kIo, errno, "waiting");
  if (ready == 0) return fail(ErrorKind::kIo, "it handed over nothing in time");
  if (polled[0].revents != 0) {
    return fail(ErrorKind::kAborted, "the forming of the group was aborted");
  }
  Note note;
  iovec part{&note, sizeof(note)};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t n = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return take_over(connection, with_memory, wake, until);
  }
  if (n < 0) return fail_errno(ErrorKind::kIo, errno, "receiving what it hands over");
  if (n == 0) return fail(ErrorKind::kIo, "it has closed the connection");
  std::vector<OwnedFd> fds = descriptors_in(message);
  const std::size_t due = with_memory ? 2 : 1;
  if (static_cast<std::size_t>(n) != sizeof(note) || note.magic != kMagic || fds.size() != due ||
      (message.msg_flags & MSG_CTRUNC) != 0) {
    return fail(ErrorKind::kCorrupt,
                "it handed over {} bytes and {} descriptors where {} and {} were due: install the "
                "same release of AntDT for all workers; or a limit on open files was met (ulimit "
                "-n)",
                n, fds.size(), sizeof(note), due);
  }
  Handover handover{std::move(fds[0]), {}, note.cpus};
  if (with_memory) handover.memory = std::move(fds[1]);
  return handover;
}

}  // namespace antdt::trainer::shm
