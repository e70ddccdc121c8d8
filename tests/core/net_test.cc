#include "core/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/loop.h"
#include "core/transport/socket.h"
#include "tests/core/closed_port.h"

namespace antdt {
namespace {

using testing::HasSubstr;

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
