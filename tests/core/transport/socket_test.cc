#include "core/transport/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/wire/packet.h"

namespace antdt::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

wire::Packet sequenced(std::uint64_t seq) {
  wire::Envelope envelope;
  envelope.seq = seq;
  return wire::make_packet(envelope, wire::Hello{1, 1, "test"});
}

// Answers every request with Done on its own thread, until destroyed.
class EchoServer {
 public:
  EchoServer(Context& context, const std::string& path)
      : socket_(Socket::bind_ipc(context, path).value()) {
    loop_.watch_socket(socket_, [this] {
      while (const auto packet = socket_.receive()) answer(*packet);
    });
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~EchoServer() {
    loop_.stop_from_any_thread();
    thread_.join();
  }

 private:
  void answer(const wire::Packet& packet) {
    wire::Packet reply = wire::make_packet(*wire::open_envelope(packet), wire::Done{});
    reply.peer = packet.peer;
    EXPECT_EQ(packet.user, "");
    // The client may have gone meanwhile, which is no error of the server.
    EXPECT_NE(socket_.send(reply), SendOutcome::kFull);
  }
  SteadyClock clock_;
  EventLoop loop_{clock_};
  Socket socket_;
  std::thread thread_;
};

class SocketTest : public testing::Test {
 protected:
  TempDir directory_;
  Context context_;
  std::string path_ = directory_ / "s.sock";
};

TEST_F(SocketTest, AnswersRequestsOfManyClients) {
  EchoServer server(context_, path_);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([this] {
      Socket socket = Socket::connect_ipc(context_, path_).value();
      for (std::uint64_t seq = 1; seq <= 500; ++seq) {
        const auto reply = request(socket, sequenced(seq), 20s);
        ASSERT_TRUE(reply) << reply.error().message;
        ASSERT_EQ(wire::open_envelope(*reply)->seq, seq);
        ASSERT_TRUE(wire::open_reply<wire::Done>(*reply));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// A message that is sent before the client has noticed the end of its server is lost, as the header
// says; so the client asks again, with the same number.
Result<wire::Packet> ask_until_answered(Socket& client, std::uint64_t seq) {
  auto reply = request(client, sequenced(seq), 200ms);
  for (int tries = 1; !reply && tries < 100; ++tries) {
    reply = request(client, sequenced(seq), 200ms);
  }
  return reply;
}

TEST_F(SocketTest, AClientFindsAServerThatStartsLaterAndAgainAfterItRestarted) {
  Socket client = Socket::connect_ipc(context_, path_).value();
  ASSERT_EQ(client.send(sequenced(1)), SendOutcome::kSent) << "kept until somebody is there";
  {
    EchoServer server(context_, path_);
    ASSERT_TRUE(client.wait_readable(20s)) << "what was kept is answered";
  }
  for (std::uint64_t seq = 2; seq <= 4; ++seq) {
    EchoServer server(context_, path_);
    const auto reply = ask_until_answered(client, seq);
    ASSERT_TRUE(reply) << reply.error().message;
  }
}

TEST_F(SocketTest, BindingAPathInUseIsRefusedAndNamesTheOwner) {
  const auto owner = Socket::bind_ipc(context_, path_);
  ASSERT_TRUE(owner) << owner.error().message;
  const auto thief = Socket::bind_ipc(context_, path_);
  ASSERT_FALSE(thief);
  EXPECT_EQ(thief.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(thief.error().message, HasSubstr(fmt::format("process {}", getpid())));
  EXPECT_THAT(thief.error().message, HasSubstr(path_));
}

TEST_F(SocketTest, ABoundPathIsPrivateAndGoneAfterwards) {
  {
    const auto socket = Socket::bind_ipc(context_, path_);
    ASSERT_TRUE(socket) << socket.error().message;
    struct stat info {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(SocketTest, LeftoversOfACrashDoNotHinder) {
  ASSERT_TRUE(write_file_atomic(path_, ""));
  ASSERT_TRUE(write_file_atomic(path_ + ".lock", "99999999\n"));
  const auto socket = Socket::bind_ipc(context_, path_);
  EXPECT_TRUE(socket) << socket.error().message;
}

TEST_F(SocketTest, APathThatIsTooLongIsAnErrorThatSaysSo) {
  const auto socket = Socket::connect_ipc(context_, directory_ / std::string(120, 'x'));
  ASSERT_FALSE(socket);
  EXPECT_THAT(socket.error().message, HasSubstr("107"));
  EXPECT_FALSE(Socket::bind_ipc(context_, directory_ / std::string(120, 'x')));
}

TEST_F(SocketTest, APathOfTheLongestAllowedLengthWorks) {
  const std::size_t rest = 107 - directory_.path().size() - 1;
  const std::string path = directory_ / std::string(rest, 'x');
  EchoServer server(context_, path);
  Socket client = Socket::connect_ipc(context_, path).value();
  const auto reply = request(client, sequenced(1), 20s);
  EXPECT_TRUE(reply) << reply.error().message;
}

TEST_F(SocketTest, SendingToAPeerThatIsGoneIsTold) {
  Socket server = Socket::bind_ipc(context_, path_).value();
  wire::Packet reply = sequenced(1);
  {
    Socket client = Socket::connect_ipc(context_, path_).value();
    ASSERT_EQ(client.send(sequenced(1)), SendOutcome::kSent);
    ASSERT_TRUE(server.wait_readable(20s));
    reply.peer = server.receive()->peer;
    EXPECT_EQ(server.send(reply), SendOutcome::kSent);
  }
  // The end of the connection arrives some time after the client's own end.
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  SendOutcome outcome = SendOutcome::kSent;
  while (outcome == SendOutcome::kSent && std::chrono::steady_clock::now() < deadline) {
    outcome = server.send(reply);
    std::ignore = server.wait_readable(1ms);
  }
  EXPECT_EQ(outcome, SendOutcome::kPeerGone);
  reply.peer = "never seen";
  EXPECT_EQ(server.send(reply), SendOutcome::kPeerGone);
}

TEST_F(SocketTest, AFullSocketIsTold) {
  Socket client = Socket::connect_ipc(context_, path_).value();  // nobody is there
  int sent = 0;
  while (client.send(sequenced(1)) == SendOutcome::kSent && sent < 1000000) ++sent;
  EXPECT_EQ(client.send(sequenced(1)), SendOutcome::kFull);
  EXPECT_GE(sent, 1000);
}

TEST_F(SocketTest, ALargeBodyArrivesWhole) {
  Socket server = Socket::bind_ipc(context_, path_).value();
  Socket client = Socket::connect_ipc(context_, path_).value();
  wire::Packet packet = sequenced(1);
  packet.body = std::string(20 * 1024 * 1024, '\x5a');
  ASSERT_EQ(client.send(packet), SendOutcome::kSent);
  ASSERT_TRUE(server.wait_readable(20s));
  EXPECT_EQ(server.receive()->body, packet.body);
}

TEST_F(SocketTest, ARequestWithoutAnAnswerNamesTheEndPoint) {
  Socket client = Socket::connect_ipc(context_, path_).value();
  const auto reply = request(client, sequenced(1), 20ms);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(reply.error().message, HasSubstr("ipc://" + path_));
}

TEST_F(SocketTest, ARequestSkipsAnswersToOthers) {
  Socket server = Socket::bind_ipc(context_, path_).value();
  Socket client = Socket::connect_ipc(context_, path_).value();
  std::thread answering([&] {
    ASSERT_TRUE(server.wait_readable(20s));
    wire::Packet reply = sequenced(1);
    reply.peer = server.receive()->peer;
    EXPECT_EQ(server.send(reply), SendOutcome::kSent);
    wire::Packet right = sequenced(2);
    right.peer = reply.peer;
    EXPECT_EQ(server.send(right), SendOutcome::kSent);
  });
  const auto reply = request(client, sequenced(2), 20s);
  answering.join();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(wire::open_envelope(*reply)->seq, 2U);
}

TEST_F(SocketTest, TheLastReplyGetsOutBeforeTheSocketIsDestroyed) {
  Socket client = Socket::connect_ipc(context_, path_).value();
  ASSERT_EQ(client.send(sequenced(1)), SendOutcome::kSent);
  {
    Context own;
    Socket server = Socket::bind_ipc(own, path_).value();
    ASSERT_TRUE(server.wait_readable(20s));
    wire::Packet reply = sequenced(1);
    reply.peer = server.receive()->peer;
    ASSERT_EQ(server.send(reply), SendOutcome::kSent);
  }
  EXPECT_TRUE(client.wait_readable(20s));
}

TEST_F(SocketTest, WhereNoMoreFilesMayBeOpenTheErrorNamesTheLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<Socket> sockets;
  std::string why;
  while (why.empty() && sockets.size() < 100) {
    auto socket = Socket::connect_ipc(context_, path_);
    if (socket) sockets.push_back(std::move(*socket));
    if (!socket) why = socket.error().message;
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(why, HasSubstr("making a socket: Too many open files"));
  EXPECT_THAT(why, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace antdt::transport
