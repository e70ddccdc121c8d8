#include "core/os/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/loop.h"
#include "core/transport/socket.h"
#include "tests/core/transport/closed_port.h"

namespace antdt {
namespace {

using testing::HasSubstr;

bool has_ipv6() { return listen_tcp("::1", 0).has_value(); }

TEST(EndPoint, AnAddressOfVersion6StandsInBrackets) {
  EXPECT_EQ(host_of("10.0.0.1:7700"), "10.0.0.1");
  EXPECT_EQ(host_of("[::1]:7700"), "::1");
  EXPECT_EQ(host_of("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(host_of("::1"), "::1");
  EXPECT_EQ(host_of("host-a"), "host-a");
  EXPECT_EQ(with_port("::1", 7700), "[::1]:7700");
  EXPECT_EQ(with_port("10.0.0.1", 7700), "10.0.0.1:7700");
}

TEST(EndPoint, AnInvalidEndPointIsDetected) {
  for (const char* fine : {"10.0.0.1:7700", "host-a:1", "[::1]:7700", "[2001:db8::1]:65535"}) {
    EXPECT_TRUE(is_end_point(fine)) << fine;
  }
  for (const char* not_one : {"", "10.0.0.1", ":7700", "::1:7700", "[::1]", "[::1:7700", "[x]:7700",
                              "a:0", "a:65536", "a:7700x", "[10.0.0.1]:7700", "[]:7700"}) {
    EXPECT_FALSE(is_end_point(not_one)) << not_one;
  }
  EXPECT_TRUE(is_end_point("[::1]:0", true));
}

TEST(EndPoint, OneOfVersion6IsListenedAtAndConnectedTo) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  const auto listening = listen_tcp("::1", 0);
  ASSERT_TRUE(listening) << listening.error().message;
  const auto address = local_address(*listening);
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->starts_with("[::1]:")) << *address;
  EXPECT_TRUE(is_end_point(*address)) << *address;
  EXPECT_TRUE(try_to_connect(*address, std::chrono::seconds(20)));
  EXPECT_EQ(own_address_among({"192.0.2.1:7700", "[::1]:7701"}), "::1");
}

TEST(EndPoint, MessagesGoOverVersion6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  const SteadyClock clock;
  EventLoop loop(clock);
  transport::Context context;
  const auto keys = transport::make_key_pair("server");
  ASSERT_TRUE(keys);
  ASSERT_TRUE(context.serve_authentication(loop, [](const std::string&) { return "job"; }));
  auto server = transport::Socket::bind_tcp(context, "[::1]:0", *keys);
  ASSERT_TRUE(server) << server.error().message;
  const std::string at = server->endpoint().substr(std::string("tcp://").size());
  ASSERT_TRUE(is_end_point(at)) << at;
  auto client = transport::Socket::connect_tcp(context, at, *keys, keys->public_z85);
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_EQ(client->send({"", "", "an envelope", "a body"}), transport::SendOutcome::kSent);
  std::optional<wire::Packet> heard;
  loop.watch_socket(*server, [&] {
    heard = server->receive();
    if (heard) loop.stop();
  });
  loop.call_after(std::chrono::seconds(20), [&] { loop.stop(); });
  loop.run();
  loop.unwatch_socket(*server);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->user, "job");
  EXPECT_EQ(heard->body, "a body");
}

TEST(InterfaceAddress, AnUnknownInterfaceIsAnErrorThatNamesTheOthers) {
  const auto address = interface_address("nosuch0");
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message, HasSubstr("nosuch0"));
  EXPECT_THAT(address.error().message, HasSubstr("lo"));
}

TEST(OwnAddress, IsTheFirstHostThatIsThisMachineAsANumber) {
  EXPECT_EQ(own_address_among({"192.0.2.1:7700", "127.0.0.1:7701", "127.0.0.2:7701"}), "127.0.0.1");
  EXPECT_EQ(own_address_among({"localhost:7700"}).substr(0, 4), "127.");
  EXPECT_EQ(own_address_among({"192.0.2.1:7700"}), "");
  EXPECT_EQ(own_address_among({}), "");
}

TEST(TryToConnect, SaysWhetherSomebodyListensThereAndWhyNot) {
  const SteadyClock clock;
  EventLoop loop(clock);
  transport::Context context;
  const auto keys = transport::make_key_pair("server");
  ASSERT_TRUE(keys);
  ASSERT_TRUE(context.serve_authentication(loop, [](const std::string&) { return ""; }));
  {
    const auto server = transport::Socket::bind_tcp(context, "127.0.0.1:0", *keys);
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_TRUE(try_to_connect(server->endpoint().substr(std::string("tcp://").size()),
                               std::chrono::seconds(20)));
  }
  const ClosedPort closed;
  const std::string address = closed.address();
  const Status refused = try_to_connect(address, std::chrono::seconds(20));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(refused.error().message, HasSubstr(address + ": Connection refused"));
  EXPECT_EQ(try_to_connect("nowhere", std::chrono::seconds(1)).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace antdt
