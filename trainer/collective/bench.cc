#include "trainer/collective/bench.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "trainer/collective/prepare.h"

namespace antdt::trainer {
namespace {

// Memory shared by the ranks: their addresses, and rank 0's result.
struct Cell {
  std::atomic<bool> ready = false;
  char address[64] = {};
  char sharing[128] = {};
};
struct Shared {
  std::atomic<bool> failed = false;
  AllreduceBenchResult result;
  char error[512] = {};
};

double memcpy_speed(std::size_t bytes) {
  const std::vector<char> from(std::max<std::size_t>(bytes, 1), 1);
  std::vector<char> to(from.size());
  std::vector<double> seconds;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" ::"r"(to.data()) : "memory");
    seconds.push_back(to_seconds(std::chrono::steady_clock::now() - start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + 10, seconds.end());
  return static_cast<double>(from.size()) / std::max(seconds[10], 1e-9);
}

Result<std::unique_ptr<Collective>> form(std::uint32_t rank, const AllreduceBenchOptions& bench,
                                         Cell* cells, const Shared& shared) {
  const std::uint32_t size = bench.ranks;
  CollectiveOptions options{.hostname = "127.0.0.1", .interface = "", .encrypt = bench.encrypt};
  options.backend = bench.backend;
  ANTDT_TRY(const auto builder, prepare_collective(rank, size, options));
  const MemberAddress own = builder->address();
  own.at.copy(cells[rank].address, sizeof(Cell::address) - 1);
  own.sharing.copy(cells[rank].sharing, sizeof(Cell::sharing) - 1);
  cells[rank].ready = true;
  std::vector<MemberAddress> addresses;
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    while (!cells[peer].ready) {
      if (shared.failed) return fail(ErrorKind::kAborted, "another rank failed");
      std::this_thread::yield();
    }
    addresses.push_back({cells[peer].address, cells[peer].sharing});
  }
  return builder->connect(addresses, GroupKey{});
}

double percentile(std::vector<double>& values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// Each rank copies at the same time what it has to move in an all-reduce of `values`.
Result<double> copies_us(Collective& group, std::vector<float>& values) {
  std::vector<float> to(values.size());
  std::vector<double> times_us;
  const std::size_t once = values.size() * sizeof(float) * (group.size() - 1) / group.size();
  for (int i = 0; i < 15; ++i) {
    float one = 1;
    ANTDT_RETURN_IF_ERROR(group.allreduce_sum({&one, 1}));  // all begin
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), values.data(), once);
    asm volatile("" ::"r"(to.data()) : "memory");
    std::memcpy(values.data(), to.data(), once);
    asm volatile("" ::"r"(values.data()) : "memory");
    ANTDT_RETURN_IF_ERROR(group.allreduce_sum({&one, 1}));  // all have ended
    times_us.push_back(to_seconds(std::chrono::steady_clock::now() - start) * 1e6);
  }
  return percentile(times_us, 0.50);
}

// Repeats the call until rank 0 announces, in a sum of its own, that the time is over.
Status measure(Collective& group, const AllreduceBenchOptions& options, Shared& shared) {
  std::vector<float> values(std::max<std::size_t>(1, options.bytes / sizeof(float)), 1.0F);
  std::vector<double> times_us;
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kWarmUp = 5;
  for (int call = 0;; ++call) {
    std::fill(values.begin(), values.end(), 1.0F);
    const auto start = std::chrono::steady_clock::now();
    ANTDT_RETURN_IF_ERROR(group.allreduce_sum(values));
    const auto end = std::chrono::steady_clock::now();
    if (values.front() != static_cast<float>(group.size()) || values.front() != values.back()) {
      return fail(ErrorKind::kInternal, "a sum over {} ranks is {}", group.size(), values.back());
    }
    if (call >= kWarmUp) times_us.push_back(to_seconds(end - start) * 1e6);
    float over =
        group.rank() == 0 && call > kWarmUp && end - begin >= options.duration ? 1.0F : 0.0F;
    ANTDT_RETURN_IF_ERROR(group.allreduce_sum({&over, 1}));
    if (over > 0) break;
  }
  ANTDT_TRY(const double copying_us, copies_us(group, values));
  if (group.rank() != 0) return {};
  AllreduceBenchResult& result = shared.result;
  const double mean_s = std::accumulate(times_us.begin(), times_us.end(), 0.0) /
                        static_cast<double>(times_us.size()) / 1e6;
  const auto bytes = static_cast<double>(values.size() * sizeof(float));
  result.ranks = group.size();
  result.encrypted = options.encrypt;
  result.backend = options.backend;
  result.copies_us = copying_us;
  result.bytes = values.size() * sizeof(float);
  result.calls = times_us.size();
  result.algorithm_bytes_per_s = bytes / mean_s;
  result.bus_bytes_per_s = result.algorithm_bytes_per_s * 2 * (group.size() - 1) / group.size();
  result.p50_us = percentile(times_us, 0.50);
  result.p99_us = percentile(times_us, 0.99);
  return {};
}

Status run_rank(std::uint32_t rank, const AllreduceBenchOptions& options, Cell* cells,
                Shared& shared) {
  ANTDT_TRY(const auto group, form(rank, options, cells, shared));
  return measure(*group, options, shared);
}

[[noreturn]] void child(std::uint32_t rank, const AllreduceBenchOptions& options, Cell* cells,
                        Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Status status = run_rank(rank, options, cells, shared);
  if (!status && !shared.failed.exchange(true)) {
    const auto end = fmt::format_to_n(shared.error, sizeof(shared.error) - 1, "rank {}: {}", rank,
                                      status.error().message);
    *end.out = '\0';
  }
  _exit(status ? 0 : 1);
}

}  // namespace

