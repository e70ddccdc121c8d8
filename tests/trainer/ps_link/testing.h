// Servers and workers on real sockets, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/os/fs.h"
#include "tests/trainer/ps_link/server_thread.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::ps {

inline constexpr std::uint32_t kWorkers = 3;
inline constexpr std::uint64_t kSteps = 40;
inline constexpr Duration kGiveUp = std::chrono::seconds(60);
// No message is lost here. A process that must be woken would not be woken by a repetition.
inline constexpr Duration kAgain = std::chrono::hours(1);

inline Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

class PsLinkTest : public testing::TestWithParam<Consistency> {
 protected:
  PsLinkTest() {
    for (int s = 0; s < 2; ++s) group.sockets.push_back(directory / fmt::format("s{}", s));
    group.consistency = GetParam();
    for (std::uint32_t i = 0; i < kWorkers; ++i) group.workers.push_back(w(i));
  }
  using Link = std::unique_ptr<WorkerLink>;
  Result<Link> connect(std::uint32_t worker) {
    return WorkerLink::connect(
        context, {group.generation, group.sockets, group.consistency, kGiveUp, kAgain}, w(worker));
  }
  Result<Link> link(std::uint32_t worker) {
    ANTDT_TRY(auto made, connect(worker));
    ANTDT_RETURN_IF_ERROR(made->open({1, {{"count", 2, "sum", 0, 0, 0, "zero", 0}}}));
    return made;
  }
  // A push of one for each row, `n`-th of phase `phase`.
  static Result<wire::PsDecided> push(WorkerLink& link, const std::vector<std::uint64_t>& keys,
                                      std::uint64_t n, std::uint64_t step, std::uint64_t clock,
                                      std::uint64_t phase = 0) {
    ANTDT_TRY(const auto pulled, link.pull({{0, keys}}, clock));
    const std::vector<float> ones(keys.size() * 2, 1);
    return link.push({{0, {keys, ones}}}, pulled, {n, step, phase, n - 1, n, 1});
  }
  // Adds one to each of these rows, kSteps times; how often that counted.
  Result<std::uint64_t> train(std::uint32_t worker, const std::vector<std::uint64_t>& keys,
                              std::uint64_t first_step = 0) {
    ANTDT_TRY(const auto own, link(worker));
    std::uint64_t applied = 0;
    std::uint64_t step = first_step;
    for (std::uint64_t n = 1; n <= kSteps; ++n) {
      const bool barrier = group.consistency == Consistency::kBarrier;
      ANTDT_TRY(const auto decided, push(*own, keys, n, step, barrier ? step : 0));
      if (decided.status == wire::PsFate::kApplied) ++applied;
      step = decided.version;
    }
    return applied;
  }

  TempDir directory;
  transport::Context context;
  Group group;
};

}  // namespace antdt::ps
