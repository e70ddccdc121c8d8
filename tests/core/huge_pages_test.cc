#include "core/os/forks/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace antdt {
namespace {

constexpr std::size_t kChunk = HugePages::kChunk;

struct Piece {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  std::byte mark{};
};

Piece take(HugePages& memory, std::size_t bytes, std::byte mark) {
  Piece piece{static_cast<std::byte*>(memory.allocate(bytes, 16)), bytes, mark};
  std::memset(piece.at, static_cast<int>(mark), bytes);
  return piece;
}

bool is_whole(const Piece& piece) {
  return piece.at[0] == piece.mark && std::memcmp(piece.at, piece.at + 1, piece.bytes - 1) == 0;
}

// The process's memory in huge pages, in bytes, as the kernel sums it up.
std::uint64_t in_huge_pages() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("AnonHugePages:")) return 1024 * std::stoull(line.substr(14));
  }
  return 0;
}

bool system_gives_huge_pages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  return std::getline(in, text) && text.find("[never]") == std::string::npos;
}

bool kernel_can_mend() {
  void* page =
      mmap(nullptr, 2 * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(page, 1, 2 * kChunk);
  auto* const begin = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(page) + kChunk - 1) / kChunk * kChunk);
  constexpr int kCollapse = 25;
  const bool can = madvise(begin, kChunk, kCollapse) == 0;
  munmap(page, 2 * kChunk);
  return can;
}

TEST(HugePages, GivesWhatNobodyElseHasAndTakesItBack) {
  HugePages memory;
  std::mt19937 random(7);
  const std::vector<std::size_t> sizes{1,     64,         4095,           4096,   4100,
                                       16384, kChunk / 2, kChunk / 2 + 1, kChunk, 3 * kChunk + 5};
  std::vector<Piece> pieces;
  for (int turn = 0; turn < 1000; ++turn) {
    if (pieces.size() < 60 && random() % 5 < 3) {
      const std::size_t bytes = sizes[random() % sizes.size()];
      pieces.push_back(take(memory, bytes, std::byte(turn)));
    } else if (!pieces.empty()) {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      ASSERT_TRUE(is_whole(pieces.back())) << "turn " << turn;
      memory.deallocate(pieces.back().at, pieces.back().bytes, 16);
      pieces.pop_back();
    }
  }
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(is_whole(piece));
    memory.deallocate(piece.at, piece.bytes, 16);
  }
  EXPECT_EQ(memory.mapped_bytes(), 0U);
}

TEST(HugePages, OneSizeFillsItsChunksAndLeavesThemOneByOne) {
  HugePages memory;
  constexpr std::size_t kSlot = 9216;
  constexpr std::size_t kInOne = kChunk / kSlot;
  std::vector<void*> slots;
  for (std::size_t i = 0; i < 3 * kInOne; ++i) slots.push_back(memory.allocate(kSlot));
  EXPECT_EQ(memory.mapped_bytes(), 3 * kChunk);
  // One slot of each chunk stays, so no chunk is returned and its free slots are given first.
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i % kInOne != 0) memory.deallocate(slots[i], kSlot);
  }
  EXPECT_EQ(memory.mapped_bytes(), 3 * kChunk);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i % kInOne != 0) slots[i] = memory.allocate(kSlot);
  }
  EXPECT_EQ(memory.mapped_bytes(), 3 * kChunk);
  std::ranges::sort(slots);
  EXPECT_EQ(std::ranges::adjacent_find(slots), slots.end());
  for (void* slot : slots) memory.deallocate(slot, kSlot);
  EXPECT_EQ(memory.mapped_bytes(), 0U);
}

TEST(HugePages, HugePagesThatAForkSplitAreRestored) {
  if (!system_gives_huge_pages()) GTEST_SKIP() << "this system gives no huge pages";
  if (!kernel_can_mend()) GTEST_SKIP() << "a kernel before 6.1";
  HugePages memory;
  constexpr std::size_t kBytes = 16 * kChunk;
  const Piece piece = take(memory, kBytes, std::byte{1});
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  for (std::size_t at = 0; at < kBytes; at += 4096) piece.at[at] = std::byte{2};
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const std::uint64_t apart = in_huge_pages();
  memory.mend();
  memory.wait_for_mending();
  EXPECT_GE(in_huge_pages(), apart + kBytes / 2);  // a busy system may not have all
  for (std::size_t at = 0; at < kBytes; at += 4096) {
    ASSERT_EQ(piece.at[at], std::byte{2});
    ASSERT_EQ(piece.at[at + 1], std::byte{1});
  }
  memory.deallocate(piece.at, kBytes, 16);
}

TEST(HugePages, MendingToleratesMemoryThatIsFreedMeanwhile) {
  HugePages memory;
  std::vector<Piece> pieces;
  for (int turn = 0; turn < 200; ++turn) {
    memory.mend();
    pieces.push_back(take(memory, turn % 3 == 0 ? kChunk : 40'000, std::byte(turn)));
    if (turn % 2 == 0) continue;
    ASSERT_TRUE(is_whole(pieces.front()));
    memory.deallocate(pieces.front().at, pieces.front().bytes, 16);
    pieces.erase(pieces.begin());
    if (turn % 7 == 0) memory.stop_mending();
  }
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(is_whole(piece));
    memory.deallocate(piece.at, piece.bytes, 16);
  }
  memory.wait_for_mending();
  EXPECT_EQ(memory.mapped_bytes(), 0U);
}

}  // namespace
}  // namespace antdt
