// How the members of a collective find one another, and which peers are refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <future>
#include <set>
#include <string>
#include <thread>

#include "core/os/net.h"
#include "tests/trainer/collective/testing.h"
#include "trainer/collective/greeting.h"
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
          auto group = connect(builders, rank, rank == odd ? key_of("another") : kKey);
          // As in a job, an error of one member ends the forming for all.
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
    auto fd = start_to_connect(builders[1]->address().at);
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

// Strangers that attack one member while its group forms, until they are told to stop.
class Flood {
 public:
  Flood(const std::string& address, std::string words) {
    thread_ = std::thread([this, address, words = std::move(words)] {
      std::deque<OwnedFd> open;
      while (!stop_) {
        auto fd = start_to_connect(address);
        if (!fd) continue;
        pollfd writable{fd->get(), POLLOUT, 0};
        poll(&writable, 1, 100);
        if (!words.empty()) {
          std::ignore = ::send(fd->get(), words.data(), words.size(), MSG_NOSIGNAL);
        }
        open.push_back(std::move(*fd));
        if (open.size() > 500) open.pop_front();
        ++dialled_;
      }
    });
  }
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint64_t dialled() const { return dialled_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> dialled_ = 0;
  std::thread thread_;
};

TEST(TcpCollective, AFloodOfStrangersCostsNobodyAPlace) {
  Handshake::Self wrong{key_of("guessed"), 0, 3, false};
  for (const std::string& words :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
        Handshake::dialling(wrong, 2, crypto::Nonce{}).opening().substr(0, 40),
        Handshake::dialling(wrong, 2, crypto::Nonce{}).opening()}) {
    auto builders = prepare_all(3);
    Flood flood(builders[2]->address().at, words);
    while (flood.dialled() < 2 * Greeting::kMostStrangers) std::this_thread::yield();
    std::vector<float> sums(3, 1);
    const auto begin = std::chrono::steady_clock::now();
    in_threads(3, [&](std::uint32_t rank) {
      const auto group = connect(builders, rank);
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_TRUE((*group)->allreduce_sum(std::span(&sums[rank], 1)));
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8)) << words;
    EXPECT_EQ(sums, (std::vector<float>{3, 3, 3}));
  }
}

// A member's connection that made room for strangers: it dials again.
TEST(TcpCollective, AMemberThatIsTurnedAwayUnansweredDialsAgain) {
  auto port = listen_tcp("127.0.0.1", 0);
  ASSERT_TRUE(port);
  auto builder = prepare(0, 2);
  const std::vector<MemberAddress> addresses{builder->address(), {*local_address(*port), {}}};
  auto call = std::async(std::launch::async, [&] { return builder->connect(addresses, kKey); });
  for (int times = 0; times < 3; ++times) {
    pollfd dialled{port->get(), POLLIN, 0};
    ASSERT_EQ(poll(&dialled, 1, 10'000), 1) << "after " << times;
    const OwnedFd turned_away(accept4(port->get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  port->close();  // and does not listen any more
  const auto group = call.get();
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().kind, ErrorKind::kIo);
  EXPECT_THAT(group.error().message, testing::HasSubstr("rank 1"));
}

TEST(TcpCollective, AReplayedHelloIsRefused) {
  auto builders = prepare_all(2);
  const Handshake member =
      Handshake::dialling({kKey, 0, 2, false}, 1, crypto::random_nonce().value());
  const auto says_hello = [&]() -> OwnedFd {
    auto fd = start_to_connect(builders[1]->address().at);
    EXPECT_TRUE(fd);
    pollfd writable{fd->get(), POLLOUT, 0};
    poll(&writable, 1, -1);
    const std::string hello = member.opening();
    EXPECT_EQ(::send(fd->get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    return std::move(*fd);
  };
  const OwnedFd first = says_hello();
  const OwnedFd again = says_hello();
  const auto answered = [](const OwnedFd& fd) {
    pollfd readable{fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 10'000), 1);
    std::array<char, 80> answer{};
    EXPECT_EQ(recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL), 80);
    return answer[8];  // the verdict
  };
  std::vector<float> sums(2, 1);
  auto rank_1 = std::async(std::launch::async, [&] { return connect(builders, 1); });
  EXPECT_EQ(answered(first), 1) << "it may be the member, until it cannot prove it";
  EXPECT_EQ(answered(again), 0);
  const auto rank_0 = connect(builders, 0);
  ASSERT_TRUE(rank_0) << "the member's own has another nonce: " << rank_0.error().message;
  const auto other = rank_1.get();
  ASSERT_TRUE(other) << other.error().message;
}

TEST(TcpCollective, AMemberThatNeverComesIsNamedInTime) {
  auto builders = prepare_all(2);
  auto waiting = prepare(
      1, 2, {.hostname = "127.0.0.1", .interface = "", .connect_timeout = milliseconds(50)});
  const std::vector<MemberAddress> addresses{builders[0]->address(), waiting->address()};
  const auto group = waiting->connect(addresses, kKey);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().kind, ErrorKind::kIo);
  EXPECT_NE(group.error().message.find("rank 0"), std::string::npos) << group.error().message;
}

// Uses up all descriptors of the process.
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

TEST(TcpCollective, WithoutFreeDescriptorsItWaitsIdleAndSaysHowToRaiseTheLimit) {
  auto builders = prepare_all(2);
  const auto waiting = prepare(
      1, 2, {.hostname = "127.0.0.1", .interface = "", .connect_timeout = milliseconds(500)});
  const std::vector<MemberAddress> addresses{builders[0]->address(), waiting->address()};
  const auto dialled = start_to_connect(waiting->address().at);
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

TEST(TcpCollective, AnAddressThatCannotBeListenedOnIsAnError) {
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
  const std::string address = builder.address().at;
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
