// The memory that the members of one host share: a memfd, which has no name in any file system and
// ends with the last process that has it.
//
// It begins with the words of every member, by index; behind them is each member's area: kSlots
// slots for what it stages, and two channels, to its right and to its left neighbour. A member
// writes to its own words and its own area only, except for Words::sleeps_for. The size follows
// from the number of members alone and is sealed, so no member can make a page of another vanish.
// Nothing that is read from it is used as an offset or a size without a check of its bounds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/hop.h"

namespace antdt::trainer::shm {

// Bytes of a chunk: a wake-up costs little beside it.
inline constexpr std::size_t kSlotBytes = 256UL * 1024;
// How many chunks a member may have staged before the others are done with the first of them. So
// many that a slot has left the caches of those who read it before it is written again.
inline constexpr std::size_t kSlots = 16;
inline constexpr std::size_t kChannelBytes = 256UL * 1024;

// What a chunk in a slot belongs to, so that members that run different operations find out.
struct Header {
  std::atomic<std::uint64_t> operation{};  // counts the operations of the group
  std::atomic<std::uint64_t> bytes{};
};

struct Channel {  // bytes to a neighbour; each count is written by one of the two members
  alignas(64) std::atomic<std::uint64_t> sent{};
  alignas(64) std::atomic<std::uint64_t> received{};
};

struct Words {
  // Each counts chunks and only grows. `staged`: this member's part is in its slot. `reduced`: the
  // sum of its slice is there. `done`: it needs nothing of these chunks any more.
  alignas(64) std::atomic<std::uint64_t> staged{};
  std::atomic<std::uint64_t> reduced{};
  std::atomic<std::uint64_t> done{};
  // 1 + the index of the member for which this one sleeps; that member sets it to 0 and rings.
  alignas(64) std::atomic<std::uint32_t> sleeps_for{};
  alignas(64) std::array<Header, kSlots> headers{};
  std::array<Channel, 2> channels{};  // by Side
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

class SharedMemory {
 public:
  // Of so many members. kIo.
  [[nodiscard]] static Result<SharedMemory> create(std::size_t members);
  // The memory that another member created. kCorrupt if it has another size or is not sealed; kIo.
  [[nodiscard]] static Result<SharedMemory> map(OwnedFd fd, std::size_t members);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  [[nodiscard]] static std::size_t bytes_for(std::size_t members);
  [[nodiscard]] std::size_t members() const { return members_; }
  [[nodiscard]] const OwnedFd& fd() const { return fd_; }
  [[nodiscard]] Words& words(std::size_t member) const;
  [[nodiscard]] std::span<std::byte> slot(std::size_t member, std::uint64_t chunk) const;
  [[nodiscard]] std::span<std::byte> channel(std::size_t member, Side side) const;

 private:
  SharedMemory(OwnedFd fd, std::byte* at, std::size_t members)
      : fd_(std::move(fd)), at_(at), members_(members) {}
  [[nodiscard]] static Result<SharedMemory> map_checked(OwnedFd fd, std::size_t members);
  [[nodiscard]] std::byte* area(std::size_t member) const;

  OwnedFd fd_;
  std::byte* at_ = nullptr;
  std::size_t members_ = 0;
};

}  // namespace antdt::trainer::shm
