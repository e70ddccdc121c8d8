// The servers and workers of `antdt bench ps`.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <memory_resource>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "bench/antdt/ps.h"
#include "core/clock.h"
#include "core/loop.h"
#include "core/os/forks/huge_pages.h"
#include "core/os/process.h"
#include "core/transport/socket.h"
#include "trainer/ps/placement.h"
#include "trainer/ps_link/server_loop.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::bench {
namespace {

constexpr std::size_t kBatches = 128;  // made before the clock starts
constexpr Duration kGiveUp = std::chrono::seconds(60);

Result<ps::Group> group_of(const PsOptions& options) {
  ps::Group group;
  for (std::uint32_t s = 0; s < options.servers; ++s) {
    group.sockets.push_back(fmt::format("{}/s{}", options.directory, s));
  }
  ANTDT_TRY(group.consistency, ps::consistency_of(options.sync));
  for (std::uint32_t w = 0; w < options.workers; ++w) {
    group.workers.push_back({WorkerId{'w', w}, Attempt{1}});
  }
  return group;
}

// The rows of a batch in the only table.
struct Batch {
  std::vector<ps::TableKeys> keys;
  std::vector<ps::TableGradient> gradient;
};

std::vector<Batch> make_batches(const PsOptions& options) {
  std::mt19937_64 random(options.index + 1);
  std::vector<Batch> batches;
  for (std::size_t n = 0; n < kBatches; ++n) {
    std::vector<std::uint64_t> keys(options.keys);
    for (std::uint64_t& key : keys) key = random() % options.rows;
    std::ranges::sort(keys);
    const auto twice = std::ranges::unique(keys);
    keys.erase(twice.begin(), twice.end());
    Batch& batch = batches.emplace_back();
    if (!options.pull_only) {
      batch.gradient = {{0, {keys, std::vector<float>(keys.size() * options.dim, 1e-3F)}}};
    }
    batch.keys = {{0, std::move(keys)}};
  }
  return batches;
}

// All rows are made before the clock starts: each worker makes a part of them.
Status make_rows(const PsOptions& options, ps::WorkerLink& link) {
  for (std::uint64_t first = options.index * options.keys; first < options.rows;
       first += options.workers * options.keys) {
    std::vector<std::uint64_t> keys(std::min(options.keys, options.rows - first));
    std::iota(keys.begin(), keys.end(), first);
    ANTDT_RETURN_IF_ERROR(link.pull({{0, std::move(keys)}}, 0));
  }
  return {};
}

// With bounded staleness, no worker is more than this many pushes ahead.
constexpr std::uint64_t kStaleness = 4;

std::uint64_t clock_of(const PsOptions& options, std::uint64_t pushes) {
  if (options.sync == SyncStrategy::kPsBsp) return pushes;
  if (options.sync == SyncStrategy::kPsSsp) return pushes - std::min(pushes, kStaleness);
  return 0;
}

// Applies to all threads that this process starts from now on.
Status pin_to_core(std::uint32_t index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "sched_getaffinity");
  }
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[index % cores.size()], &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "sched_setaffinity");
  }
  return {};
}

}  // namespace

Status run_ps_server(const PsOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::pmr::set_default_resource(&HugePages::of_process());  // as antdt-server does
  keep_freed_memory();
  if (options.pin) ANTDT_RETURN_IF_ERROR(pin_to_core(options.index));
  const SteadyClock clock;
  EventLoop loop(clock);
  transport::Context context;
  ANTDT_RETURN_IF_ERROR(loop.watch_signals({SIGTERM}, [&](int) { loop.stop(); }));
  ANTDT_TRY(const ps::Group group, group_of(options));
  ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, group.sockets.at(options.index)));
  ANTDT_TRY(const auto server, ps::ServerLoop::open(loop, context, socket, group, options.index));
  loop.run();
  return {};
}

Result<std::string> run_ps_worker(const PsOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  keep_freed_memory();
  const SteadyClock clock;
  transport::Context context;
  const Member self{WorkerId{'w', options.index}, Attempt{1}};
  ANTDT_TRY(const ps::Group group, group_of(options));
  const ps::Peers peers{group.generation, group.sockets, group.consistency, kGiveUp};
  ANTDT_TRY(const auto link, ps::WorkerLink::connect(context, peers, self));
  ANTDT_RETURN_IF_ERROR(
      link->open({1, {{"rows", options.dim, options.rule, 0.01, 0, 0, "normal", 0.01}}}));
  const auto batches = make_batches(options);
  ANTDT_RETURN_IF_ERROR(make_rows(options, *link));

  const MonoTime start{Duration(options.start_ns)};
  const MonoTime end = start + from_seconds(options.seconds);
  if (clock.now() > start) {
    return fail(
        ErrorKind::kInternal,
        "worker {} had not made its part of {} rows when the clock started: this machine is "
        "too busy, or give --rows fewer",
        options.index, options.rows);
  }
  std::uint64_t pulled = 0;
  std::uint64_t pushed = 0;
  std::uint64_t number = 0;
  std::vector<std::uint32_t> latency_us;
  for (MonoTime now = clock.now(); now < end; now = clock.now()) {
    const Batch& batch = batches[number % kBatches];
    const std::size_t keys = batch.keys.front().keys.size();
    ANTDT_TRY(const auto rows, link->pull(batch.keys, clock_of(options, number)));
    const MonoTime answered = clock.now();
    ++number;
    if (!options.pull_only) {
      ANTDT_TRY(const auto decided,
                link->push(batch.gradient, rows,
                           {number, number - 1, 0, number - 1, number, static_cast<double>(keys)}));
      if (decided.status != wire::PsFate::kApplied) {
        return fail(ErrorKind::kInternal, "a push was '{}'", decided.status);
      }
    }
    if (now < start || answered >= end) continue;
    pulled += keys;
    pushed += options.pull_only ? 0 : keys;
    latency_us.push_back(static_cast<std::uint32_t>((answered - now).count() / 1000));
  }
  ANTDT_RETURN_IF_ERROR(link->idle());  // others may still be in a step
  return nlohmann::json{{"pulled", pulled}, {"pushed", pushed}, {"latency_us", latency_us}}.dump();
}

}  // namespace antdt::bench
