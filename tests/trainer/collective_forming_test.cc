// How the members of a collective find one another, and who is turned away.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <future>
#include <set>
#include <string>

#include "core/net.h"
#include "tests/trainer/collective_testing.h"
#include "trainer/collective/listen_address.h"

namespace antdt::trainer {
namespace {

using std::chrono::milliseconds;

TEST(TcpCollective, AbortEndsAConnectionInTheMaking) {
  auto builders = prepare_all(3);
  std::promise<void> entered;
  auto call = std::async(std::launch::async, [&] {
    entered.set_value();
    return connect(builders, 1);  // its neighbours never dial
  });
  entered.get_future().wait();
  builders[1]->abort();
  const auto ring = call.get();
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().kind, ErrorKind::kAborted) << "and no time-out";
}

TEST(TcpCollective, AMemberWithAnotherKeyIsRefused) {
  for (std::uint32_t size : {2U, 3U}) {
    for (std::uint32_t odd = 0; odd < size; ++odd) {
      auto builders = prepare_all(size);
      std::vector<std::future<Result<std::unique_ptr<Collective>>>> calls;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        calls.push_back(std::async(std::launch::async, [&, rank] {
          auto group = connect(builders, rank, rank == odd ? kKey + 1 : kKey);
          // As a job does: what one of them met ends the forming for all.
          if (!group) {
            for (const auto& builder : builders) builder->abort();
          }
          return group;
        }));
      }
      bool refused = false;
      for (auto& call : calls) {
        const auto group = call.get();
        ASSERT_FALSE(group) << "rank " << odd << " of " << size << " has another key";
        refused = refused || group.error().kind == ErrorKind::kRefused;
      }
      EXPECT_TRUE(refused);
    }
  }
}

