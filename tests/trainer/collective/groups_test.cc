// Operations among some of the members, and from each to each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <future>
#include <numeric>
#include <thread>

#include "core/os/net.h"
#include "tests/trainer/collective/patterns.h"
#include "tests/trainer/collective/testing.h"

namespace antdt::trainer {
namespace {

using Ranks = std::vector<std::uint32_t>;

class Groups : public testing::TestWithParam<Layout> {
 protected:
  [[nodiscard]] static OptionsOf options(bool encrypt = false) {
    return [layout = GetParam(), encrypt](std::uint32_t rank) {
      CollectiveOptions options = layout.options_of(rank);
      options.groups = true;
      options.encrypt = encrypt;
      return options;
    };
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, Groups, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

// One period of values whose sum depends on the order of the additions.
std::vector<float> uneven(std::uint32_t rank) {
  std::vector<float> period(977);
  for (std::size_t i = 0; i < period.size(); ++i) {
    period[i] = 0.1F * static_cast<float>(i + 1) / static_cast<float>(rank + 3);
  }
  return period;
}

// The members of a square, by rows: those of this rank's row, or column.
Ranks row_of(std::uint32_t rank, std::uint32_t side) {
  Ranks ranks(side);
  std::iota(ranks.begin(), ranks.end(), rank / side * side);
  return ranks;
}
Ranks column_of(std::uint32_t rank, std::uint32_t side) {
  Ranks ranks;
  for (std::uint32_t i = 0; i < side; ++i) ranks.push_back(rank % side + i * side);
  return ranks;
}

void sums_in(Collective& group, const Ranks& ranks, std::uint32_t own, std::size_t count) {
  ASSERT_EQ(group.size(), ranks.size());
  ASSERT_EQ(ranks[group.rank()], own);
  auto values = repeated(uneven(own), count);
  const Status summed = group.allreduce_sum(values);
  ASSERT_TRUE(summed) << summed.error().message;
  std::vector<double> want(uneven(own).size());
  for (const std::uint32_t rank : ranks) {
    const auto part = uneven(rank);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(part[i]);
  }
  // Which part of the vector an element is in decides in which order its values are added.
  const float* const sums = values.data();
  const double* const right = want.data();
  for (std::size_t at = 0; at < count; at += want.size()) {
    const std::size_t part = std::min(want.size(), count - at);
    for (std::size_t i = 0; i < part; ++i) {
      if (std::abs(sums[at + i] - right[i]) <= 1e-5 * (1 + right[i])) continue;
      FAIL() << "rank " << own << " at " << at + i << ": " << sums[at + i] << ", not " << right[i];
    }
  }
  std::vector<float> of_all(count * ranks.size());
  ASSERT_TRUE(
      group.allgather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(of_all))));
  EXPECT_TRUE(repeats<float>(of_all, values)) << "a member of the group has other bits";
}

TEST_P(Groups, RowsAndColumnsSumByTurnsWithTheSameBitsOnTheirMembers) {
  for (const bool encrypt : {false, true}) {
    run_as_threads(
        9,
        [](Collective& all) {
          for (const std::size_t count : {1UL, 1000UL, 200'003UL}) {
            for (const Ranks& ranks : {row_of(all.rank(), 3), column_of(all.rank(), 3)}) {
              auto group = all.group(ranks);
              ASSERT_TRUE(group) << group.error().message;
              sums_in(**group, ranks, all.rank(), count);
            }
            float one = 1;
            ASSERT_TRUE(all.allreduce_sum({&one, 1})) << "all members go on together";
            EXPECT_EQ(one, 9);
          }
        },
        options(encrypt));
  }
}

TEST_P(Groups, AGroupMayBeOneMemberOrAllOrAGroupOfAGroup) {
  run_as_threads(
      4,
      [](Collective& all) {
        const Ranks alone = {all.rank()};
        for (const Ranks& ranks : {alone, Ranks{0, 1, 2, 3}}) {
          auto group = all.group(ranks);
          ASSERT_TRUE(group) << group.error().message;
          sums_in(**group, ranks, all.rank(), 501);
        }
        if (all.rank() == 0) return;
        auto three = all.group(Ranks{1, 2, 3});
        ASSERT_TRUE(three);
        if (all.rank() == 2) return;
        auto two = (*three)->group(Ranks{0, 2});
        ASSERT_TRUE(two);
        sums_in(**two, Ranks{1, 3}, all.rank(), 77);
      },
      options());
}

TEST_P(Groups, TheMeanIsTheSumOverTheMembersOfTheGroup) {
  run_as_threads(
      4,
      [](Collective& all) {
        auto pair = all.group(row_of(all.rank(), 2));
        ASSERT_TRUE(pair);
        std::vector<double> values = {static_cast<double>(all.rank()), 8};
        ASSERT_TRUE((*pair)->allreduce_mean(values));
        EXPECT_THAT(values, testing::ElementsAre(all.rank() < 2 ? 0.5 : 2.5, 8.0));
      },
      options());
}

// Bytes of the part that a member sends to another: of some nothing.
std::size_t part_bytes(std::uint32_t from, std::uint32_t to) {
  return (from * 3 + to) % 4 * 10'007;
}
std::byte content(std::uint32_t from, std::uint32_t to, std::size_t i) {
  return static_cast<std::byte>(from * 31 + to * 7 + i);
}

void exchanges(Collective& group) {
  std::vector<std::size_t> sizes;
  std::vector<std::byte> sent;
  for (std::uint32_t to = 0; to < group.size(); ++to) {
    sizes.push_back(part_bytes(group.rank(), to));
    for (std::size_t i = 0; i < sizes.back(); ++i) sent.push_back(content(group.rank(), to, i));
  }
  const auto received_sizes = group.alltoall_sizes(sizes);
  ASSERT_TRUE(received_sizes) << received_sizes.error().message;
  std::vector<std::byte> want;
  for (std::uint32_t from = 0; from < group.size(); ++from) {
    ASSERT_EQ((*received_sizes)[from], part_bytes(from, group.rank()));
    for (std::size_t i = 0; i < part_bytes(from, group.rank()); ++i) {
      want.push_back(content(from, group.rank(), i));
    }
  }
  std::vector<std::byte> received(want.size());
  const Status exchanged = group.alltoall_parts(sizes, sent, *received_sizes, received);
  ASSERT_TRUE(exchanged) << exchanged.error().message;
  EXPECT_TRUE(received == want) << "rank " << group.rank() << " of " << group.size();
}

TEST_P(Groups, EachMemberSendsAPartToEach) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U, 9U}) {
    run_as_threads(
        size,
        [](Collective& all) {
          exchanges(all);
          Ranks like_this;  // those with even ranks, and the others
          for (std::uint32_t rank = all.rank() % 2; rank < all.size(); rank += 2) {
            like_this.push_back(rank);
          }
          auto group = all.group(like_this);
          ASSERT_TRUE(group) << group.error().message;
          exchanges(**group);
        },
        options());
  }
}

