// The collective over tcp and in shared memory, with ranks as threads and as processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>

#include "tests/sanitized.h"
#include "tests/trainer/collective/patterns.h"
#include "tests/trainer/collective/testing.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

// One period of what a member has, and of the sum over `size` members.
std::vector<float> period_of(std::uint32_t first, std::uint32_t size) {
  std::vector<float> period(1000);
  for (std::size_t i = 0; i < period.size(); ++i) {
    for (std::uint32_t rank = first; rank < first + size; ++rank) {
      period[i] += static_cast<float>(i + rank * 7);
    }
  }
  return period;
}

std::vector<float> values_of(std::uint32_t rank, std::size_t count) {
  return repeated(period_of(rank, 1), count);
}

::testing::AssertionResult is_sum(const std::vector<float>& got, std::uint32_t size) {
  return repeats<float>(got, period_of(0, size));
}

class Group : public testing::TestWithParam<Layout> {
 protected:
  [[nodiscard]] static OptionsOf options() {
    return [layout = GetParam()](std::uint32_t rank) { return layout.options_of(rank); };
  }
  static void run_as_threads(std::uint32_t size, const RankBody& body) {
    trainer::run_as_threads(size, body, options());
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Group, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

TEST_P(Group, SumsAreRightForEverySizeAndOddLengths) {
  for (std::uint32_t size = 1; size <= 9; ++size) {
    run_as_threads(size, [size](Collective& ring) {
      for (std::size_t count : {1, 3, 4, 1023, 65'537, 700'001}) {
        auto values = values_of(ring.rank(), count);
        const Status status = ring.allreduce_sum(values);
        ASSERT_TRUE(status) << status.error().message;
        EXPECT_TRUE(is_sum(values, size)) << "rank " << ring.rank() << " of " << size;
      }
    });
  }
}

TEST_P(Group, GathersEveryRanksBytesInRankOrder) {
  for (std::uint32_t size = 1; size <= 9; ++size) {
    run_as_threads(size, [size](Collective& ring) {
      for (int round = 0; round < 50; ++round) {
        const std::vector<std::byte> mine(52, static_cast<std::byte>(ring.rank() * 50 + round));
        std::vector<std::byte> all(52 * size);
        ASSERT_TRUE(ring.allgather(mine, all));
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          EXPECT_EQ(all[rank * 52 + 51], static_cast<std::byte>(rank * 50 + round));
        }
      }
    });
  }
}

TEST_P(Group, GathersPartsOfDifferentSizes) {
  for (std::uint32_t size = 1; size <= 9; ++size) {
    run_as_threads(size, [size](Collective& ring) {
      std::vector<std::byte> all(4096);  // longer than what is gathered
      for (std::uint32_t round = 0; round < 20; ++round) {
        std::vector<std::size_t> sizes;
        std::vector<std::byte> expected;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          sizes.push_back((rank + round) % 3 * (37 + rank));  // of some nothing
          expected.insert(expected.end(), sizes.back(), static_cast<std::byte>(rank * 20 + round));
        }
        std::fill(all.begin(), all.end(), std::byte{0xff});
        std::size_t begin = 0;
        for (std::uint32_t rank = 0; rank < ring.rank(); ++rank) begin += sizes[rank];
        std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(begin), sizes[ring.rank()],
                    static_cast<std::byte>(ring.rank() * 20 + round));
        ASSERT_TRUE(ring.allgather_parts(sizes, all));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), all.begin()));
      }
    });
  }
}

