// Members that share memory: who gets it, who is missed, and what is not believed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <future>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/os/fs.h"
#include "tests/trainer/collective/testing.h"
#include "trainer/collective/host_groups.h"
#include "trainer/collective/shm/host_group.h"
#include "trainer/collective/shm/host_identity.h"
#include "trainer/collective/shm/mates.h"
#include "trainer/collective/shm/shared_memory.h"
#include "trainer/collective/shm/stores.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

OptionsOf on_hosts(const std::string& hosts) {
  return [layout = Layout{"", Backend::kShm, hosts}](std::uint32_t rank) {
    return layout.options_of(rank);
  };
}

// ------------------------------------------------------------------- groups

HostGroups groups_of(const std::vector<std::string>& hosts) { return HostGroups::of(hosts); }

TEST(HostGroups, MembersThatNameTheSameHostAreOneGroupLedByTheLowestRank) {
  const HostGroups groups = groups_of({"a", "b", "a", "c", "b"});
  ASSERT_EQ(groups.hosts(), 3U);
  EXPECT_THAT(groups.ranks_on(0), ElementsAre(0, 2));
  EXPECT_THAT(groups.ranks_on(1), ElementsAre(1, 4));
  EXPECT_THAT(groups.ranks_on(2), ElementsAre(3));
  EXPECT_THAT(groups.leaders(), ElementsAre(0, 1, 3));
  EXPECT_EQ(groups.place_of(4).host, 1U);
  EXPECT_EQ(groups.place_of(4).index, 1U);
  EXPECT_EQ(groups.in_words(), "shm and tcp (5 members, 2 groups that share memory)");
  EXPECT_EQ(groups_of({"a", "a", "a", "a"}).in_words(), "shm (4 members of 1 host)");
}

TEST(HostGroups, OneMemberThatNamesNoHostMakesTheWholeGroupUseTcp) {
  EXPECT_FALSE(groups_of({"a", "a", "", "a"}).any_shared());
  EXPECT_FALSE(groups_of({"", ""}).any_shared());
  EXPECT_FALSE(groups_of({"a", "b"}).any_shared());
  EXPECT_TRUE(groups_of({"a", "b", "a"}).any_shared());
}

TEST(HostGroups, AHostWithVeryManyMembersCountsAsSeveral) {
  const HostGroups groups = groups_of(std::vector<std::string>(150, "a"));
  EXPECT_EQ(groups.hosts(), 3U);
  EXPECT_EQ(groups.ranks_on(2).size(), 150 - 2 * HostGroups::kMostMembers);
  EXPECT_EQ(groups.in_words(), "shm and tcp (150 members, 3 groups that share memory)");
}