TEST_P(Groups, PartsThatDoNotFitAreAnErrorAndNotSent) {
  run_as_threads(
      2,
      [](Collective& all) {
        std::vector<std::byte> bytes(10);
        for (const std::vector<std::size_t>& sizes :
             {std::vector<std::size_t>{8, 8}, std::vector<std::size_t>{4}}) {
          const Status refused = all.alltoall_parts(sizes, bytes, sizes, bytes);
          ASSERT_FALSE(refused);
          EXPECT_EQ(refused.error().kind, ErrorKind::kInternal);
        }
        exchanges(all);
      },
      options());
}

TEST_P(Groups, WhatIsNoGroupIsRefusedAndHarmsNothing) {
  run_as_threads(
      4,
      [](Collective& all) {
        const std::uint32_t other = (all.rank() + 1) % 4;
        for (const Ranks& ranks : {Ranks{}, Ranks{other}, Ranks{3, 2, 1, 0}, Ranks{0, 1, 2, 3, 4},
                                   Ranks{0, 0, 1, 2, 3}}) {
          const auto refused = all.group(ranks);
          ASSERT_FALSE(refused) << testing::PrintToString(ranks);
          EXPECT_EQ(refused.error().kind, ErrorKind::kInternal);
        }
        auto group = all.group(row_of(all.rank(), 2));
        ASSERT_TRUE(group);
        sums_in(**group, row_of(all.rank(), 2), all.rank(), 10);
      },
      options());
}

