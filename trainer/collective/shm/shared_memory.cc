#include "trainer/collective/shm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <utility>

namespace antdt::trainer::shm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAreaBytes = kSlots * kSlotBytes + 2 * kChannelBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t words_bytes(std::size_t members) {
  return (members * sizeof(Words) + kPage - 1) / kPage * kPage;
}

}  // namespace

std::size_t SharedMemory::bytes_for(std::size_t members) {
  return words_bytes(members) + members * kAreaBytes;
}

Result<SharedMemory> SharedMemory::create(std::size_t members) {
  OwnedFd fd(memfd_create("antdt-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return fail_errno(ErrorKind::kIo, errno, "making memory to share");
  const auto bytes = static_cast<off_t>(bytes_for(members));
  if (ftruncate(fd.get(), bytes) != 0 || fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("making {} bytes to share", bytes));
  }
  ANTDT_TRY(auto memory, map_checked(std::move(fd), members));
  // Nobody else has it yet. The kernel's zeros are the initial values, which this makes official.
  for (std::size_t member = 0; member < members; ++member) new (&memory.words(member)) Words;
  return memory;
}

Result<SharedMemory> SharedMemory::map(OwnedFd fd, std::size_t members) {
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "looking at the memory of another member");
  }
  const std::size_t bytes = bytes_for(members);
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (static_cast<std::size_t>(found.st_size) == bytes && seals != -1 &&
      (seals & kSeals) == kSeals) {
    return map_checked(std::move(fd), members);
  }
  return fail(ErrorKind::kCorrupt,
              "the memory that came from another member has {} bytes and the seals {}, where {} "
              "bytes and the seals {} are due: install the same release of AntDT for all workers",
              found.st_size, seals, bytes, kSeals);
}

Result<SharedMemory> SharedMemory::map_checked(OwnedFd fd, std::size_t members) {
  const std::size_t bytes = bytes_for(members);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("mapping {} bytes to share", bytes));
  }
  // Each is a wish: a child that writes a checkpoint does not need it, a core dump should not have
  // others' gradients, and huge pages are welcome where the system gives them.
  static_cast<void>(madvise(at, bytes, MADV_DONTFORK));
  static_cast<void>(madvise(at, bytes, MADV_DONTDUMP));
  static_cast<void>(madvise(at, bytes, MADV_HUGEPAGE));
  return SharedMemory(std::move(fd), static_cast<std::byte*>(at), members);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), at_(std::exchange(other.at_, nullptr)), members_(other.members_) {}

SharedMemory::~SharedMemory() {
  if (at_ != nullptr) munmap(at_, bytes_for(members_));
}

Words& SharedMemory::words(std::size_t member) const {
  return *std::launder(reinterpret_cast<Words*>(at_ + member * sizeof(Words)));
}

std::byte* SharedMemory::area(std::size_t member) const {
  return at_ + words_bytes(members_) + member * kAreaBytes;
}

std::span<std::byte> SharedMemory::slot(std::size_t member, std::uint64_t chunk) const {
  return {area(member) + chunk % kSlots * kSlotBytes, kSlotBytes};
}

std::span<std::byte> SharedMemory::channel(std::size_t member, Side side) const {
  const std::size_t before = side == Side::kRight ? 0 : kChannelBytes;
  return {area(member) + kSlots * kSlotBytes + before, kChannelBytes};
}

}  // namespace antdt::trainer::shm