TEST(HostGroups, WhatAMemberSaysIsReadBackAndAnythingElseIsRefused) {
  const auto sharing = parse_sharing(to_text({"1f", "antdt-77"}));
  ASSERT_TRUE(sharing);
  EXPECT_EQ(sharing->host, "1f");
  EXPECT_EQ(sharing->name, "antdt-77");
  for (const char* text : {"1f", " x", "1f ", "1f a b"}) {
    const auto refused = parse_sharing(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(HostIdentity, IsTheSameForAllProcessesOfThisHostAndUser) {
  const auto here = own_host_identity();
  ASSERT_TRUE(here) << here.error().message;
  EXPECT_THAT(*here, testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(*own_host_identity(), *here);
}

// ------------------------------------------------------------------- who gets the memory

// The abstract unix sockets of this network namespace on which members listen. Connections that
// were accepted have the same name and other flags.
std::set<std::string> listening_names() {
  std::set<std::string> names;
  std::istringstream table(read_file("/proc/net/unix").value_or(""));
  std::string line;
  while (std::getline(table, line)) {
    const std::size_t at = line.find(" @antdt-");
    if (at == std::string::npos || line.find(" 00010000 ") == std::string::npos) continue;
    names.insert(line.substr(at + 2));
  }
  return names;
}

std::string name_of(const CollectiveBuilder& builder) {
  return parse_sharing(builder.address().sharing).value().name;
}

OwnedFd dial_abstract(const std::string& name) {
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return fd;
}

// What comes over the connection until it ends.
struct Got {
  std::size_t bytes = 0;
  std::size_t descriptors = 0;
  bool welcome = false;  // the verdict of the first answer (handshake.h)
};
Got all_from(const OwnedFd& fd) {
  Got got;
  while (true) {
    std::array<std::byte, 512> bytes{};
    alignas(cmsghdr) std::array<std::byte, 256> control{};
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = recvmsg(fd.get(), &message, MSG_CMSG_CLOEXEC);
    if (n <= 0) return got;
    if (got.bytes == 0 && n > 8) got.welcome = bytes[8] != std::byte{0};
    got.bytes += static_cast<std::size_t>(n);
    if (message.msg_controllen > 0) ++got.descriptors;
  }
}

TEST(SharedMemory, AStrangerThatDialsGetsNothingAndDoesNoHarm) {
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    builders.push_back(prepare(rank, 2, on_hosts("a")(rank)));
  }
  const Handshake::Self wrong{key_of("guessed"), 0, 2, false};
  std::vector<OwnedFd> strangers;
  for (const std::string& words :
       {std::string(), std::string(200, 'x'),
        Handshake::dialling(wrong, 1, crypto::random_nonce().value()).opening()}) {
    strangers.push_back(dial_abstract(name_of(*builders[1])));
    EXPECT_EQ(send(strangers.back().get(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  std::vector<float> sums(2, 1);
  in_threads(2, [&](std::uint32_t rank) {
    const auto group = connect(builders, rank);
    ASSERT_TRUE(group) << group.error().message;
    EXPECT_TRUE((*group)->allreduce_sum(std::span(&sums[rank], 1)));
  });
  EXPECT_EQ(sums, (std::vector<float>{2, 2}));
  for (const OwnedFd& stranger : strangers) {
    const Got got = all_from(stranger);
    EXPECT_EQ(got.descriptors, 0U);
    EXPECT_FALSE(got.welcome);
    EXPECT_LE(got.bytes, 80U) << "no more than the answer that it is not expected";
  }
}

TEST(SharedMemory, AMemberWithAnotherKeyIsRefused) {
  for (std::uint32_t odd = 0; odd < 3; ++odd) {
    std::vector<std::unique_ptr<CollectiveBuilder>> builders;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      builders.push_back(prepare(rank, 3, on_hosts("a")(rank)));
    }
    std::atomic<bool> refused = false;
    in_threads(3, [&](std::uint32_t rank) {
      const auto group = connect(builders, rank, rank == odd ? key_of("another") : kKey);
      ASSERT_FALSE(group) << "rank " << odd << " has another key";
      if (group.error().kind == ErrorKind::kRefused) refused = true;
      for (const auto& builder : builders) builder->abort();
    });
    EXPECT_TRUE(refused);
  }
}

TEST(SharedMemory, NobodyListensAnyMoreOnceTheGroupIsConnected) {
  std::vector<std::string> names;
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    builders.push_back(prepare(rank, 2, on_hosts("a")(rank)));
    names.push_back(name_of(*builders.back()));
    EXPECT_TRUE(listening_names().contains(names.back()));
  }
  std::vector<std::unique_ptr<Collective>> group(2);
  in_threads(2, [&](std::uint32_t rank) { group[rank] = connect(builders, rank).value(); });
  for (const std::string& name : names) EXPECT_FALSE(listening_names().contains(name));
}

TEST(SharedMemory, AMemberThatCannotShareMakesTheGroupUseTcp) {
  auto group = connect_all(3, [](std::uint32_t rank) {
    CollectiveOptions options = on_hosts("a")(rank);
    if (rank == 1) options.backend = Backend::kTcp;  // as a trainer of an earlier release
    return options;
  });
  in_threads(3, [&](std::uint32_t rank) {
    EXPECT_EQ(group[rank]->description(), "tcp (3 members)");
    std::vector<float> values(1000, 1);
    EXPECT_TRUE(group[rank]->allreduce_sum(values));
    EXPECT_EQ(values.back(), 3);
  });
}

TEST(SharedMemory, AGroupSaysWhatItUses) {
  const auto said = [](const OptionsOf& options) {
    return connect_all(4, options).front()->description();
  };
  EXPECT_EQ(said(on_hosts("a")), "shm (4 members of 1 host)");
  EXPECT_EQ(said(on_hosts("aabb")), "shm and tcp (4 members, 2 groups that share memory)");
  EXPECT_EQ(said(on_hosts("aaab")), "shm and tcp (4 members, 1 group that shares memory)");
  EXPECT_EQ(said(on_hosts("abcd")), "tcp (4 members)");
}

TEST(SharedMemory, OfAnotherSizeOrThatMayShrinkIsRefused) {
  using shm::SharedMemory;
  const auto refuses = [](off_t bytes) {
    OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), bytes), 0);
    const auto mapped = SharedMemory::map(std::move(fd), 2);
    return !mapped && mapped.error().kind == ErrorKind::kCorrupt;
  };
  EXPECT_TRUE(refuses(4096));
  EXPECT_TRUE(refuses(static_cast<off_t>(SharedMemory::bytes_for(2)))) << "it has no seals";
  const auto made = SharedMemory::create(2);
  ASSERT_TRUE(made);
  EXPECT_TRUE(SharedMemory::map(OwnedFd(dup(made->fd().get())), 2));
  EXPECT_FALSE(SharedMemory::map(OwnedFd(dup(made->fd().get())), 3));
  EXPECT_NE(ftruncate(made->fd().get(), 0), 0) << "nobody can make pages vanish";
}

// ------------------------------------------------------------------- what is not believed

// Two members in this process, of which one is a group, and of the other only its words are there.
struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    other_end = OwnedFd(ends[1]);
    auto memory = shm::SharedMemory::create(2).value();
    auto own = shm::SharedMemory::map(OwnedFd(dup(memory.fd().get())), 2).value();
    other.emplace(std::move(memory));
    auto bell = shm::Bell::make().value();
    std::vector<shm::Mate> mates(2);
    mates[0].rank = 0;
    mates[1].rank = 1;
    mates[1].connection = OwnedFd(ends[0]);
    mates[1].bell = std::move(shm::Bell::make().value()->fd);
    group = std::make_unique<shm::HostGroup>(
        shm::Mates::of(0, std::move(mates), std::move(own), bell, {false, std::chrono::hours(1)})
            .value(),
        nullptr);
  }
  OwnedFd other_end;
  std::optional<shm::SharedMemory> other;
  std::unique_ptr<shm::HostGroup> group;
};

