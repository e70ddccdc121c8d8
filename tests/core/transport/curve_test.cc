// Tests which peers a CURVE-protected tcp socket accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"

namespace antdt::transport {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

wire::Packet from(const std::string& who) { return wire::make_packet(wire::Hello{1, 1, who}); }

// A server with a directory of authorised keys, and clients on one loop.
class CurveTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_directories(directory_ / "authorized"));
    authorize(client_keys_.name);
    const Status served =
        context_.serve_authentication(loop_, AuthorizedKeys(directory_ / "authorized"));
    ASSERT_TRUE(served) << served.error().message;
    auto bound = Socket::bind_tcp(context_, "127.0.0.1:0", server_keys_);
    ASSERT_TRUE(bound) << bound.error().message;
    server_.emplace(std::move(*bound));
    loop_.watch_socket(*server_, [this] {
      while (const auto packet = server_->receive()) {
        got_.push_back(wire::decode<wire::Hello>(packet->body)->software + " as " + packet->user);
        if (stop_when_ && stop_when_()) loop_.stop();
      }
    });
  }

  KeyPair make(const std::string& name) {
    return generate_key_pair(directory_ / "made", name).value();
  }
  void authorize(const std::string& name) {
    const std::string text = read_file(directory_ / "made/" + name + ".pub").value();
    ASSERT_TRUE(write_file_atomic(directory_ / "authorized/" + name + ".pub", text));
  }
  Socket connect(const KeyPair& keys, const std::string& server_key) {
    const std::string address = server_->endpoint().substr(std::string("tcp://").size());
    return Socket::connect_tcp(context_, address, keys, server_key).value();
  }
  void run_until(std::function<bool()> condition) {
    stop_when_ = std::move(condition);
    const TimerId limit = loop_.call_after(20s, [this] {
      ADD_FAILURE() << "waited for too long";
      loop_.stop();
    });
    loop_.run();
    loop_.cancel(limit);
  }

  TempDir directory_;
  SteadyClock clock_;
  EventLoop loop_{clock_};
  Context context_;
  KeyPair server_keys_ = make("server");
  KeyPair client_keys_ = make("client");
  std::optional<Socket> server_;
  std::vector<std::string> got_;
  std::function<bool()> stop_when_;
};

TEST_F(CurveTest, AnAuthorizedKeyGetsThroughUnderItsName) {
  Socket client = connect(client_keys_, server_keys_.public_z85);
  ASSERT_EQ(client.send(from("right")), SendOutcome::kSent);
  run_until([this] { return !got_.empty(); });
  EXPECT_THAT(got_, ElementsAre("right as client"));
}

// The wrong clients connect first and retry all the time. Twenty messages of a right client arrive
// meanwhile, which shows that the server could be reached.
TEST_F(CurveTest, AnUnknownKeyAndAWrongServerKeyGetNothing) {
  const KeyPair stranger = make("stranger");
  Socket unknown = connect(stranger, server_keys_.public_z85);
  Socket misled = connect(client_keys_, stranger.public_z85);
  ASSERT_EQ(unknown.send(from("unknown")), SendOutcome::kSent);
  ASSERT_EQ(misled.send(from("misled")), SendOutcome::kSent);
  Socket right = connect(client_keys_, server_keys_.public_z85);
  std::function<void()> send_again = [&] {
    EXPECT_EQ(right.send(from("right")), SendOutcome::kSent);
    loop_.call_after(10ms, send_again);
  };
  send_again();
  run_until([this] { return got_.size() >= 20; });
  EXPECT_THAT(got_, testing::Each("right as client"));
  EXPECT_EQ(unknown.receive(), std::nullopt);
  EXPECT_EQ(misled.receive(), std::nullopt);
}

TEST_F(CurveTest, AKeyAuthorizedLaterGetsInWithoutARestart) {
  const KeyPair late = make("late");
  Socket client = connect(late, server_keys_.public_z85);
  ASSERT_EQ(client.send(from("late")), SendOutcome::kSent);
  Socket right = connect(client_keys_, server_keys_.public_z85);
  ASSERT_EQ(right.send(from("right")), SendOutcome::kSent);
  run_until([this] { return !got_.empty(); });
  EXPECT_THAT(got_, ElementsAre("right as client"));
  authorize("late");
  const MonoTime authorized = clock_.now();
  run_until([this] { return got_.size() == 2; });
  EXPECT_EQ(got_.back(), "late as late");
  EXPECT_LT(clock_.now() - authorized, kHandshake / 2) << "it waited, and was not refused";
}

