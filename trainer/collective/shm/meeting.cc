#include "trainer/collective/shm/meeting.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "core/crypto/secret.h"
#include "trainer/collective/greeting.h"
#include "trainer/collective/shm/handover.h"

namespace antdt::trainer::shm {
namespace {

constexpr int kBacklog = 1024;

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};
Result<AbstractAddress> abstract(const std::string& name) {
  AbstractAddress made;
  if (name.empty() || name.size() + 1 > sizeof(made.address.sun_path)) {
    return fail(ErrorKind::kUsage, "'{}' is not the name of a member's socket", name);
  }
  made.address.sun_family = AF_UNIX;
  name.copy(made.address.sun_path + 1, name.size());  // a zero byte first
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

OwnedFd unix_socket() {
  return OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

const sockaddr* generic(const AbstractAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.address);
}

Result<OwnedFd> dial(const std::string& name) {
  ANTDT_TRY(const AbstractAddress address, abstract(name));
  OwnedFd fd = unix_socket();
  if (!fd.is_open()) {
    const int error = errno;
    return fail(ErrorKind::kUnreachable, "making a unix socket: {}{}", std::strerror(error),
                how_to_mend(error));
  }
  if (connect(fd.get(), generic(address), address.length) == 0) return fd;
  if (errno == EAGAIN) return OwnedFd();  // its queue of connections is full
  return fail_errno(ErrorKind::kUnreachable, errno,
                    "it declared the same host, but its unix socket cannot be reached (set "
                    "trainer.collective = \"tcp\" if these are different hosts)");
}

std::string random_name(const crypto::Nonce& nonce) {
  std::string name = "antdt-";
  for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", static_cast<int>(nonce[i]));
  return name;
}

cpu_set_t own_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  // More CPUs than fit the set: then this member adds none, and nobody spins.
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
  return cpus;
}

}  // namespace

Result<Meeting> Meeting::listen(std::shared_ptr<Bell> bell) {
  ANTDT_TRY(const crypto::Nonce nonce, crypto::random_nonce());
  std::string name = random_name(nonce);
  ANTDT_TRY(const AbstractAddress address, abstract(name));
  OwnedFd listener = unix_socket();
  if (!listener.is_open() || bind(listener.get(), generic(address), address.length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "listening for the members of this host");
  }
  return Meeting(std::move(bell), std::move(listener), std::move(name));
}

Result<std::unique_ptr<Mates>> Meeting::meet(const Handshake::Self& self,
                                             const std::vector<std::uint32_t>& ranks,
                                             std::span<const std::string> names,
                                             const Timeouts& timeouts) {
  const MonoTime until = std::chrono::steady_clock::now() + timeouts.connect;
  const auto own_place = std::ranges::find(ranks, self.rank);
  const auto index = static_cast<std::uint32_t>(own_place - ranks.begin());
  std::vector<std::uint32_t> peers = ranks;
  std::erase(peers, self.rank);
  Greeting greeting(self, listener_, bell_->fd, dial);
  auto met = greeting.meet(peers, names, timeouts.connect);
  listener_.close();
  if (!met) return tl::unexpected(met.error());

  std::optional<SharedMemory> memory;
  if (index == 0) {
    ANTDT_TRY(auto made, SharedMemory::create(ranks.size()));
    memory.emplace(std::move(made));
  }
  const cpu_set_t own = own_cpus();
  cpu_set_t cpus = own;
  for (const std::uint32_t peer : peers) {
    ANTDT_RETURN_IF_ERROR(
        hand_over(met->at(peer).fd, bell_->fd, memory ? &memory->fd() : nullptr, own));
  }
  std::vector<Mate> mates(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Mate& mate = mates[i];
    mate.rank = ranks[i];
    if (i == index) continue;
    mate.connection = std::move(met->at(mate.rank).fd);
    auto taken = take_over(mate.connection, i == 0, bell_->fd, until);
    if (!taken) {
      return fail(taken.error().kind, "rank {} does not share memory with rank {}: {}", mate.rank,
                  self.rank, taken.error().message);
    }
    mate.bell = std::move(taken->bell);
    CPU_OR(&cpus, &cpus, &taken->cpus);
    if (i == 0) {
      ANTDT_TRY(auto mapped, SharedMemory::map(std::move(taken->memory), ranks.size()));
      memory.emplace(std::move(mapped));
    }
  }
  // Looking for a word to change takes the CPU from the member that is to change it, unless each
  // has one.
  const bool spins = static_cast<std::size_t>(CPU_COUNT(&cpus)) >= ranks.size();
  return Mates::of(index, std::move(mates), std::move(*memory), bell_, {spins, timeouts.operation});
}

}  // namespace antdt::trainer::shm
