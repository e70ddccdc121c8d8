// Rings of a test, with ranks as threads and as processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trainer/collective/ring.h"

namespace antdt::trainer {

inline constexpr std::uint64_t kKey = 0x1234'5678'9abc'def0;
using RankBody = std::function<void(Collective&)>;

inline RingOptions local_ring() { return {.hostname = "127.0.0.1", .interface = ""}; }

inline std::unique_ptr<CollectiveBuilder> prepare(std::uint32_t rank, std::uint32_t size,
                                                  const RingOptions& options = local_ring()) {
  auto builder = prepare_ring(rank, size, options);
  EXPECT_TRUE(builder) << builder.error().message;
  return std::move(*builder);
}

inline std::vector<std::unique_ptr<CollectiveBuilder>> prepare_all(std::uint32_t size) {
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  for (std::uint32_t rank = 0; rank < size; ++rank) builders.push_back(prepare(rank, size));
  return builders;
}

inline Result<std::unique_ptr<Collective>> connect(
    std::vector<std::unique_ptr<CollectiveBuilder>>& builders, std::uint32_t rank,
    std::uint64_t key = kKey) {
  const auto size = static_cast<std::uint32_t>(builders.size());
  return builders[rank]->connect(builders[(rank + size - 1) % size]->address_for_right(),
                                 builders[(rank + 1) % size]->address_for_left(), key);
}

inline void in_threads(std::uint32_t size, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (auto& thread : threads) thread.join();
}

// A port is used again soon after it was closed, so that a test beside this one
// may dial a listener here; a member that met such a stranger gives up, and a
// job forms the ring anew, as this does.
using OptionsOf = std::function<RingOptions(std::uint32_t rank)>;
inline std::vector<std::unique_ptr<Collective>> connect_all(
    std::uint32_t size, const OptionsOf& options = [](std::uint32_t) { return local_ring(); }) {
  std::vector<std::unique_ptr<Collective>> rings(size);
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<std::unique_ptr<CollectiveBuilder>> builders;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      builders.push_back(prepare(rank, size, options(rank)));
    }
    std::atomic<bool> complete = true;
    in_threads(size, [&](std::uint32_t rank) {
      auto ring = connect(builders, rank);
      if (ring) rings[rank] = std::move(*ring);
      if (!ring) complete = false;
    });
    if (complete) return rings;
    rings = std::vector<std::unique_ptr<Collective>>(size);
  }
  throw std::runtime_error("no ring could be formed");
}

inline void run_as_threads(std::uint32_t size, const RankBody& body) {
  auto rings = connect_all(size);
  in_threads(size, [&](std::uint32_t rank) {
    body(*rings[rank]);
    rings[rank].reset();  // as a member that ends, while others go on
  });
}

// Ranks as forked processes that exchange addresses through shared memory.
class ProcessRing {
 public:
  struct Cell {
    std::atomic<bool> ready = false;
    std::atomic<int> formed = 0;  // 1: it is in the ring; -1: it could not be
    char left[256] = {};
    char right[256] = {};
    std::size_t left_bytes = 0;
    std::size_t right_bytes = 0;
    std::atomic<int> note = 0;  // for the test's own use
  };
  // `body` returns the process's exit code.
  ProcessRing(std::uint32_t size, const std::function<int(Collective&, Cell&)>& body)
      : size_(size),
        cells_(static_cast<Cell*>(mmap(nullptr, sizeof(Cell) * size, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    // Anew where a stranger dialled in, as connect_all does.
    for (int attempt = 0; attempt < 5; ++attempt) {
      start(body);
      if (is_formed()) return;
      end();
    }
    throw std::runtime_error("no ring could be formed");
  }
  ~ProcessRing() {
    end();
    munmap(cells_, sizeof(Cell) * size_);
  }
  Cell& cell(std::uint32_t rank) { return cells_[rank]; }
  pid_t pid(std::uint32_t rank) const { return pids_[rank].value(); }
  int exit_code(std::uint32_t rank) {
    int status = 0;
    waitpid(pid(rank), &status, 0);
    pids_[rank].reset();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  void start(const std::function<int(Collective&, Cell&)>& body) {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      new (&cells_[rank]) Cell;
    }
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(60);
        std::signal(SIGPIPE, SIG_IGN);  // as every program of ours does
        _exit(run(rank, body));
      }
      if (pid < 0) throw std::runtime_error("cannot fork");
      pids_.emplace_back(pid);
    }
  }
  void end() {
    for (const auto& pid : pids_) {
      if (!pid) continue;  // waited for already
      kill(*pid, SIGKILL);
      waitpid(*pid, nullptr, 0);
    }
    pids_.clear();
  }
  [[nodiscard]] bool is_formed() const {
    bool formed = true;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      while (cells_[rank].formed == 0) std::this_thread::yield();
      formed = formed && cells_[rank].formed == 1;
    }
    return formed;
  }
  int run(std::uint32_t rank, const std::function<int(Collective&, Cell&)>& body) {
    auto builder = prepare(rank, size_);
    const std::string left = builder->address_for_left();
    const std::string right = builder->address_for_right();
    Cell& own = cells_[rank];
    std::memcpy(own.left, left.data(), own.left_bytes = left.size());
    std::memcpy(own.right, right.data(), own.right_bytes = right.size());
    own.ready = true;
    const auto neighbour = [&](std::uint32_t of) -> Cell& {
      Cell& cell = cells_[of % size_];
      while (!cell.ready) std::this_thread::yield();
      return cell;
    };
    const Cell& before = neighbour(rank + size_ - 1);
    const Cell& after = neighbour(rank + 1);
    auto ring =
        builder->connect({before.right, before.right_bytes}, {after.left, after.left_bytes}, kKey);
    own.formed = ring ? 1 : -1;
    return ring ? body(**ring, own) : 70;
  }

  std::uint32_t size_;
  Cell* cells_;
  std::vector<std::optional<pid_t>> pids_;
};

}  // namespace antdt::trainer