TEST(SharedMemory, CountsThatCannotBeAreAnErrorAndNoOffset) {
  for (const std::uint64_t count :
       {std::uint64_t{1} << 63U, std::uint64_t{shm::kChannelBytes + 1}}) {
    Pair reads;
    reads.other->words(1).channels[0].sent = count;
    std::vector<std::byte> bytes(100);
    const Status received = reads.group->receive(Side::kRight, 1, bytes);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().kind, ErrorKind::kCorrupt) << received.error().message;
    Pair writes;
    writes.other->words(0).channels[0].received = count;
    const Status sent = writes.group->send(Side::kRight, 1, bytes);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().kind, ErrorKind::kCorrupt) << sent.error().message;
  }
}

TEST(SharedMemory, AChunkOfAnotherOperationIsAnError) {
  Pair pair;
  shm::Words& other = pair.other->words(1);
  other.headers[0].operation = 1;
  other.headers[0].bytes = 4;
  other.staged = 1;
  std::vector<float> values(2);
  const Status summed = pair.group->allreduce(std::span(values));
  ASSERT_FALSE(summed);
  EXPECT_EQ(summed.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(summed.error().message, HasSubstr("does not run the same operations"));
  EXPECT_FALSE(pair.group->allreduce(std::span(values))) << "it stays dead";
}

TEST(SharedMemory, AMemberThatHangsUpIsMissedOnlyForWhatItHasNotDone) {
  Pair pair;
  shm::Words& other = pair.other->words(1);
  reinterpret_cast<float&>(*pair.other->slot(1, 0).data()) = 5;
  other.headers[0].operation = 1;
  other.headers[0].bytes = 4;
  other.staged = 1;
  pair.other_end.close();
  float value = 1;
  EXPECT_TRUE(pair.group->allreduce(std::span(&value, 1)));
  EXPECT_EQ(value, 6);
  const Status second = pair.group->allreduce(std::span(&value, 1));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kIo);
  EXPECT_THAT(second.error().message, HasSubstr("rank 1 has closed the connection"));
}