// A prime number of bytes, so that no two pieces of a message are alike.
std::vector<std::byte> period_of_bytes(std::uint32_t seed) {
  std::vector<std::byte> period(4'093);
  for (std::size_t i = 0; i < period.size(); ++i) {
    period[i] = static_cast<std::byte>(i * 31 + i / 255 + seed);
  }
  return period;
}

std::vector<std::byte> bytes_of(std::uint32_t seed, std::size_t count) {
  return repeated(period_of_bytes(seed), count);
}

// A chain of some of the members, which changes, between operations of all members.
TEST_P(Group, BytesGoAlongTheRingBetweenTheOperationsOfAll) {
  for (std::uint32_t size = 2; size <= 4; ++size) {
    run_as_threads(size, [size](Collective& ring) {
      std::vector<std::byte> all(size);
      for (std::uint32_t round = 0; round < 3 * size; ++round) {
        const std::uint32_t first = round % size;  // its bytes go once around, but for one link
        const std::uint32_t place = (ring.rank() + size - first) % size;
        const std::uint32_t length = 1 + round % (size - 1);  // of the chain, in links
        for (const std::size_t count : {std::size_t{1}, all_or_some(3'500'001UL, 1'000'001UL)}) {
          std::vector<std::byte> bytes =
              place == 0 ? bytes_of(round, count) : std::vector<std::byte>(count);
          if (place > length) continue;
          ASSERT_TRUE(place == 0 || ring.receive_left(bytes));
          ASSERT_TRUE(place == length || ring.send_right(bytes));
          EXPECT_TRUE(repeats<std::byte>(bytes, period_of_bytes(round)));
        }
        auto values = values_of(ring.rank(), 1000);
        ASSERT_TRUE(ring.allreduce_sum(values));
        EXPECT_TRUE(is_sum(values, size));
        ASSERT_TRUE(ring.allgather(std::as_bytes(std::span(&round, 1)).first(1), all));
      }
    });
  }
}

TEST_P(Group, BytesGoBothWaysAtOnceBetweenTwoMembers) {
  run_as_threads(2, [](Collective& ring) {
    const auto sent = bytes_of(ring.rank(), 5000);
    std::vector<std::byte> received(5000);
    if (ring.rank() == 0) {
      ASSERT_TRUE(ring.send_right(sent));
      ASSERT_TRUE(ring.receive_left(received));
    } else {
      ASSERT_TRUE(ring.receive_left(received));
      ASSERT_TRUE(ring.send_right(sent));
    }
    EXPECT_EQ(received, bytes_of(1 - ring.rank(), 5000));
  });
}

TEST_P(Group, OneMemberHasNobodyToPassBytesTo) {
  run_as_threads(1, [](Collective& ring) {
    std::vector<std::byte> bytes(8);
    EXPECT_FALSE(ring.send_right(bytes));
    EXPECT_FALSE(ring.receive_left(bytes));
  });
}

TEST_P(Group, AMemberThatWaitsForBytesIsReleasedByAbortAndByTheSendersDeath) {
  ProcessGroup ring(options(), 2, [](Collective& r, ProcessGroup::Cell& cell) {
    std::vector<std::byte> bytes(3'000'000);
    cell.note = 1;
    if (r.rank() == 0) {
      while (true) pause();
    }
    return r.receive_left(bytes) ? 1 : 0;
  });
  for (std::uint32_t rank : {0U, 1U}) {
    while (ring.cell(rank).note != 1) std::this_thread::yield();
  }
  kill(ring.pid(0), SIGKILL);
  EXPECT_EQ(ring.exit_code(1), 0);

  run_as_threads(2, [](Collective& r) {
    std::vector<std::byte> bytes(3'000'000);
    std::thread message_thread([&] { r.abort(); });
    EXPECT_FALSE(r.receive_left(bytes));  // nobody sends
    message_thread.join();
  });
}

TEST_P(Group, SumsAreTheSameBitsOnEveryRank) {
  std::vector<std::vector<float>> results(3);
  run_as_threads(3, [&](Collective& ring) {
    std::vector<float> values(1001);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.1F * static_cast<float>(i + 1) / static_cast<float>(ring.rank() + 3);
    }
    ASSERT_TRUE(ring.allreduce_sum(values));
    results[ring.rank()] = values;
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_P(Group, SumsAreRightBetweenProcesses) {
  for (std::uint32_t size : {2U, 3U, 5U}) {
    ProcessGroup ring(options(), size, [size](Collective& r, ProcessGroup::Cell&) {
      auto values = values_of(r.rank(), 300'007);
      for (int i = 0; i < 3; ++i) {
        values = values_of(r.rank(), 300'007);
        if (!r.allreduce_sum(values)) return 1;
      }
      return is_sum(values, size) ? 0 : 2;
    });
    for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ(ring.exit_code(rank), 0);
  }
}

TEST_P(Group, AbortFromAnotherThreadReleasesABlockedCallAtOnce) {
  for (std::uint32_t size : {2U, 4U}) {
    auto rings = connect_all(size, options());

    std::promise<void> entered;
    std::future<Status> call = std::async(std::launch::async, [&] {
      std::vector<float> values(200'000, 1.0F);
      entered.set_value();
      return rings[0]->allreduce_sum(values);  // the others never join in
    });
    entered.get_future().wait();
    rings[0]->abort();
    const Status status = call.get();  // without the abort it never returns
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kAborted);
    std::vector<float> values(10, 1.0F);
    const Status again = rings[0]->allreduce_sum(values);
    ASSERT_FALSE(again) << "an abort is for good";
    EXPECT_EQ(again.error().kind, ErrorKind::kAborted);
  }
}

TEST_P(Group, AbortBeforeACallIsNotMissed) {
  run_as_threads(2, [](Collective& ring) {
    ring.abort();
    std::vector<float> values(10, 1.0F);
    const Status status = ring.allreduce_sum(values);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kAborted);
  });
  run_as_threads(1, [](Collective& ring) {
    ring.abort();
    std::vector<float> values(10, 1.0F);
    EXPECT_FALSE(ring.allreduce_sum(values));
  });
}

TEST_P(Group, AKilledMemberBreaksTheRingAndAbortReleasesEveryone) {
  constexpr std::uint32_t kSize = 4;
  ProcessGroup ring(options(), kSize, [](Collective& r, ProcessGroup::Cell& cell) {
    std::vector<float> values(100'000, 1.0F);
    if (!r.allreduce_sum(values)) return 1;
    cell.note = 1;
    if (r.rank() == 2) {
      while (true) pause();
    }
    std::thread message_thread([&] {
      while (cell.note != 2) std::this_thread::yield();
      r.abort();
    });
    const Status status = r.allreduce_sum(values);
    message_thread.join();
    return status ? 3 : 0;
  });
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    while (ring.cell(rank).note != 1) std::this_thread::yield();
  }
  kill(ring.pid(2), SIGKILL);
  EXPECT_EQ(ring.exit_code(2), -SIGKILL);
  for (std::uint32_t rank : {0U, 1U, 3U}) ring.cell(rank).note = 2;
  for (std::uint32_t rank : {0U, 1U, 3U}) EXPECT_EQ(ring.exit_code(rank), 0) << rank;
}

TEST_P(Group, AKilledMemberReleasesEvenThoseWhoAreNotItsNeighbours) {
  constexpr std::uint32_t kSize = 5;
  ProcessGroup ring(options(), kSize, [](Collective& r, ProcessGroup::Cell& cell) {
    std::vector<float> values(100'000, 1.0F);
    if (!r.allreduce_sum(values)) return 1;
    cell.note = 1;
    if (r.rank() == 2) {
      while (true) pause();
    }
    return r.allreduce_sum(values) ? 3 : 0;
  });
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    while (ring.cell(rank).note != 1) std::this_thread::yield();
  }
  kill(ring.pid(2), SIGKILL);
  for (std::uint32_t rank : {0U, 1U, 3U, 4U}) EXPECT_EQ(ring.exit_code(rank), 0) << rank;
}

TEST_P(Group, AStoppedMemberIsLeftBehindByAbort) {
  constexpr std::uint32_t kSize = 3;
  ProcessGroup ring(options(), kSize, [](Collective& r, ProcessGroup::Cell& cell) {
    std::vector<float> values(4'000'000, 1.0F);
    cell.note = 1;
    if (r.rank() == 0) {
      while (true) pause();
    }
    std::thread message_thread([&] {
      while (cell.note != 2) std::this_thread::yield();
      r.abort();
    });
    const Status status = r.allreduce_sum(values);
    message_thread.join();
    return status ? 3 : 0;  // by its own abort, or by the other survivor's
  });
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    while (ring.cell(rank).note != 1) std::this_thread::yield();
  }
  kill(ring.pid(0), SIGSTOP);
  for (std::uint32_t rank : {1U, 2U}) ring.cell(rank).note = 2;
  for (std::uint32_t rank : {1U, 2U}) EXPECT_EQ(ring.exit_code(rank), 0) << rank;
}

TEST_P(Group, MembersThatRunDifferentOperationsGetAnError) {
  run_as_threads(2, [](Collective& group) {
    std::vector<float> values(group.rank() == 0 ? 10 : 11);
    const Status status = group.allreduce_sum(values);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
  });
}

// The least of several measurements by each rank, while the messages of `slow` are delayed.
std::vector<Duration> least_hops(const OptionsOf& options, std::uint32_t size, std::uint32_t slow,
                                 Duration delay) {
  std::vector<Duration> least(size, Duration::max());
  auto rings = connect_all(size, [&](std::uint32_t rank) {
    CollectiveOptions own = options(rank);
    if (rank == slow) {
      own.send_delay = [delay](std::uint32_t, std::size_t) {
        return drill::LinkDelay{.held = delay};
      };
    }
    return own;
  });
  in_threads(size, [&](std::uint32_t rank) {
    // The sum is right whatever else the ring does before and after.
    const auto sum = [&] {
      std::vector<float> values(100, 1.0F);
      ASSERT_TRUE(rings[rank]->allreduce_sum(values));
      EXPECT_EQ(values[99], static_cast<float>(size));
    };
    sum();
    // Repeated so often that even on a busy machine each is fast once.
    for (int i = 0; i < 10; ++i) {
      const auto hop = rings[rank]->measure_hop();
      ASSERT_TRUE(hop) << hop.error().message;
      if (*hop) least[rank] = std::min(least[rank], **hop);
    }
    sum();
    rings[rank].reset();
  });
  return least;
}

TEST_P(Group, BothHopsOfAMemberWithASlowLinkAreSlowAndNoOthers) {
  for (const std::uint32_t size : {3U, 5U}) {
    const auto least = least_hops(options(), size, 1, milliseconds(20));
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      if (rank < 2) {
        EXPECT_GE(least[rank], milliseconds(20)) << rank << " of " << size;
      } else {
        EXPECT_LT(least[rank], least[0]) << rank << " of " << size;
      }
    }
  }
}

TEST_P(Group, OneOrTwoMembersGiveNothingToCompare) {
  for (const std::uint32_t size : {1U, 2U}) {
    EXPECT_EQ(least_hops(options(), size, 9, {})[0], Duration::max());
  }
}

}  // namespace
}  // namespace antdt::trainer