// Of 8 members, those at distances of 3 and 5 are not connected when the whole group is formed.
TEST_P(Groups, ACollectiveThatWasMadeWithoutThemHasNone) {
  const auto closed = [](std::uint32_t rank) { return GetParam().options_of(rank); };
  run_as_threads(
      8,
      [](Collective& all) {
        if (all.rank() == 0 || all.rank() == 3) {
          const auto refused = all.group(Ranks{0, 3});
          ASSERT_FALSE(refused);
          EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
        }
        float one = 1;
        ASSERT_TRUE(all.allreduce_sum({&one, 1}));
        EXPECT_EQ(one, 8);
      },
      closed);
}

TEST_P(Groups, AMemberThatIsAheadIsLetInByOneThatFormsAnotherGroup) {
  auto members = connect_all(8, options());
  std::promise<void> let_in;
  std::thread first([&] {
    auto group = members[0]->group(Ranks{0, 5});
    EXPECT_TRUE(group) << group.error().message;
    let_in.set_value();
    sums_in(**group, Ranks{0, 5}, 0, 1000);
  });
  std::thread late([&] {
    let_in.get_future().wait();  // without it, member 5 would be forming this group forever
    auto group = members[2]->group(Ranks{2, 5});
    ASSERT_TRUE(group) << group.error().message;
    sums_in(**group, Ranks{2, 5}, 2, 1000);
  });
  for (const Ranks& ranks : {Ranks{2, 5}, Ranks{0, 5}}) {
    auto group = members[5]->group(ranks);
    ASSERT_TRUE(group) << group.error().message;
    sums_in(**group, ranks, 5, 1000);
  }
  first.join();
  late.join();
}

// What a member does until it fails: 1 if it does not.
int fails_with_io(Collective& all, const Ranks& ranks) {
  auto group = all.group(ranks);
  Status status;
  std::vector<float> values(100'000, 1);
  while (group && status) status = (*group)->allreduce_sum(values);
  const ErrorKind kind = group ? status.error().kind : group.error().kind;
  float one = 1;
  const Status after = all.allreduce_sum({&one, 1});
  return kind == ErrorKind::kIo && !after ? 0 : 1;
}

TEST_P(Groups, AMemberOfTheGroupThatDiesBeforeOrInAnOperationIsNoticed) {
  for (const bool before : {true, false}) {
    for (const std::uint32_t dead : {0U, 3U, 5U}) {
      ProcessGroup members(options(), 8, [&](Collective& all, ProcessGroup::Cell& cell) {
        const Ranks ranks = dead == 5 ? Ranks{2, 5} : Ranks{0, 3};
        if (std::ranges::find(ranks, all.rank()) == ranks.end()) pause();
        if (all.rank() != dead) {
          cell.note = 1;
          return fails_with_io(all, ranks);
        }
        if (before) {
          cell.note = 1;
          pause();
        }
        auto group = all.group(ranks);
        std::vector<float> values(100'000, 1);
        while (group && (*group)->allreduce_sum(values)) cell.note = 1;
        return 2;
      });
      const std::uint32_t left = dead == 0 ? 3 : dead == 3 ? 0 : 2;
      for (const std::uint32_t rank : {dead, left}) {
        while (members.cell(rank).note != 1) std::this_thread::yield();
      }
      kill(members.pid(dead), SIGKILL);
      EXPECT_EQ(members.exit_code(left), 0) << "rank " << dead << " died";
    }
  }
}

TEST_P(Groups, AbortEndsTheFormingOfAGroupAndItsOperationsAndTheWholeCollective) {
  for (const bool formed : {false, true}) {
    for (const std::uint32_t waiting : {0U, 3U}) {  // the one that dials, and the one that does not
      auto members = connect_all(8, options());
      std::unique_ptr<Collective> others;
      std::promise<void> entered;
      auto call = std::async(std::launch::async, [&]() -> Status {
        if (!formed) entered.set_value();
        ANTDT_TRY(const auto group, members[waiting]->group(Ranks{0, 3}));
        if (formed) entered.set_value();
        std::vector<float> values(200'000, 1);
        return group->allreduce_sum(values);  // the other one never joins in
      });
      if (formed) others = std::move(members[3 - waiting]->group(Ranks{0, 3}).value());
      entered.get_future().wait();
      members[waiting]->abort();
      const Status status = call.get();
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, ErrorKind::kAborted);
      float one = 1;
      const Status after = members[waiting]->allreduce_sum({&one, 1});
      ASSERT_FALSE(after);
      EXPECT_EQ(after.error().kind, ErrorKind::kAborted);
    }
  }
}

TEST_P(Groups, AbortOfAGroupEndsTheWholeCollective) {
  auto members = connect_all(4, options());
  auto group = members[0]->group(Ranks{0});
  ASSERT_TRUE(group);
  (*group)->abort();
  float one = 1;
  const Status after = members[0]->allreduce_sum({&one, 1});
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind, ErrorKind::kAborted);
}

std::size_t descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.is_symlink() ? 1 : 0;
  }
  return count;
}

