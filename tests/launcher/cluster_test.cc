// Agents are asked before a job starts; the test plays one.
#include "launcher/config/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/os/user.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"
#include "launcher/config/agent_address.h"
#include "launcher/start/admin_link.h"
#include "launcher/start/job_link.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

// Listens with `agent`'s key for the keys in `authorized`, and answers each hello with the next of
// `answers`, and then with the last.
class FakeAgent {
 public:
  FakeAgent(const transport::KeyPair& agent, const std::string& authorized, wire::Packet answer)
      : FakeAgent(agent, authorized, std::vector{std::move(answer)}) {}
  FakeAgent(const transport::KeyPair& agent, const std::string& authorized,
            std::vector<wire::Packet> answers)
      : loop_(clock_), answers_(std::move(answers)) {
    EXPECT_TRUE(context_.serve_authentication(loop_, transport::AuthorizedKeys(authorized)));
    auto socket = transport::Socket::bind_tcp(context_, "127.0.0.1:0", agent);
    EXPECT_TRUE(socket) << (socket ? "" : socket.error().message);
    socket_.emplace(std::move(*socket));
    loop_.watch_socket(*socket_, [this] {
      while (const auto hello = socket_->receive()) {
        wire::Packet packet = answers_[std::min(next_++, answers_.size() - 1)];
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
  std::vector<wire::Packet> answers_;
  std::size_t next_ = 0;
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
    return ask_agents(context, cluster_, keys, {timeout, timeout});
  }

  TempDir dir_;
  transport::KeyPair job_, agent_;
  ClusterSection cluster_;
};

TEST_F(ClusterTest, AnAgentIsNamedWithOrWithoutTheUsualPort) {
  for (const auto& [name, end_point] : std::vector<std::pair<std::string, std::string>>{
           {"n1", "n1:7700"},
           {"n1:7800", "n1:7800"},
           {"10.0.0.1", "10.0.0.1:7700"},
           {"2001:db8::1", "[2001:db8::1]:7700"},
           {"[2001:db8::1]", "[2001:db8::1]:7700"},
           {"[2001:db8::1]:7800", "[2001:db8::1]:7800"}}) {
    EXPECT_EQ(agent_end_point(name).value_or("refused"), end_point);
  }
  for (const char* name : {"", "n1:", "n1:port", "n1:70000", ":7700"}) {
    const auto refused = agent_end_point(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("write host or host:port (default port 7700)"));
  }
}

TEST_F(ClusterTest, ANameWithoutAnAddressIsSaidToHaveNone) {
  transport::Context context;
  const auto link = AdminLink::open(context, "nosuch.invalid", cluster_.keys);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(link.error().message, HasSubstr("the name nosuch.invalid has no address: "));
}

TEST_F(ClusterTest, AnAgentThatDoesNotAnswerAnOperatorIsNamedWithWhatToCheck) {
  transport::Context context;
  auto agent = AdminLink::open(context, "127.0.0.1:1", cluster_.keys);
  ASSERT_TRUE(agent) << agent.error().message;
  const auto silent = agent->drain({}, std::chrono::milliseconds(100));
  EXPECT_EQ(silent.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(
      silent.error().message,
      HasSubstr("no answer within 0.1 s from 127.0.0.1:1. `antdt doctor --hosts 127.0.0.1:1 "
                "--keys " +
                cluster_.keys + "` says whether antdtd, the keys or a firewall is the reason"));
  auto job = JobLink::open_through(context, "127.0.0.1:1", cluster_.keys, "j-1");
  ASSERT_TRUE(job) << job.error().message;
  const auto status = job->status(0, std::chrono::milliseconds(100));
  EXPECT_THAT(status.error().message,
              HasSubstr("`antdt doctor --hosts 127.0.0.1:1 --keys " + cluster_.keys + "` says"));
  EXPECT_THAT(status.error().message, HasSubstr(". If antdt jobs --agent 127.0.0.1:1 answers"));
}

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

// Its driver wakes while the job is prepared.
TEST_F(ClusterTest, DevicesThatAnAgentHasNotLookedAtYetAreWaitedFor) {
  wire::AgentWelcome knows_not;
  knows_not.host_devices.pending = true;
  wire::AgentWelcome knows;
  knows.devices = knows.host_devices.free = 8;
  FakeAgent agent(
      agent_, dir_ / "agent/authorized",
      {wire::make_packet(knows_not), wire::make_packet(knows_not), wire::make_packet(knows)});
  FakeAgent other(agent_, dir_ / "agent/authorized", wire::make_packet(knows));
  cluster_.hosts = {agent.host_port(), other.host_port()};
  const auto hosts = ask(std::chrono::seconds(10));
  ASSERT_TRUE(hosts) << hosts.error().message;
  for (const HostResources& host : *hosts) EXPECT_EQ(host.gpus, 8U) << host.name;
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
  EXPECT_THAT(hosts.error().message,
              HasSubstr("from 127.0.0.1:1. `antdt doctor --hosts 127.0.0.1:1 --keys " +
                        cluster_.keys + "` says"));
}

TEST_F(ClusterTest, ARunGoesOnWithoutSomeOfItsAgentsAndNotWithoutAll) {
  FakeAgent agent(agent_, dir_ / "agent/authorized", wire::make_packet(wire::AgentWelcome{}));
  const auto absent = [&](std::vector<std::string> hosts) -> Result<std::vector<std::string>> {
    cluster_.hosts = std::move(hosts);
    ANTDT_TRY(const ClusterKeys keys, load_cluster_keys(cluster_));
    transport::Context context;
    return absent_agents(context, cluster_, keys, std::chrono::seconds(1));
  };
  const auto some = absent({"127.0.0.1:1", agent.host_port()});
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_THAT(*some, testing::ElementsAre("127.0.0.1:1"));
  const auto none = absent({"127.0.0.1:1", "127.0.0.1:2"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(none.error().message,
              HasSubstr("from 127.0.0.1:1, 127.0.0.1:2. `antdt doctor --hosts "
                        "127.0.0.1:1,127.0.0.1:2 --keys " +
                        cluster_.keys + "` says"));
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
  EXPECT_THAT(keys.error().message, HasSubstr((dir_ / "empty") + " has no job.key: copy it from"));
  EXPECT_THAT(keys.error().message,
              HasSubstr((dir_ / "empty") + " has no key of the agent 'h1' (it has: none)"));
  EXPECT_THAT(keys.error().message, HasSubstr("has no key of the agent 'h2'"));
}

TEST_F(ClusterTest, AHostOfAnotherNameThanItsKeyIsToldWhichKeysThereAre) {
  transport::generate_key_pair(dir_ / "of", "agent").value();
  copy_key("of/agent.pub", "named/agents/node1.pub");
  copy_key("of/agent.pub", "named/agents/node2.pub");
  transport::generate_key_pair(dir_ / "named", "job").value();
  cluster_.keys = dir_ / "named";
  cluster_.hosts = {"h1:7700", "node2:7700"};
  const auto keys = load_cluster_keys(cluster_);
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().message,
              HasSubstr("has no key of the agent 'h1' (it has: node1, node2). Name the host in "
                        "cluster.hosts as in `antdt keygen --agent NAME`"));
  EXPECT_THAT(keys.error().message, Not(HasSubstr("'node2'")));
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