// ------------------------------------------------------------------- stores

TEST(StoreChoice, StreamsAfterSeveralSlowCopiesAndTriesAgainLater) {
  using shm::StoreChoice;
  constexpr std::size_t kBytes = 128UL * 1024;
  constexpr Duration kSlow = std::chrono::microseconds(60);  // 2.2 GB/s
  constexpr Duration kFast = std::chrono::microseconds(9);
  StoreChoice choice;
  for (int i = 0; i < 10 * StoreChoice::kWindow; ++i) {  // never enough of them in a window
    const bool slow = i % StoreChoice::kWindow < StoreChoice::kSlowCopies - 1;
    choice.copied(kBytes, slow ? kSlow : kFast);
    EXPECT_FALSE(choice.streams());
  }
  for (int n = 0; n < 100; ++n) choice.copied(StoreChoice::kLeastBytes - 1, kSlow);
  EXPECT_FALSE(choice.streams()) << "short copies say nothing";
  for (int n = 0; n < StoreChoice::kSlowCopies; ++n) choice.copied(kBytes, kSlow);
  for (int n = 0; n < StoreChoice::kStreamedCopies; ++n) {
    EXPECT_TRUE(choice.streams());
    choice.copied(kBytes, kFast);
  }
  EXPECT_FALSE(choice.streams());
}

TEST(StoreChoice, AStreamedCopyHasEveryByte) {
  std::vector<std::byte> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 640UL, 999UL}) {
    alignas(64) std::array<std::byte, 1024> to{};
    shm::copy_streaming(to.data(), from.data(), bytes);
    EXPECT_TRUE(
        std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(bytes), from.begin()));
    EXPECT_EQ(to[bytes], std::byte{0});
  }
}

// ------------------------------------------------------------------- a member that is killed

class Killed : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Killed, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

// In the middle of sums that never cease, each rank in turn; the others are released with kIo.
TEST_P(Killed, InTheMiddleOfASumReleasesAllOthersWithAnError) {
  const OptionsOf options = [layout = GetParam()](std::uint32_t r) { return layout.options_of(r); };
  constexpr std::uint32_t kSize = 4;
  for (std::uint32_t victim = 0; victim < kSize; ++victim) {
    ProcessGroup group(options, kSize, [](Collective& c, ProcessGroup::Cell& cell) {
      std::vector<float> values(500'000, 0.0F);
      while (true) {
        const Status status = c.allreduce_sum(values);
        if (!status) return status.error().kind == ErrorKind::kIo ? 0 : 1;
        ++cell.note;
      }
    });
    while (group.cell(victim).note < 3) std::this_thread::yield();
    kill(group.pid(victim), SIGKILL);
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      EXPECT_EQ(group.exit_code(rank), rank == victim ? -SIGKILL : 0) << rank << " of " << victim;
    }
  }
}

}  // namespace
}  // namespace antdt::trainer
