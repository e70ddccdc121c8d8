// Tests against ZeroMQ's own ROUTER, and against peers that are something else.
#include "core/transport/ipc_dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/transport/zmtp.h"
#include "core/wire/packet.h"

namespace antdt::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Duration kLong = 30s;

wire::Packet numbered(std::uint64_t seq, std::size_t body_bytes = 10) {
  wire::Envelope envelope;
  envelope.seq = seq;
  return {"", "", wire::encode(envelope), std::string(body_bytes, static_cast<char>(seq))};
}

std::uint64_t number_of(const wire::Packet& packet) {
  const auto envelope = wire::open_envelope(packet);
  return envelope ? envelope->seq : 0;
}

class IpcDealerTest : public testing::Test {
 protected:
  [[nodiscard]] Socket router() { return Socket::bind_ipc(context_, path_).value(); }
  [[nodiscard]] IpcDealer dealer() { return IpcDealer::connect(path_).value(); }

  TempDir directory_;
  Context context_;
  std::string path_ = directory_ / "s.sock";
};

wire::Packet await(Socket& socket) {
  const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < deadline) {
    if (!socket.wait_readable(100ms)) continue;
    if (auto packet = socket.receive()) return std::move(*packet);
  }
  ADD_FAILURE() << "nothing came";
  return {};
}

wire::Packet await(IpcDealer& dealer) {
  EXPECT_TRUE(dealer.wait_readable(kLong)) << "nothing came";
  return dealer.receive().value_or(wire::Packet{});
}

// Returns the packet that the server receives. The client runs meanwhile: it connects, and sends
// large packets as the server reads.
wire::Packet await(Socket& server, IpcDealer& client) {
  const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < deadline) {
    EXPECT_FALSE(client.wait_readable(1ms));
    if (auto packet = server.receive()) return std::move(*packet);
  }
  ADD_FAILURE() << "nothing came";
  return {};
}

TEST_F(IpcDealerTest, PacketsOfEverySizeArriveInBothDirections) {
  Socket server = router();
  IpcDealer client = dealer();
  std::uint64_t seq = 0;
  for (const std::size_t size : {0U, 1U, 100U, 255U, 256U, 8192U, 100'000U, 3'000'000U}) {
    const wire::Packet sent = numbered(++seq, size);
    ASSERT_EQ(client.send(sent), SendOutcome::kSent);
    const wire::Packet asked = await(server, client);
    EXPECT_EQ(asked.envelope, sent.envelope);
    EXPECT_TRUE(asked.body == sent.body) << size;
    ASSERT_EQ(server.send(asked), SendOutcome::kSent);
    const wire::Packet reply = await(client);
    EXPECT_EQ(reply.envelope, sent.envelope);
    EXPECT_TRUE(reply.body == sent.body) << size;
    EXPECT_FALSE(client.receive());
  }
}

TEST_F(IpcDealerTest, ManyPacketsKeepTheirOrderInBothDirections) {
  constexpr std::uint64_t kPackets = 5000;
  Socket server = router();
  IpcDealer client = dealer();
  std::uint64_t sent = 0, answered = 0;
  const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
  while (answered < kPackets && std::chrono::steady_clock::now() < deadline) {
    while (sent < kPackets && client.send(numbered(sent + 1, 300)) == SendOutcome::kSent) ++sent;
    while (const auto packet = server.receive()) {
      ASSERT_EQ(server.send(*packet), SendOutcome::kSent);
    }
    if (!client.wait_readable(1ms)) continue;
    while (const auto packet = client.receive()) {
      ASSERT_EQ(number_of(*packet), ++answered);
      ASSERT_EQ(packet->body.size(), 300U);
    }
  }
  EXPECT_EQ(answered, kPackets);
}

TEST_F(IpcDealerTest, AServerThatStartsLaterIsFoundAndAgainAfterItRestarted) {
  IpcDealer client = dealer();
  ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent) << "kept until somebody is there";
  EXPECT_FALSE(client.wait_readable(1ms));
  for (std::uint64_t seq = 1; seq <= 3; ++seq) {
    Socket server = router();
    std::optional<wire::Packet> asked;
    const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
    while (!asked && std::chrono::steady_clock::now() < deadline) {
      // The messages in the kernel's buffers are lost with the server before this one.
      if (seq > 1) std::ignore = client.send(numbered(seq));
      EXPECT_FALSE(client.wait_readable(20ms));
      asked = server.receive();
    }
    ASSERT_TRUE(asked);
    EXPECT_EQ(number_of(*asked), seq);
    ASSERT_EQ(server.send(*asked), SendOutcome::kSent);
    EXPECT_EQ(number_of(await(client)), seq);
  }
}

