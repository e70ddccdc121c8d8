// The memory through which the members of a communicator, which are processes, exchange numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fake {

inline constexpr int kMostMembers = 8;
inline constexpr std::size_t kPieceBytes = 64 * 1024;

// Says whether to go on waiting.
using GoOn = std::function<bool()>;

class Exchange {
 public:
  // Makes the memory under that name, or opens it.
  static void create(const std::string& name);
  // Null if nobody made it, or the first member has left already.
  static std::unique_ptr<Exchange> open(const std::string& name, int rank, int size);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Each returns false if `go_on` did before it was complete.
  [[nodiscard]] bool meet(const GoOn& go_on);  // all members have come here as often
  [[nodiscard]] bool gather(const std::byte* mine, std::size_t bytes, const GoOn& go_on);
  [[nodiscard]] const std::byte* part(int rank) const;  // of the last gather
  [[nodiscard]] bool send(int to, const std::byte* bytes, std::size_t size, const GoOn& go_on);
  [[nodiscard]] bool receive(int from, std::byte* bytes, std::size_t size, const GoOn& go_on);
  [[nodiscard]] bool all_live() const;

 private:
  struct Pipe {
    std::atomic<std::uint64_t> sent, taken;  // pieces
    std::byte piece[kPieceBytes];
  };
  struct Memory {
    std::atomic<std::uint64_t> met[kMostMembers];
    std::atomic<int> pid[kMostMembers];
    std::byte part[kMostMembers][kPieceBytes];
    Pipe pipe[kMostMembers][kMostMembers];
  };
  Exchange(std::string name, int rank, int size, Memory* memory)
      : name_(std::move(name)), rank_(rank), size_(size), memory_(memory) {}
  std::string name_;
  int rank_, size_;
  Memory* memory_;
};

}  // namespace fake
