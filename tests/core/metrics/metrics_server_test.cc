#include "core/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "core/os/net.h"

namespace antdt::metrics {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// A client on the same loop as the server: what it sends, and what it gets until the end.
class Client {
 public:
  Client(EventLoop& loop, const std::string& address) : loop_(loop) {
    auto fd = start_to_connect(address);
    EXPECT_TRUE(fd) << fd.error().message;
    fd_ = std::move(*fd);
    loop_.watch_writable_fd(fd_.get(), [this] {
      connected_ = connect_error(fd_) == 0;
      loop_.watch_fd(fd_.get(), [this] { read(); });
    });
  }
  ~Client() { loop_.unwatch_fd(fd_.get()); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const std::string& got() const { return got_; }
  void send(const std::string& bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void stop_reading() { loop_.unwatch_fd(fd_.get()); }

 private:
  void read() {
    std::array<char, 65536> bytes{};
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) return void(got_.append(bytes.data(), static_cast<std::size_t>(got)));
    ended_ = true;
    loop_.unwatch_fd(fd_.get());
    fd_.close();
  }

  EventLoop& loop_;
  OwnedFd fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string got_;
};

class MetricsServerTest : public testing::Test {
 protected:
  MetricsServerTest() {
    loop_.at_turn_end([this] {
      if (awaited_ && awaited_()) loop_.stop();
    });
  }

  void serve(Duration patience = MetricsServer::kPatience) {
    auto server = MetricsServer::listen(
        loop_, "127.0.0.1:0",
        [this] {
          ++made_;
          return content_;
        },
        patience);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  Client& client() { return clients_.emplace_back(loop_, server_->address()); }
  void await(const std::function<bool()>& condition) {
    awaited_ = condition;
    bool late = false;
    const TimerId deadline = loop_.call_after(20s, [&] {
      late = true;
      loop_.stop();
    });
    if (!condition()) loop_.run();
    loop_.cancel(deadline);
    awaited_ = nullptr;
    EXPECT_FALSE(late) << "not within 20 s";
  }
  std::string ask(const std::string& request) {
    Client& asker = client();
    await([&] { return asker.connected(); });
    asker.send(request);
    await([&] { return asker.ended(); });
    return asker.got();
  }

  SteadyClock clock_;
  EventLoop loop_{clock_};
  std::function<bool()> awaited_;
  std::string content_ = "a 1\n";
  int made_ = 0;
  std::unique_ptr<MetricsServer> server_;
  std::deque<Client> clients_;
};

constexpr const char* kRequest = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(MetricsServerTest, ARequestIsAnsweredAndTheConnectionClosed) {
  serve();
  const std::string got = ask(kRequest);
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(got.ends_with("\r\n\r\na 1\n")) << got;
}

TEST_F(MetricsServerTest, ARequestThatComesInPiecesIsAnswered) {
  serve();
  Client& slow = client();
  await([&] { return slow.connected(); });
  slow.send("GET /met");
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK")) << "others are served meanwhile";
  slow.send("rics HTTP/1.1\r\n\r\n");
  await([&] { return slow.ended(); });
  EXPECT_THAT(slow.got(), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(MetricsServerTest, ABrokenRequestIsRefusedAndTheNextOneServed) {
  serve();
  EXPECT_THAT(ask("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("DELETE /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nA: " + std::string(20'000, 'a')),
              StartsWith("HTTP/1.1 431 "))
      << "what is not read any more does not take the answer away";
  EXPECT_EQ(made_, 0);
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(MetricsServerTest, WhoSendsNothingIsDroppedAfterAWhile) {
  serve(/*patience=*/50ms);
  Client& silent = client();
  await([&] { return silent.ended(); });
  EXPECT_EQ(silent.got(), "");
}

TEST_F(MetricsServerTest, WhoDoesNotReadTheAnswerIsDroppedAfterAWhile) {
  content_.assign(64 << 20, 'x');  // more than the sockets hold
  serve(/*patience=*/2s);
  Client& stuck = client();
  await([&] { return stuck.connected() && server_->connections() == 1; });
  stuck.send(kRequest);
  stuck.stop_reading();
  await([&] { return made_ == 1; });
  await([&] { return server_->connections() == 0; });
}

TEST_F(MetricsServerTest, ALargeAnswerArrivesWhole) {
  content_.assign(8 << 20, 'x');
  serve();
  const std::string got = ask(kRequest);
  EXPECT_THAT(got.substr(0, 200), HasSubstr("Content-Length: 8388608\r\n"));
  EXPECT_EQ(got.size() - got.find("\r\n\r\n") - 4, content_.size());
}

TEST_F(MetricsServerTest, TheOldestOfTooManyConnectionsMakesRoom) {
  serve();
  Client& oldest = client();
  await([&] { return oldest.connected(); });
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK"));  // so the first was accepted
  for (std::size_t i = 0; i < MetricsServer::kMostConnections; ++i) client();
  await([&] { return oldest.ended(); });
  EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(MetricsServerTest, TheTextIsNotMadeForEachRequest) {
  serve();
  const MonoTime begin = loop_.now();
  for (int i = 0; i < 20; ++i) EXPECT_THAT(ask(kRequest), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_LE(made_, 1 + (loop_.now() - begin) / 500ms);
}

TEST_F(MetricsServerTest, APortThatIsTakenIsAnErrorThatNamesIt) {
  serve();
  const auto second = MetricsServer::listen(loop_, server_->address(), [] { return ""; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
  EXPECT_THAT(second.error().message, HasSubstr("Address already in use"));
}

TEST_F(MetricsServerTest, WhatIsNoAddressIsAnErrorThatShowsOne) {
  for (const char* wrong :
       {"", "9400", "localhost", "1.2.3.4:99999", "no.such.host.invalid:9400"}) {
    const auto server = MetricsServer::listen(loop_, wrong, [] { return ""; });
    ASSERT_FALSE(server) << wrong;
    EXPECT_EQ(server.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace antdt::metrics