TEST_F(CurveTest, APeerThatWaitsForLongerThanAHandshakeTakesTriesAgain) {
  const KeyPair late = make("late");
  Socket client = connect(late, server_keys_.public_z85);
  ASSERT_EQ(client.send(from("late")), SendOutcome::kSent);
  loop_.call_after(kHandshake + 500ms, [&] { authorize("late"); });
  run_until([this] { return !got_.empty(); });
  EXPECT_THAT(got_, ElementsAre("late as late"));
}

TEST_F(CurveTest, RepliesReachTheClientTheyAreFor) {
  Socket client = connect(client_keys_, server_keys_.public_z85);
  loop_.watch_socket(*server_, [this] {
    while (auto packet = server_->receive()) {
      EXPECT_EQ(server_->send(*packet), SendOutcome::kSent);
    }
  });
  std::string answer;
  loop_.watch_socket(client, [&] {
    while (const auto packet = client.receive()) {
      answer = wire::decode<wire::Hello>(packet->body)->software;
      loop_.stop();
    }
  });
  ASSERT_EQ(client.send(from("question")), SendOutcome::kSent);
  run_until(nullptr);
  EXPECT_EQ(answer, "question");
}

TEST_F(CurveTest, APortInUseIsAnErrorThatNamesIt) {
  const std::string address = server_->endpoint().substr(std::string("tcp://").size());
  const auto second = Socket::bind_tcp(context_, address, server_keys_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(address));
}

TEST(TcpTest, TheServerDecidesWhichKeysMayConnect) {
  const SteadyClock clock;
  EventLoop loop(clock);
  Context context;
  const KeyPair own = make_key_pair("server").value();
  const KeyPair known = make_key_pair("known").value();
  const KeyPair stranger = make_key_pair("stranger").value();
  ASSERT_TRUE(context.serve_authentication(loop, [&](const std::string& key) -> std::string {
    return key == known.public_z85 ? "w1.2" : "";
  }));
  auto server = Socket::bind_tcp(context, "127.0.0.1:0", own);
  ASSERT_TRUE(server) << server.error().message;
  const std::string address = server->endpoint().substr(std::string("tcp://").size());
  Socket wrong = Socket::connect_tcp(context, address, stranger, own.public_z85).value();
  ASSERT_EQ(wrong.send(from("stranger")), SendOutcome::kSent);
  Socket right = Socket::connect_tcp(context, address, known, own.public_z85).value();
  ASSERT_EQ(right.send(from("known")), SendOutcome::kSent);
  std::vector<std::string> users;
  loop.watch_socket(*server, [&] {
    while (const auto packet = server->receive()) users.push_back(packet->user);
    loop.stop();
  });
  const TimerId limit = loop.call_after(20s, [&] { loop.stop(); });
  loop.run();
  loop.cancel(limit);
  loop.unwatch_socket(*server);
  EXPECT_THAT(users, ElementsAre("w1.2"));
}

TEST(TcpTest, ListeningWithoutAuthenticationIsRefusedAndSaysHowToMendIt) {
  const TempDir directory;
  const KeyPair keys = generate_key_pair(directory.path(), "server").value();
  Context context;
  const auto bound = Socket::bind_tcp(context, "127.0.0.1:0", keys);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(bound.error().message, HasSubstr("antdt keygen"));
}

TEST(TcpTest, AnInvalidAddressIsAnError) {
  const TempDir directory;
  const KeyPair keys = generate_key_pair(directory.path(), "client").value();
  Context context;
  const auto socket = Socket::connect_tcp(context, "no port", keys, keys.public_z85);
  ASSERT_FALSE(socket);
  EXPECT_THAT(socket.error().message, HasSubstr("host:port"));
  EXPECT_FALSE(Socket::connect_tcp(context, "127.0.0.1:1", keys, "not a key"));
}

}  // namespace
}  // namespace antdt::transport