TEST_F(IpcDealerTest, MessagesOfAServerThatEndedAreReceived) {
  IpcDealer client = dealer();
  ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent);
  {
    Context own;
    Socket server = Socket::bind_ipc(own, path_).value();
    ASSERT_EQ(server.send(await(server, client)), SendOutcome::kSent);
  }
  // The server has gone: this call or the next one notices it, and loses nothing that arrived.
  std::ignore = client.send(numbered(2));
  std::ignore = client.send(numbered(3));
  EXPECT_EQ(number_of(await(client)), 1U);
}

TEST_F(IpcDealerTest, TheLastMessageIsSentBeforeTheEnd) {
  Socket server = router();
  IpcDealer client = dealer();
  ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent);
  EXPECT_EQ(number_of(await(server, client)), 1U);
  std::thread ending([last = std::move(client)]() mutable {
    EXPECT_EQ(last.send(numbered(7, 4'000'000)), SendOutcome::kSent);
    const IpcDealer gone = std::move(last);
  });
  const wire::Packet packet = await(server);
  ending.join();
  EXPECT_EQ(number_of(packet), 7U);
  EXPECT_EQ(packet.body.size(), 4'000'000U);
}

TEST_F(IpcDealerTest, AQueueThatIsFullIsTold) {
  IpcDealer client = dealer();  // nobody is there
  int sent = 0;
  while (client.send(numbered(1)) == SendOutcome::kSent && sent < 1000000) ++sent;
  EXPECT_EQ(client.send(numbered(1)), SendOutcome::kFull);
  EXPECT_GE(sent, 1000);
}

// A dealer reads only when it is asked to, as a peer does that is slow.
TEST_F(IpcDealerTest, WhatASlowPeerHasNotReadIsInFlightUntilItDoes) {
  Socket server = router();
  IpcDealer client = dealer();
  ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent);
  const std::string peer = await(server, client).peer;
  InFlight in_flight;
  constexpr std::size_t kBody = 1024 * 1024;
  std::uint64_t sent = 0;
  while (in_flight.bytes() < 16 * kBody && sent < 100) {
    wire::Packet packet = numbered(++sent, kBody);
    packet.peer = peer;
    ASSERT_EQ(server.send(packet, in_flight), SendOutcome::kSent);
  }
  EXPECT_GE(in_flight.bytes(), 16 * kBody);
  for (std::uint64_t seq = 1; seq <= sent; ++seq) {
    const wire::Packet packet = await(client);
    EXPECT_EQ(number_of(packet), seq);
    EXPECT_EQ(packet.body.size(), kBody);
  }
  const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
  while (in_flight.bytes() > 0 && std::chrono::steady_clock::now() < deadline) {
    EXPECT_FALSE(client.wait_readable(1ms));
  }
  EXPECT_EQ(in_flight.bytes(), 0U);
}

TEST_F(IpcDealerTest, WhatIsNotSentIsNotInFlight) {
  Socket server = router();
  InFlight in_flight;
  wire::Packet packet = numbered(1);
  packet.peer = "nobody";
  EXPECT_EQ(server.send(packet, in_flight), SendOutcome::kPeerGone);
  EXPECT_EQ(in_flight.bytes(), 0U);
}