TEST(TcpCollective, StrangersThatDialDoNoHarm) {
  auto builders = prepare_all(3);
  std::vector<OwnedFd> strangers;
  const auto dial = [&](const std::string& words) {
    auto fd = start_to_connect(builders[1]->address());
    ASSERT_TRUE(fd) << fd.error().message;
    pollfd writable{fd->get(), POLLOUT, 0};
    ASSERT_EQ(poll(&writable, 1, -1), 1);
    ASSERT_EQ(::send(fd->get(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
    strangers.push_back(std::move(*fd));
  };
  for (int i = 0; i < 100; ++i) dial(i % 2 == 0 ? "" : std::string(200, 'x'));
  std::vector<float> sums(3, 1);
  in_threads(3, [&](std::uint32_t rank) {
    const auto group = connect(builders, rank);
    ASSERT_TRUE(group) << group.error().message;
    EXPECT_TRUE((*group)->allreduce_sum(std::span(&sums[rank], 1)));
  });
  EXPECT_EQ(sums, (std::vector<float>{3, 3, 3}));
}

TEST(TcpCollective, AMemberThatNeverComesIsNamedInTime) {
  auto builders = prepare_all(2);
  auto waiting = prepare(
      1, 2, {.hostname = "127.0.0.1", .interface = "", .connect_timeout = milliseconds(50)});
  const std::vector<std::string> addresses{builders[0]->address(), waiting->address()};
  const auto group = waiting->connect(addresses, kKey);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().kind, ErrorKind::kIo);
  EXPECT_NE(group.error().message.find("rank 0"), std::string::npos) << group.error().message;
}

// No descriptor beside those that are open.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const OwnedFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

Duration used_by_this_thread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST(TcpCollective, WhoHasNoDescriptorsLeftWaitsWithoutWorkingAndSaysHowToHaveMore) {
  auto builders = prepare_all(2);
  const auto waiting = prepare(
      1, 2, {.hostname = "127.0.0.1", .interface = "", .connect_timeout = milliseconds(500)});
  const std::vector<std::string> addresses{builders[0]->address(), waiting->address()};
  const auto dialled = start_to_connect(waiting->address());
  ASSERT_TRUE(dialled) << dialled.error().message;
  // Why it fails. A sanitizer needs descriptors itself when matchers are called.
  const auto without_any = [](const auto& connect_to) {
    const NoMoreDescriptors none;
    const auto group = connect_to();
    return group ? std::string("connected") : group.error().message;
  };
  const Duration before = used_by_this_thread();
  std::string why = without_any([&] { return waiting->connect(addresses, kKey); });
  EXPECT_LT(used_by_this_thread() - before, milliseconds(100));
  EXPECT_THAT(why, testing::HasSubstr("Too many open files"));
  EXPECT_THAT(why, testing::HasSubstr("ulimit -n"));
  why = without_any([&] { return connect(builders, 0); });
  EXPECT_THAT(why, testing::HasSubstr("ulimit -n"));
}

TEST(TcpCollective, WhatCannotBeListenedOnIsAnError) {
  for (const CollectiveOptions& options :
       {CollectiveOptions{.hostname = "no-such-host.invalid", .interface = ""},
        CollectiveOptions{.hostname = "192.0.2.1", .interface = ""},  // TEST-NET-1: nobody's
        CollectiveOptions{.hostname = "", .interface = "no-such-if0"}}) {
    const auto builder = prepare_collective(0, 2, options);
    ASSERT_FALSE(builder) << options.hostname << options.interface;
    EXPECT_EQ(builder.error().kind, ErrorKind::kIo);
  }
}

// The port at which `builder` listens.
std::uint16_t port_of(const CollectiveBuilder& builder) {
  const std::string address = builder.address();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

TEST(TcpCollective, ListensOnPortsOfTheRangeThatAreFree) {
  // Some range of this machine; others may hold ports of it, as the first member does.
  const CollectiveOptions options{
      .hostname = "127.0.0.1", .interface = "", .ports = {21400, 21999}};
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  std::set<std::uint16_t> ports;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto builder = prepare_collective(rank, 3, options);
    ASSERT_TRUE(builder) << builder.error().message;
    builders.push_back(std::move(*builder));
    EXPECT_GE(port_of(*builders.back()), 21400);
    EXPECT_LE(port_of(*builders.back()), 21999);
    ports.insert(port_of(*builders.back()));
  }
  EXPECT_EQ(ports.size(), 3U);
  std::vector<float> sums(3);
  in_threads(3, [&](std::uint32_t rank) {
    const auto ring = connect(builders, rank);
    ASSERT_TRUE(ring) << ring.error().message;
    sums[rank] = static_cast<float>(rank + 1);
    EXPECT_TRUE((*ring)->allreduce_sum(std::span(&sums[rank], 1)));
  });
  EXPECT_EQ(sums, (std::vector<float>{6, 6, 6}));
}

TEST(TcpCollective, ARangeWithoutAFreePortIsAnErrorThatNamesIt) {
  const auto any = prepare_collective(0, 2, {.hostname = "127.0.0.1", .interface = ""});
  ASSERT_TRUE(any) << any.error().message;
  const std::uint16_t taken = port_of(**any);
  const auto none =
      prepare_collective(0, 2, {.hostname = "127.0.0.1", .interface = "", .ports = {taken, taken}});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find(fmt::format("[cluster] ports = \"{0}-{0}\"", taken)),
            std::string::npos)
      << none.error().message;
}

TEST(ListenOptions, AreLoopbackAnInterfaceOrTheHostThatIsThisMachine) {
  EXPECT_EQ(listen_options({}, "", "")->hostname, "127.0.0.1");
  EXPECT_EQ(listen_options({"10.0.0.1:7700"}, "eth7", "")->interface, "eth7");
  EXPECT_EQ(listen_options({"192.0.2.1:7700", "127.0.0.1:7701"}, "", "")->hostname, "127.0.0.1");
  EXPECT_FALSE(listen_options({"192.0.2.1:7700"}, "", ""));
  EXPECT_EQ(listen_options({}, "", "29400-29999")->ports.last, 29999);
  EXPECT_FALSE(listen_options({}, "", "80-"));
}

}  // namespace
}  // namespace antdt::trainer
