// What members exchanged with each other, and how long they waited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>

#include "core/os/fs.h"
#include "tests/trainer/collective/testing.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

class Ledgers : public testing::TestWithParam<Layout> {
 protected:
  [[nodiscard]] static OptionsOf options() {
    return [layout = GetParam()](std::uint32_t rank) {
      CollectiveOptions options = layout.options_of(rank);
      options.groups = true;
      return options;
    };
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Ledgers, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

std::uint64_t sent_in_all(const LinkLedger& ledger) {
  std::uint64_t bytes = 0;
  for (std::size_t t = 0; t < kTraffics; ++t) bytes += ledger.sent_bytes(static_cast<Traffic>(t));
  return bytes;
}

TEST_P(Ledgers, WhatIsReceivedIsToldPieceByPiece) {
  run_as_threads(
      3,
      [&](Collective& all) {
        std::vector<float> values(300'007, 1);
        std::uint64_t told = 0;
        {
          const ReceivedTold watch(all.ledger(), [&](std::size_t bytes) { told += bytes; });
          ASSERT_TRUE(all.allreduce_sum(values));
        }
        std::uint64_t received = 0;
        for (std::uint32_t peer = 0; peer < all.size(); ++peer) {
          received += all.ledger()->of(peer).received_bytes;
        }
        EXPECT_EQ(told, received);
        EXPECT_GT(told, 0U);
        ASSERT_TRUE(all.allreduce_sum(values));
        EXPECT_EQ(told, received) << "nobody listens any more";
      },
      options());
}

TEST_P(Ledgers, WhatAMemberSentItsPeerReceivedAndKindsAddUpToIt) {
  for (const std::uint32_t size : {2U, 3U, 4U, 7U}) {
    std::vector<std::shared_ptr<LinkLedger>> ledgers(size);
    run_as_threads(
        size,
        [&](Collective& all) {
          ledgers[all.rank()] = all.ledger();
          for (const std::size_t count : {5UL, 10'000UL, 300'007UL}) {
            std::vector<float> values(count, 1);
            ASSERT_TRUE(all.allreduce_sum(values));
          }
          std::vector<std::byte> bytes(40), everybodys(40 * size);
          const CountedAs slots(all.ledger(), Traffic::kSlots);
          ASSERT_TRUE(all.allgather(bytes, everybodys));
          const CountedAs healing(all.ledger(), Traffic::kHealing);
          if (all.rank() == 0) {
            ASSERT_TRUE(all.send_right(bytes));
          }
          if (all.rank() == 1) {
            ASSERT_TRUE(all.receive_left(bytes));
          }
        },
        options());
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_TRUE(ledgers[rank]);
      EXPECT_EQ(ledgers[rank]->members(), size);
      std::uint64_t sent = 0;
      for (std::uint32_t peer = 0; peer < size; ++peer) {
        EXPECT_EQ(ledgers[rank]->of(peer).sent_bytes, ledgers[peer]->of(rank).received_bytes)
            << "from " << rank << " to " << peer << " of " << size;
        sent += ledgers[rank]->of(peer).sent_bytes;
      }
      EXPECT_EQ(ledgers[rank]->of(rank), LinkLedger::Link());
      EXPECT_EQ(sent_in_all(*ledgers[rank]), sent);
      EXPECT_EQ(ledgers[rank]->sent_bytes(Traffic::kHealing), rank == 0 ? 40U : 0U);
    }
    // Gradients are most of it: in a sum, all members together send each value at least n - 1
    // times.
    std::uint64_t gradients = 0;
    for (const auto& ledger : ledgers) gradients += ledger->sent_bytes(Traffic::kGradients);
    EXPECT_GE(gradients, (size - 1) * 4 * (5 + 10'000 + 300'007UL));
  }
}

TEST_P(Ledgers, AGroupCountsByTheRanksOfAllMembers) {
  std::vector<std::shared_ptr<LinkLedger>> ledgers(4);
  run_as_threads(
      4,
      [&](Collective& all) {
        ledgers[all.rank()] = all.ledger();
        if (all.rank() % 2 == 0) return;
        auto group = all.group(std::vector<std::uint32_t>{1, 3});
        ASSERT_TRUE(group) << group.error().message;
        std::vector<float> values(1000, 1);
        ASSERT_TRUE((*group)->allreduce_sum(values));
      },
      options());
  EXPECT_EQ(ledgers[1]->of(3).sent_bytes, 4000U);
  EXPECT_EQ(ledgers[3]->of(1).sent_bytes, 4000U);
  for (const std::uint32_t peer : {0U, 1U, 2U}) {
    EXPECT_EQ(ledgers[1]->of(peer), LinkLedger::Link());
  }
}

// 'S': it sleeps in a system call.
char state_of_thread(int tid) {
  const auto stat = read_file("/proc/self/task/" + std::to_string(tid) + "/stat");
  const std::size_t name_ends = stat ? stat->rfind(')') : std::string::npos;
  return name_ends == std::string::npos ? '?' : (*stat)[name_ends + 2];
}

TEST_P(Ledgers, AMemberThatWaitedForBytesSaysForWhomAndHowLong) {
  auto members = connect_all(2, options());
  std::atomic<int> tid = 0;
  const std::vector<std::byte> sent(100);
  std::thread receiver([&] {
    std::vector<std::byte> received(100);
    tid = gettid();
    EXPECT_TRUE(members[1]->receive_left(received));
  });
  // The receiver has looked for the bytes in vain and sleeps: for less than this only by the time
  // that it takes to look at the clock before it sleeps, and after.
  auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < began + milliseconds(60)) {
    if (tid == 0 || state_of_thread(tid) != 'S') began = std::chrono::steady_clock::now();
  }
  EXPECT_TRUE(members[0]->send_right(sent));
  receiver.join();
  EXPECT_GE(members[1]->ledger()->of(0).waited, milliseconds(40));
  EXPECT_EQ(members[0]->ledger()->of(1).waited, Duration{});
}

TEST(LinkLedger, ADelayOfWhatIsSentOverTcpIsWaitingForTheReceiver) {
  auto members = connect_all(2, [](std::uint32_t rank) {
    CollectiveOptions options = on_loopback();
    if (rank == 0) {
      options.send_delay = [](std::uint32_t, std::size_t) {
        return drill::LinkDelay{.held = milliseconds(25)};
      };
    }
    return options;
  });
  std::vector<std::byte> bytes(100);
  ASSERT_TRUE(members[0]->send_right(bytes));
  ASSERT_TRUE(members[0]->send_right(bytes));
  EXPECT_GE(members[0]->ledger()->of(1).waited, milliseconds(50));
  EXPECT_EQ(members[1]->ledger()->of(0).waited, Duration{});
}

}  // namespace
}  // namespace antdt::trainer