TEST_F(IpcDealerTest, AServerThatTakesFewMessagesUnreadLosesNone) {
  Socket server = Socket::bind_ipc(context_, path_, /*unread=*/4).value();
  IpcDealer client = dealer();
  for (std::uint64_t seq = 1; seq <= 100; ++seq) {
    ASSERT_EQ(client.send(numbered(seq, 100'000)), SendOutcome::kSent);
  }
  for (std::uint64_t seq = 1; seq <= 100; ++seq) {
    EXPECT_EQ(number_of(await(server, client)), seq);
  }
}

TEST_F(IpcDealerTest, APathThatIsTooLongIsAnErrorThatSaysSo) {
  const auto client = IpcDealer::connect(directory_ / std::string(120, 'x'));
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("107"));
}

TEST_F(IpcDealerTest, TheServerSeesThatItHasGone) {
  Socket server = router();
  wire::Packet reply;
  {
    IpcDealer client = dealer();
    ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent);
    reply = await(server, client);
  }
  const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
  SendOutcome outcome = SendOutcome::kSent;
  while (outcome == SendOutcome::kSent && std::chrono::steady_clock::now() < deadline) {
    outcome = server.send(reply);
    std::ignore = server.wait_readable(1ms);
  }
  EXPECT_EQ(outcome, SendOutcome::kPeerGone);
}

// In a loop: the descriptor stays the same over restarts of the server, and no turn is lost or
// wasted.
TEST_F(IpcDealerTest, ALoopIsWokenByItsOneDescriptor) {
  IpcDealer client = dealer();
  SteadyClock clock;
  EventLoop loop(clock);
  std::atomic<std::uint64_t> answered = 0;
  int turns = 0;
  loop.watch_fd(client.fd(), [&] {
    while (const auto packet = client.receive()) answered = number_of(*packet);
  });
  loop.at_turn_end([&] { ++turns; });
  std::uint64_t seq = 0;
  const std::function<void()> ask = [&] {
    std::ignore = client.send(numbered(++seq));
    loop.call_after(20ms, ask);
  };
  ask();
  std::thread serving([&] {
    for (int life = 0; life < 3; ++life) {
      Context own;
      Socket server = Socket::bind_ipc(own, path_).value();
      const std::uint64_t before = answered;
      const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
      while (answered <= before && std::chrono::steady_clock::now() < deadline) {
        if (!server.wait_readable(10ms)) continue;
        while (const auto packet = server.receive()) std::ignore = server.send(*packet);
      }
      EXPECT_GT(answered, before) << "life " << life;
    }
    loop.stop_from_any_thread();
  });
  loop.run();
  serving.join();
  // A descriptor that stays readable would run the loop without end.
  EXPECT_LT(turns, 1000 + 20 * static_cast<int>(seq));
}

// ------------------------------------------------------------- other peers

// A listening socket that the test reads and writes byte by byte.
class RawServer {
 public:
  explicit RawServer(const std::string& path)
      : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        ::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listening_.get(), 8), 0);
  }
  // The next connection of a client, whose progress this call drives.
  [[nodiscard]] OwnedFd accept(IpcDealer& client) const {
    const MonoTime deadline = std::chrono::steady_clock::now() + kLong;
    while (std::chrono::steady_clock::now() < deadline) {
      OwnedFd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.is_open()) return connection;
      EXPECT_FALSE(client.wait_readable(1ms));
    }
    ADD_FAILURE() << "nobody connected";
    return {};
  }

 private:
  OwnedFd listening_;
};

