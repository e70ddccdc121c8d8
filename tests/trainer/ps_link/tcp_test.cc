// Servers of several hosts: reached over tcp, by the processes that the job daemon names.
#include <future>

#include "core/loop.h"
#include "tests/core/transport/closed_port.h"
#include "tests/trainer/ps/server_fixture.h"

namespace antdt::ps {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTwoHosts =
    R"({"cluster": {"hosts": ["127.0.0.1:7700", "127.0.0.1:7701"], "interface": "", "ports": ""}})";
constexpr Generation kFirst{1};

class PsTcpTest : public PsServerAgentTest {
 protected:
  PsTcpTest() {
    config_ = kTwoHosts;
    EXPECT_TRUE(make_directories(run_dir()));
    EXPECT_TRUE(write_file_atomic(run_dir() + "/job.json",
                                  fmt::format(R"({{"job": {{"id": "{}"}}}})", kJob)));
    for (std::uint32_t i = 0; i < 2; ++i) own_.push_back(transport::make_key_pair("w").value());
  }
  // Two servers serve two workers, whose keys they know.
  void begin() {
    await_joins();
    for (std::uint32_t i = 0; i < 2; ++i) {
      serve_.keys.push_back({w(i).worker, w(i).attempt, own_[i].public_z85});
    }
    serve(kFirst);
  }
  std::unique_ptr<WorkerLink> open(Member self, const transport::KeyPair& own) {
    auto made = connect(self, kFirst, own);
    EXPECT_TRUE(made);
    const auto opened = (*made)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*made);
  }
  // Whether any answer comes to a key. A worker that connects afterwards, and is answered, shows
  // that there was enough time.
  bool is_answered(const transport::KeyPair& own, Member self) {
    auto link = transport::Socket::connect_tcp(context_, tcp_address(serve_.servers[0]), own,
                                               server_keys_[0]);
    EXPECT_TRUE(link) << link.error().message;
    wire::Envelope envelope;
    envelope.worker = self.worker;
    envelope.attempt = self.attempt;
    envelope.generation = kFirst;
    EXPECT_EQ(link->send(wire::make_packet(envelope, wire::PsIdle{})),
              transport::SendOutcome::kSent);
    const auto other = open(w(0), own_[0]);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(other->pull({{0, keys_}}, 0));
    return link->receive().has_value();
  }

  std::vector<transport::KeyPair> own_;  // of the workers
};

TEST_F(PsTcpTest, WorkersAndServersSpeakTcpAndEveryPushCountsOnce) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  begin();
  EXPECT_THAT(serve_.servers, testing::Each(StartsWith("tcp://127.0.0.1:")));
  const auto own = open(w(0), own_[0]);
  const auto other = open(w(1), own_[1]);
  for (std::uint64_t step = 0; step < 5; ++step) {
    auto together = std::async(std::launch::async, [&] { return push(*other, step + 1, step); });
    const auto decided = push(*own, step + 1, step);
    ASSERT_TRUE(decided) << decided.error().message;
    EXPECT_EQ(decided->status, wire::PsFate::kApplied);
    ASSERT_TRUE(together.get());
  }
  EXPECT_EQ(value(*own, 5), 10);
  leave(2, 0);
  EXPECT_EQ(first.outcome().value_or(-1), 0);
}

TEST_F(PsTcpTest, AKeyThatNobodyNamedGetsNothing) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  begin();
  EXPECT_FALSE(is_answered(transport::make_key_pair("stranger").value(), w(1)));
  EXPECT_TRUE(is_answered(own_[1], w(1)));
  leave(2, 0);
}

TEST_F(PsTcpTest, AWorkerThatHasLeftIsNotLetInAgain) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  begin();
  serve_.leaving = {serve_.workers.back()};
  serve_.workers.pop_back();
  serve_.keys.pop_back();
  serve(kFirst);
  EXPECT_FALSE(is_answered(own_[1], w(1)));
  leave(2, 0);
}

TEST_F(PsTcpTest, NobodySpeaksInAnothersName) {
  RealServer first(path(), 0);
  RealServer second(path(), 1);
  begin();
  const auto false_name = connect(w(0), kFirst, own_[1]);
  ASSERT_TRUE(false_name);
  const auto refused = (*false_name)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("that of w1.1, not of attempt 1 of w0"));
  const auto late = connect(w(1), Generation{7}, own_[1]);
  ASSERT_TRUE(late);
  const auto stale = (*late)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind, ErrorKind::kAborted) << "of a group that is over";
  leave(2, 0);
}