TEST_P(Groups, ConnectionsAreMadeOnceAndClosedWithTheCollective) {
  const std::size_t before = descriptors();
  {
    auto members = connect_all(8, options());
    const std::size_t formed = descriptors();
    const auto use = [&](const Ranks& ranks) {
      std::vector<std::thread> threads;
      for (const std::uint32_t rank : ranks) {
        threads.emplace_back([&, rank] {
          auto group = members[rank]->group(ranks);
          ASSERT_TRUE(group) << group.error().message;
          sums_in(**group, ranks, rank, 100);
        });
      }
      for (auto& thread : threads) thread.join();
    };
    use({2, 5});  // these are not connected in any layout
    use({4, 7});
    const std::size_t used = descriptors();
    // Two ends of two connections. The dialled member may not have noticed yet that the one that
    // watched it does so no more.
    EXPECT_GE(used, formed + 4);
    EXPECT_LE(used, formed + 6);
    for (int i = 0; i < 20; ++i) use({2, 5});
    EXPECT_LE(descriptors(), used);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_P(Groups, StrangersThatDialWhileMembersWorkDoNoHarm) {
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    builders.push_back(prepare(rank, 8, options()(rank)));
  }
  std::vector<std::unique_ptr<Collective>> members(8);
  in_threads(8, [&](std::uint32_t rank) {
    auto made = connect(builders, rank);
    ASSERT_TRUE(made) << made.error().message;
    members[rank] = std::move(*made);
  });
  std::vector<OwnedFd> strangers;
  for (int i = 0; i < 200; ++i) {  // more than a member keeps
    auto fd = start_to_connect(builders[3]->address().at);
    ASSERT_TRUE(fd) << fd.error().message;
    pollfd writable{fd->get(), POLLOUT, 0};
    ASSERT_EQ(poll(&writable, 1, -1), 1);
    if (i % 2 == 0) {
      ASSERT_EQ(::send(fd->get(), "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
    }
    strangers.push_back(std::move(*fd));
  }
  in_threads(8, [&](std::uint32_t rank) {
    if (rank != 0 && rank != 3) return;
    auto group = members[rank]->group(Ranks{0, 3});
    ASSERT_TRUE(group) << group.error().message;
    sums_in(**group, Ranks{0, 3}, rank, 100);
  });
}

}  // namespace
}  // namespace antdt::trainer