Result<AllreduceBenchResult> bench_allreduce(const AllreduceBenchOptions& options) {
  if (options.ranks < 1 || options.ranks > 1024) {
    return fail(ErrorKind::kUsage, "cannot run {} ranks: from 1 to 1024 are possible",
                options.ranks);
  }
  const double memcpy_bytes_per_s = memcpy_speed(options.bytes);
  const std::size_t bytes = sizeof(Shared) + sizeof(Cell) * options.ranks;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno(ErrorKind::kIo, errno, "cannot map shared memory");
  auto& shared = *new (memory) Shared;
  auto* const cells = reinterpret_cast<Cell*>(&shared + 1);
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) new (&cells[rank]) Cell;

  std::vector<pid_t> pids;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) child(rank, options, cells, shared);
    if (pid < 0) shared.failed = true;
    if (pid > 0) pids.push_back(pid);
  }
  bool all_well = pids.size() == options.ranks;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    all_well = all_well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  AllreduceBenchResult result = shared.result;
  const std::string error = shared.error;
  munmap(memory, bytes);
  if (!all_well) {
    return fail(ErrorKind::kInternal, "the all-reduce of {} ranks failed: {}", options.ranks,
                error.empty() ? "a rank could not be started or was killed" : error);
  }
  result.memcpy_bytes_per_s = memcpy_bytes_per_s;
  return result;
}

std::string to_json(const AllreduceBenchResult& r) {
  return fmt::format(
      R"({{"schema": 1, "ranks": {}, "bytes": {}, "calls": {}, "algorithm_bytes_per_s": {:.0f}, )"
      R"("bus_bytes_per_s": {:.0f}, "p50_us": {:.1f}, "p99_us": {:.1f}, "memcpy_bytes_per_s": {:.0f}, )"
      R"("copies_us": {:.1f}, "encrypted": {}, "collective": "{}"}})",
      r.ranks, r.bytes, r.calls, r.algorithm_bytes_per_s, r.bus_bytes_per_s, r.p50_us, r.p99_us,
      r.memcpy_bytes_per_s, r.copies_us, r.encrypted, r.backend == Backend::kTcp ? "tcp" : "shm");
}

}  // namespace antdt::trainer
