// Groups of a test, with ranks as threads and as processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "trainer/collective/prepare.h"

namespace antdt::trainer {

inline GroupKey key_of(const std::string& secret) {
  return {crypto::Secret().derive(secret), "job-1", Generation{3}};
}
inline const GroupKey kKey = key_of("secret");
using RankBody = std::function<void(Collective&)>;

inline CollectiveOptions on_loopback() { return {.hostname = "127.0.0.1", .interface = ""}; }

inline std::unique_ptr<CollectiveBuilder> prepare(
    std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options = on_loopback()) {
  auto builder = prepare_collective(rank, size, options);
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
    const GroupKey& key = kKey) {
  std::vector<MemberAddress> addresses;
  for (const auto& builder : builders) addresses.push_back(builder->address());
  return builders[rank]->connect(addresses, key);
}

inline void in_threads(std::uint32_t size, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (auto& thread : threads) thread.join();
}

using OptionsOf = std::function<CollectiveOptions(std::uint32_t rank)>;
inline std::vector<std::unique_ptr<Collective>> connect_all(
    std::uint32_t size, const OptionsOf& options = [](std::uint32_t) { return on_loopback(); }) {
  std::vector<std::unique_ptr<Collective>> group(size);
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    builders.push_back(prepare(rank, size, options(rank)));
  }
  in_threads(size, [&](std::uint32_t rank) {
    auto made = connect(builders, rank);
    ASSERT_TRUE(made) << made.error().message;
    group[rank] = std::move(*made);
  });
  if (std::count(group.begin(), group.end(), nullptr) == 0) return group;
  throw std::runtime_error("no group could be formed");
}

// How the members of a group are spread over hosts, and what they may use. Members of one machine
// stand for those of several: each says that it is on the host of which this has the name.
struct Layout {
  std::string name;
  Backend backend = Backend::kShm;
  std::string hosts;  // a letter for each rank, again from the beginning for more

  [[nodiscard]] CollectiveOptions options_of(std::uint32_t rank) const {
    CollectiveOptions options = on_loopback();
    options.backend = backend;
    options.host = backend == Backend::kTcp ? "" : std::string(1, hosts[rank % hosts.size()]);
    return options;
  }
};
inline const std::vector<Layout> kLayouts = {
    {"Tcp", Backend::kTcp, ""},
    {"OneHost", Backend::kShm, "a"},
    {"TwoAndTwo", Backend::kShm, "aabb"},
    {"ByTurns", Backend::kShm, "ab"},
    {"ThreeAndOne", Backend::kShm, "aaab"},
    {"OneOneTwo", Backend::kShm, "abcc"},
};

inline void run_as_threads(
    std::uint32_t size, const RankBody& body,
    const OptionsOf& options = [](std::uint32_t) { return on_loopback(); }) {
  auto rings = connect_all(size, options);
  in_threads(size, [&](std::uint32_t rank) {
    body(*rings[rank]);
    rings[rank].reset();  // as a member that ends, while others go on
  });
}

// Ranks as forked processes that exchange addresses through shared memory.
class ProcessGroup {
 public:
  struct Cell {
    std::atomic<bool> ready = false;
    char address[64] = {};
    char sharing[128] = {};
    std::atomic<int> note = 0;  // for the test's own use
  };
  // `body` returns the process's exit code.
  ProcessGroup(OptionsOf options, std::uint32_t size,
               const std::function<int(Collective&, Cell&)>& body)
      : size_(size),
        options_(std::move(options)),
        cells_(static_cast<Cell*>(mmap(nullptr, sizeof(Cell) * size, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    start(body);
  }
  ~ProcessGroup() {
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
  int run(std::uint32_t rank, const std::function<int(Collective&, Cell&)>& body) {
    auto builder = prepare(rank, size_, options_(rank));
    const MemberAddress own = builder->address();
    own.at.copy(cells_[rank].address, sizeof(Cell::address) - 1);
    own.sharing.copy(cells_[rank].sharing, sizeof(Cell::sharing) - 1);
    cells_[rank].ready = true;
    std::vector<MemberAddress> addresses;
    for (std::uint32_t peer = 0; peer < size_; ++peer) {
      while (!cells_[peer].ready) std::this_thread::yield();
      addresses.push_back({cells_[peer].address, cells_[peer].sharing});
    }
    auto group = builder->connect(addresses, kKey);
    return group ? body(**group, cells_[rank]) : 70;
  }

  std::uint32_t size_;
  OptionsOf options_;
  Cell* cells_;
  std::vector<std::optional<pid_t>> pids_;
};

}  // namespace antdt::trainer