void say(const OwnedFd& connection, std::string_view bytes) {
  EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Returns `size` bytes of the peer, or all until it closes.
std::string hear(const OwnedFd& connection, std::size_t size) {
  std::string heard(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = ::recv(connection.get(), heard.data() + have, size - have, 0);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  heard.resize(have);
  return heard;
}

std::string router_opening() {
  std::string opening = zmtp_opening();
  opening.replace(opening.find("DEALER"), 6, "ROUTER");
  return opening;
}

TEST_F(IpcDealerTest, NothingButTheOpeningIsSentBeforeThePeerIsReady) {
  const RawServer server(path_);
  IpcDealer client = dealer();
  ASSERT_EQ(client.send(numbered(1)), SendOutcome::kSent);
  const OwnedFd connection = server.accept(client);
  EXPECT_EQ(hear(connection, zmtp_opening().size()), zmtp_opening());
  char byte = 0;
  EXPECT_EQ(::recv(connection.get(), &byte, 1, MSG_DONTWAIT), -1);
  const std::string opening = router_opening();
  say(connection, opening.substr(0, 70));
  EXPECT_FALSE(client.wait_readable(1ms));
  EXPECT_EQ(::recv(connection.get(), &byte, 1, MSG_DONTWAIT), -1);
  say(connection, opening.substr(70));
  std::string expected;
  append_zmtp(expected, numbered(1));
  EXPECT_FALSE(client.wait_readable(1ms));
  EXPECT_EQ(hear(connection, expected.size()), expected);
}

TEST_F(IpcDealerTest, APeerOfAnotherProtocolIsLeftAndTriedAgain) {
  const RawServer server(path_);
  IpcDealer client = dealer();
  for (const std::string& nonsense : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
                                      router_opening() + "\x08\x00", std::string()}) {
    OwnedFd connection = server.accept(client);
    say(connection, nonsense);
    if (nonsense.empty()) connection.close();
    EXPECT_FALSE(client.wait_readable(1ms));
    if (connection.is_open()) {
      EXPECT_EQ(hear(connection, 1000), zmtp_opening()) << "and the end of the connection";
    }
  }
  // A valid server is found in the end, and its message arrives.
  const OwnedFd connection = server.accept(client);
  std::string said = router_opening();
  append_zmtp(said, numbered(5));
  say(connection, said);
  EXPECT_EQ(number_of(await(client)), 5U);
}

TEST_F(IpcDealerTest, APacketThatWasPartlySentIsSentWholeToTheNext) {
  const RawServer server(path_);
  IpcDealer client = dealer();
  {
    const OwnedFd connection = server.accept(client);
    say(connection, router_opening());
    EXPECT_FALSE(client.wait_readable(1ms));
    ASSERT_EQ(client.send(numbered(1, 8'000'000)), SendOutcome::kSent);
    EXPECT_EQ(hear(connection, zmtp_opening().size() + 5000).size(), zmtp_opening().size() + 5000);
  }
  std::string expected = zmtp_opening();
  append_zmtp(expected, numbered(1, 8'000'000));
  const OwnedFd connection = server.accept(client);
  say(connection, router_opening());
  std::string bytes;
  std::thread hearing([&] {
    bytes = hear(connection, expected.size());
    std::string reply;
    append_zmtp(reply, numbered(1));
    say(connection, reply);
  });
  EXPECT_EQ(number_of(await(client)), 1U);
  hearing.join();
  EXPECT_TRUE(bytes == expected) << bytes.size() << " bytes, expected " << expected.size();
}

TEST_F(IpcDealerTest, AHeartbeatIsAnswered) {
  const RawServer server(path_);
  IpcDealer client = dealer();
  const OwnedFd connection = server.accept(client);
  say(connection, router_opening() + std::string("\4\11\4PING\0\144hi", 11));
  EXPECT_FALSE(client.wait_readable(1ms));
  EXPECT_EQ(hear(connection, zmtp_opening().size() + 9),
            zmtp_opening() + std::string("\4\7\4PONGhi", 9));
}

}  // namespace
}  // namespace antdt::transport
