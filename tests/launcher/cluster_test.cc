// Agents are asked before a job starts; the test plays one.
#include "launcher/config/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/os/user.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

// Listens with `agent`'s key for the keys in `authorized`, and answers hello.
class FakeAgent {
 public:
  FakeAgent(const transport::KeyPair& agent, const std::string& authorized, wire::Packet answer)
      : loop_(clock_), answer_(std::move(answer)) {
    EXPECT_TRUE(context_.serve_authentication(loop_, transport::AuthorizedKeys(authorized)));
    auto socket = transport::Socket::bind_tcp(context_, "127.0.0.1:0", agent);
    EXPECT_TRUE(socket) << (socket ? "" : socket.error().message);
    socket_.emplace(std::move(*socket));
    loop_.watch_socket(*socket_, [this] {
      while (const auto hello = socket_->receive()) {
        wire::Packet packet = answer_;
        packet.peer = hello->peer;
        [[maybe_unused]] const auto sent = socket_->send(packet);
      }
    });
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FakeAgent() {
    loop_.stop_from_any_thread();
    thread_.join();
    loop_.unwatch_socket(*socket_);
  }
  [[nodiscard]] std::string host_port() const {
    return socket_->endpoint().substr(std::string("tcp://").size());
  }

 private:
  SteadyClock clock_;
  transport::Context context_;
  EventLoop loop_;
  wire::Packet answer_;
  std::optional<transport::Socket> socket_;
  std::thread thread_;
};

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    job_ = transport::generate_key_pair(dir_ / "keys", "job").value();
    agent_ = transport::generate_key_pair(dir_ / "agent", "agent").value();
    copy_key("keys/job.pub", "agent/authorized/job.pub");
    copy_key("agent/agent.pub", "keys/agents/cluster.pub");
    cluster_.keys = dir_ / "keys";
  }
  void copy_key(const std::string& from, const std::string& to) {
    const std::string target = dir_ / to;
    ASSERT_TRUE(make_directories(target.substr(0, target.rfind('/'))));
    ASSERT_TRUE(write_file_atomic(target, read_file(dir_ / from).value()));
  }
  Result<std::vector<HostResources>> ask(Duration timeout) {
    ANTDT_TRY(const ClusterKeys keys, load_cluster_keys(cluster_));
    transport::Context context;
    return ask_agents(context, cluster_, keys, timeout);
  }

  TempDir dir_;
  transport::KeyPair job_, agent_;
  ClusterSection cluster_;
};

TEST_F(ClusterTest, AgentsSayWhatTheyHaveFree) {
  wire::AgentWelcome welcome;
  welcome.version = 1;
  welcome.cpus = 3;
  welcome.memory_bytes = 1 << 30;
  FakeAgent agent(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  cluster_.hosts = {agent.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 1U);
  EXPECT_EQ(hosts->front().name, agent.host_port());
  EXPECT_EQ(hosts->front().cpus, 3);
}

TEST_F(ClusterTest, DrainedHostsHaveNothingFree) {
  wire::AgentWelcome welcome;
  FakeAgent good(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  welcome.drain = wire::Drain{"root@h1", "new memory"};
  FakeAgent drained(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  cluster_.hosts = {drained.host_port(), good.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 1U);
  EXPECT_EQ(hosts->front().name, good.host_port());
}

TEST_F(ClusterTest, AnAgentThatIsNotThereIsNamedWithWhatToCheck) {
  cluster_.hosts = {"127.0.0.1:1"};
  const auto hosts = ask(std::chrono::milliseconds(100));
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(hosts.error().message, HasSubstr("from 127.0.0.1:1. Is antdtd running there"));
}

TEST_F(ClusterTest, AnAgentThatDoesNotKnowTheKeyDoesNotAnswer) {
  FakeAgent agent(agent_, dir_ / "nobody", wire::make_packet(wire::AgentWelcome{}));
  cluster_.hosts = {agent.host_port()};
  EXPECT_EQ(ask(std::chrono::milliseconds(300)).error().kind, ErrorKind::kUnreachable);
}

TEST_F(ClusterTest, ARefusalIsPassedOnWithItsReason) {
  FakeAgent agent(agent_, dir_ / "agent/authorized",
                  wire::make_packet(wire::Refused{wire::RefusalCode::kVersion,
                                                  "speaks 2 to 3, you speak 1 to 1"}));
  cluster_.hosts = {agent.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(hosts.error().message, HasSubstr("speaks 2 to 3, you speak 1 to 1"));
}

TEST_F(ClusterTest, EveryHostThatWouldStartWorkersAsAnotherUserIsNamedWithTheMend) {
  wire::AgentWelcome welcome;
  welcome.user = own_user().name;
  FakeAgent good(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  welcome.user = "antdt";
  FakeAgent one(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  FakeAgent other(agent_, dir_ / "agent/authorized", wire::make_packet(welcome));
  cluster_.hosts = {one.host_port(), good.host_port(), other.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(hosts.error().message, HasSubstr(one.host_port() + ": as 'antdt'"));
  EXPECT_THAT(hosts.error().message, HasSubstr(other.host_port() + ": as 'antdt'"));
  EXPECT_THAT(hosts.error().message, testing::Not(HasSubstr(good.host_port())));
  EXPECT_THAT(hosts.error().message, HasSubstr("run antdtd as root"));
  cluster_.hosts = {good.host_port()};
  EXPECT_TRUE(ask(std::chrono::seconds(10)));
}

TEST_F(ClusterTest, AllThatRefuseAreNamed) {
  const auto refuse = [](const char* why) {
    return wire::make_packet(wire::Refused{wire::RefusalCode::kUser, why});
  };
  FakeAgent one(agent_, dir_ / "agent/authorized", refuse("it serves alice"));
  FakeAgent other(agent_, dir_ / "agent/authorized", refuse("it serves bob"));
  cluster_.hosts = {one.host_port(), other.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(hosts.error().message, HasSubstr(one.host_port() + " refuses: it serves alice"));
  EXPECT_THAT(hosts.error().message, HasSubstr(other.host_port() + " refuses: it serves bob"));
}

TEST_F(ClusterTest, EveryMissingKeyFileIsNamed) {
  cluster_.keys = dir_ / "empty";
  cluster_.hosts = {"h1:7700", "h2:7700"};
  const auto keys = load_cluster_keys(cluster_);
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(keys.error().message, HasSubstr((dir_ / "empty/job.key") + ": make it with"));
  EXPECT_THAT(keys.error().message, HasSubstr((dir_ / "empty/agents/h1.pub") + ": copy agent.pub"));
  EXPECT_THAT(keys.error().message, HasSubstr("agents/h2.pub"));
}

TEST_F(ClusterTest, AKeyOfOneHostGoesBeforeTheClusters) {
  const auto own = transport::generate_key_pair(dir_ / "h1", "agent").value();
  copy_key("h1/agent.pub", "keys/agents/h1.pub");
  cluster_.hosts = {"h1:7700", "h2:7700"};
  const auto keys = load_cluster_keys(cluster_);
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ(keys->agents[0].z85, own.public_z85);
  EXPECT_EQ(keys->agents[1].z85, agent_.public_z85);
}

}  // namespace
}  // namespace antdt::launcher
