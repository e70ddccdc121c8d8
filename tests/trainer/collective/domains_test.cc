// Two domains with a slow link between them: the rules of a drill, and real processes. What an
// operation takes is compared with what follows from latency and rate.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/drill/injection.h"
#include "tests/trainer/collective/testing.h"
#include "trainer/injected/injected_link.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLatency = milliseconds(50);
constexpr double kRate = 100e6 / 8;  // 100 Mbit/s, in bytes a second

drill::Target target_of(std::uint32_t rank) {
  return {{'w', rank}, "host", Attempt{1}, rank < 2 ? "east" : "west"};
}

// Ranks 0 and 1 are in one domain, 2 and 3 in another one.
CollectiveOptions far_apart(std::uint32_t rank, Backend backend, bool encrypt) {
  static const SteadyClock clock;
  drill::Rule rule;
  rule.domain = "east";
  rule.to_domain = "west";
  rule.both_ways = true;
  rule.latency = kLatency;
  rule.bandwidth = static_cast<std::uint64_t>(kRate);
  const auto link = std::make_shared<InjectedLink>(clock);
  link->use({{drill::Injection({rule}, target_of(rank), 1), clock.now()}});
  link->know({target_of(0), target_of(1), target_of(2), target_of(3)});
  CollectiveOptions options = on_loopback();
  options.backend = backend;
  options.encrypt = encrypt;
  options.groups = true;
  options.domain = target_of(rank).domain;
  options.send_delay = [link](std::uint32_t to, std::size_t bytes) {
    return link->delay(to, bytes);
  };
  return options;
}

constexpr std::uint32_t kSums = 10;
using Nanoseconds = std::atomic<std::int64_t>;
struct Span {
  Nanoseconds began = 0, ended = 0;
};
struct Gathered {
  std::atomic<std::uint32_t> arrived = 0;
  Span spans[4 * kSums];
};

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Several sums by four processes: of each, the time from when the first process begins it to when
// the last one has it; the least of these, so that a machine that pauses now and then does not
// count.
Duration least_time(const OptionsOf& options, std::size_t floats, bool inside) {
  void* const memory =
      mmap(nullptr, sizeof(Gathered), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Gathered* const gathered = new (memory) Gathered;
  Span* const spans = gathered->spans;
  {
    ProcessGroup group(options, 4, [&](Collective& all, ProcessGroup::Cell&) {
      const std::vector<std::uint32_t> near =
          all.rank() < 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{2, 3};
      std::unique_ptr<Collective> neighbours;
      if (inside) {
        auto made = all.group(near);
        if (!made) return 1;
        neighbours = std::move(*made);
      }
      Collective& used = inside ? *neighbours : all;
      for (std::uint32_t i = 0; i < kSums; ++i) {
        ++gathered->arrived;  // all begin together
        while (gathered->arrived < 4 * (i + 1)) std::this_thread::yield();
        Span& span = spans[i * 4 + all.rank()];
        std::vector<float> values(floats, 1);
        span.began = now_ns();
        if (!used.allreduce_sum(values)) return 3;
        span.ended = now_ns();
        if (values.front() != (inside ? 2.0F : 4.0F) || values.back() != values.front()) return 4;
      }
      return 0;
    });
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(group.exit_code(rank), 0) << "of rank " << rank;
    }
  }
  // A group inside a domain sums by itself.
  const std::uint32_t together = inside ? 2 : 4;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t first = 0; first < 4 * kSums; first += together) {
    std::int64_t began = spans[first].began, ended = spans[first].ended;
    for (std::uint32_t i = first; i < first + together; ++i) {
      began = std::min<std::int64_t>(began, spans[i].began);
      ended = std::max<std::int64_t>(ended, spans[i].ended);
    }
    least = std::min(least, ended - began);
  }
  munmap(memory, sizeof(Gathered));
  return std::chrono::nanoseconds(least);
}

struct Way {
  std::string name;
  Backend backend;
  bool encrypt;
};
class TwoDomains : public testing::TestWithParam<Way> {
 protected:
  [[nodiscard]] static OptionsOf options() {
    return [way = GetParam()](std::uint32_t rank) {
      return far_apart(rank, way.backend, way.encrypt);
    };
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, TwoDomains,
                         testing::Values(Way{"Tcp", Backend::kTcp, false},
                                         Way{"TcpSealed", Backend::kTcp, true},
                                         Way{"Shm", Backend::kShm, false}),
                         [](const auto& way) { return way.param.name; });

TEST_P(TwoDomains, ASmallSumTakesOneMessageAcrossAndNoneInside) {
  const Duration across = least_time(options(), 64, false);
  EXPECT_GE(across, kLatency);
  EXPECT_LT(across, kLatency * 2) << "one message each way, at the same time";
  EXPECT_LT(least_time(options(), 64, true), kLatency / 2);
}

// 1 MB is 80 ms at this rate.
TEST_P(TwoDomains, ALargeSumTakesAsLongAsItsBytesTakeAcross) {
  constexpr std::size_t kFloats = 250'000;
  const double bytes = kFloats * sizeof(float);
  const Duration across = least_time(options(), kFloats, false);
  // Around a ring of n members, each n-th of the values takes 2 (n - 1) hops, one after the other.
  // Over tcp the ring is 0 1 2 3, and every second hop leads across. In shared memory the domains'
  // sums cross, so the ring has two members, and every hop does.
  const bool is_tcp = GetParam().backend == Backend::kTcp;
  const double members = is_tcp ? 4 : 2;
  const double crossings = is_tcp ? 3 : 2;
  const Duration calculated =
      from_seconds(crossings * (to_seconds(kLatency) + bytes / members / kRate));
  // Large parts are cut into pieces, and a piece begins its next hop before the last one has
  // arrived. Latency counts once a hop, not once a piece, which would take longer than this.
  // In shared memory chunks follow one another, and one's second hop may overlap the next one's
  // first, so that latency counts once.
  const Duration least =
      is_tcp ? calculated * 17 / 20 : kLatency + from_seconds(crossings * bytes / members / kRate);
  EXPECT_GE(across, least);
  EXPECT_LT(across, calculated * 7 / 5);
}

}  // namespace
}  // namespace antdt::trainer