TEST_F(PsTcpTest, ARunDirectoryOfAnotherJobIsNamedWithTheWayOut) {
  ASSERT_TRUE(write_file_atomic(run_dir() + "/job.json", R"({"job": {"id": "another"}})"));
  RealServer server(path(), 0);
  await<wire::Hello>(0);
  const auto outcome = server.outcome();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kRefused) << "on another host it may do";
  EXPECT_THAT(outcome.error().message,
              testing::AllOf(HasSubstr(run_dir() + " on here is the run directory of another job "
                                                   "(another)"),
                             HasSubstr("--run-dir")));
}

TEST(RunDirectoryOfAServer, IsCreatedOnAHostThatLacksIt) {
  const TempDir host;
  const std::string run_dir = host / "runs/run1";
  EXPECT_TRUE(check_run_directory(run_dir, "j1", "hostb"));
  EXPECT_TRUE(std::filesystem::is_directory(run_dir + "/checkpoints"));
  EXPECT_TRUE(check_run_directory(run_dir, "j1", "hostb")) << "nor does it matter who was first";
}

TEST(RunDirectoryOfAServer, ThatCannotBeMadeIsNamedWithItsHost) {
  const TempDir host;
  ASSERT_TRUE(write_file_atomic(host / "runs", "a file"));
  const Status checked = check_run_directory(host / "runs/run1", "j1", "hostb");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(checked.error().message,
              testing::AllOf(HasSubstr("parameter servers on hostb"), HasSubstr("--run-dir")));
}

TEST_F(PsTcpTest, AServerThatCannotBeReachedIsNamedWithItsAddress) {
  const ClosedPort closed;
  const std::string address = "tcp://" + closed.address();
  Peers peers{kFirst, {address}, Consistency::kBarrier, kPatience};
  peers.again = std::chrono::milliseconds(10);
  peers.reach = std::chrono::milliseconds(20);
  peers.keys = {own_[0].public_z85};
  peers.own = own_[1];
  const auto link = WorkerLink::connect(context_, peers, w(0));
  ASSERT_TRUE(link);
  const auto opened = (*link)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(opened.error().message, HasSubstr("cannot reach parameter server s0"));
  EXPECT_THAT(opened.error().message, HasSubstr(tcp_address(address) + ": Connection refused"));
}

class ListenTest : public testing::Test {
 protected:
  ListenTest() {
    EXPECT_TRUE(context_.serve_authentication(loop_, [](const std::string&) { return ""; }));
  }
  Result<Listening> at(const std::string& ports) {
    ANTDT_TRY(const ListenConfig config,
              parse_listen_config(fmt::format(
                  R"({{"cluster": {{"hosts": ["127.0.0.1:1", "127.0.0.1:2"], "ports": "{}"}}}})",
                  ports)));
    return listen(context_, environment_, config, keys_);
  }

  SteadyClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  const transport::KeyPair keys_ = transport::make_key_pair("s0").value();
  const client::Environment environment_{"/run/workers.sock", "job-1", {{'s', 0}, Attempt{1}}};
};

TEST_F(ListenTest, APortThatIsInUseIsNotTheEnd) {
  const auto any = at("");
  ASSERT_TRUE(any) << any.error().message;
  const auto taken = std::stoi(any->endpoint.substr(any->endpoint.rfind(':') + 1));
  const auto refused = at(fmt::format("{}-{}", taken, taken));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr(fmt::format("[cluster] ports = \"{}-{}\"", taken, taken)));
  const int first = std::min(taken, 65535 - 100);
  const auto next = at(fmt::format("{}-{}", first, first + 100));
  ASSERT_TRUE(next) << next.error().message;
  const auto got = std::stoi(next->endpoint.substr(next->endpoint.rfind(':') + 1));
  EXPECT_NE(got, taken);
  EXPECT_TRUE(first <= got && got <= first + 100) << got;
}

TEST_F(ListenTest, WhereNoneOfTheHostsIsThisMachineTheInterfaceHasToBeNamed) {
  const auto config =
      parse_listen_config(R"({"cluster": {"hosts": ["192.0.2.1:1", "192.0.2.1:2"]}})");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->over_tcp());
  const auto bound = listen(context_, environment_, *config, keys_);
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, HasSubstr("[cluster] interface"));
}

TEST_F(ListenTest, OnOneMachineServersListenOnlyLocally) {
  for (const char* config :
       {"{}", R"({"cluster": {"hosts": []}})", R"({"cluster": {"hosts": ["10.0.0.1:7700"]}})"}) {
    const auto read = parse_listen_config(config);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_FALSE(read->over_tcp()) << config;
  }
  EXPECT_FALSE(parse_listen_config("{"));
  EXPECT_FALSE(parse_listen_config(R"({"cluster": {"ports": "80-"}})"));
}

}  // namespace
}  // namespace antdt::ps
