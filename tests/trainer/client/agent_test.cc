// The client against a scripted agent, over a real socket.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "trainer/client/client.h"
#include "trainer/client/loose.h"

namespace antdt::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr Duration kLong = seconds(30);

// An agent and a job daemon in one: calls `script` for each message.
class FakeAgent {
 public:
  class Reply {
   public:
    Reply(transport::Socket& socket, std::string peer, wire::Envelope envelope)
        : socket_(socket), peer_(std::move(peer)), envelope_(std::move(envelope)) {}
    template <class T>
    void send(const T& message, Generation generation = Generation{1}) {
      wire::Envelope envelope = envelope_;
      envelope.generation = generation;
      wire::Packet packet = wire::make_packet(envelope, message);
      packet.peer = peer_;
      ASSERT_EQ(socket_.send(packet), transport::SendOutcome::kSent);
    }

   private:
    transport::Socket& socket_;
    std::string peer_;
    wire::Envelope envelope_;
  };
  using Script = std::function<void(const wire::Envelope&, const std::string& body, Reply&)>;

  explicit FakeAgent(Script script) : script_(std::move(script)) {
    auto socket = transport::Socket::bind_ipc(context_, environment().socket);
    EXPECT_TRUE(socket) << socket.error().message;
    thread_ = std::thread([this, s = std::move(*socket)]() mutable { run(s); });
  }
  ~FakeAgent() {
    quit_ = true;
    thread_.join();
  }
  [[nodiscard]] Environment environment() const {
    return {directory_ / "s", "job-1", Member{WorkerId{'w', 0}, Attempt{1}}, "antdt"};
  }

 private:
  void run(transport::Socket& socket) {
    while (!quit_) {
      if (!socket.wait_readable(milliseconds(5))) continue;
      while (auto packet = socket.receive()) {
        const auto envelope = wire::open_envelope(*packet);
        ASSERT_TRUE(envelope);
        Reply reply(socket, packet->peer, *envelope);
        if (envelope->kind == "hello") {
          reply.send(wire::WorkerWelcome{1, "host-a", "/runs/1", R"({"job": 1})"}, Generation{});
        }
        script_(*envelope, packet->body, reply);
      }
    }
  }

  TempDir directory_;
  transport::Context context_;
  Script script_;
  std::atomic<bool> quit_ = false;
  std::thread thread_;
};

void nothing(const wire::Envelope&, const std::string&, FakeAgent::Reply&) {}

std::unique_ptr<Client> connect(const FakeAgent& agent) {
  auto client = Client::connect(agent.environment(), kLong);
  EXPECT_TRUE(client) << client.error().message;
  return client ? std::move(*client) : nullptr;
}

TEST(ClientOverIpc, TheHandshakeTellsHostRunDirectoryAndConfiguration) {
  FakeAgent agent(nothing);
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  EXPECT_EQ(client->host(), "host-a");
  EXPECT_EQ(client->run_dir(), "/runs/1");
  EXPECT_EQ(client->config_json(), R"({"job": 1})");
  EXPECT_EQ(client->member(), agent.environment().self);
}

TEST(ClientOverIpc, NoAgentIsAnErrorThatNamesTheSocket) {
  TempDir directory;
  const auto client = Client::connect(
      {directory / "none", "job", Member{WorkerId{'w', 0}, Attempt{1}}, "antdt"}, milliseconds(50));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(client.error().message, HasSubstr(directory / "none"));
}

TEST(ClientOverIpc, OrdersPlansAndAbortsArrive) {
  FakeAgent agent([](const wire::Envelope& envelope, const std::string&, FakeAgent::Reply& reply) {
    if (envelope.kind == "join") reply.send(wire::Form{0, 1, 42, {}, {}});
    if (envelope.kind != "address") return;
    reply.send(wire::Plan{PlanVersion{2}, {}});
    reply.send(wire::CheckpointOrder{5});
    reply.send(wire::Abort{"a member was lost"});
  });
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  std::atomic<std::uint64_t> aborted = 0;
  client->set_abort_handler([&](Generation generation) { aborted = generation.value; });
  client->join({});
  auto directive = client->next_directive(kLong);
  ASSERT_TRUE(directive && *directive);
  ASSERT_TRUE(std::holds_alternative<wire::Form>((*directive)->order));
  client->send_address({"l"});
  directive = client->next_directive(kLong);
  ASSERT_TRUE(directive && *directive);
  EXPECT_TRUE(std::holds_alternative<wire::Abort>((*directive)->order));
  EXPECT_EQ(client->held_plan(), PlanVersion{2});
  EXPECT_EQ(client->checkpoint_ordered(), 5U);
  // The order wakes this thread first; the handler follows on the other.
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (aborted == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(aborted, 1U);
}

TEST(ClientOverIpc, AnAbortHandlerDoesNotRunAfterItIsRemoved) {
  FakeAgent agent([](const wire::Envelope& envelope, const std::string&, FakeAgent::Reply& reply) {
    if (envelope.kind == "join") reply.send(wire::Abort{"a member was lost"});
  });
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  std::atomic<bool> entered = false, taken_back = false, ran_on = false;
  client->set_abort_handler([&](Generation) {
    entered = true;
    const auto until = std::chrono::steady_clock::now() + milliseconds(20);
    while (std::chrono::steady_clock::now() < until) ran_on = ran_on || taken_back;
  });
  client->join({});
  while (!entered) std::this_thread::yield();
  client->set_abort_handler({});
  taken_back = true;
  // The message thread goes on, and would call the handler if it were still set.
  client->bye({});
  EXPECT_FALSE(ran_on);
}

TEST(ClientOverIpc, AWorkerWhoseTrainingThreadIsStuckStillSaysWhatItIsDoing) {
  std::promise<wire::Report> first;
  std::atomic<bool> told = false;
  FakeAgent agent([&](const wire::Envelope& envelope, const std::string& body, FakeAgent::Reply&) {
    if (envelope.kind == "report" && !told.exchange(true)) {
      first.set_value(*wire::decode<wire::Report>(body));
    }
  });
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  client->set_activity("collective_wait");
  auto report = first.get_future();
  ASSERT_EQ(report.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(report.get().activity, "collective_wait");
}

// Grants 10 records for each fetch until 100 are granted, then answers "end" once all are
// committed.
class Shards {
 public:
  void on_fetch(const std::string& body, FakeAgent::Reply& reply) {
    const auto fetch = wire::decode<wire::Fetch>(body);
    ASSERT_TRUE(fetch);
    place_ = std::max(place_, fetch->place);
    if (place_ == 100)
      return reply.send(wire::Grants{fetch->phase, wire::GrantStatus::kEnd, {}, 0});
    if (fetch->want == 0)
      return reply.send(wire::Grants{fetch->phase, wire::GrantStatus::kGranted, {}, 0});
    if (next_ == 100)
      return reply.send(wire::Grants{fetch->phase, wire::GrantStatus::kWait, {}, 1});
    const std::uint64_t count = std::min({std::uint64_t{10}, fetch->want, 100 - next_});
    reply.send(wire::Grants{fetch->phase,
                            wire::GrantStatus::kGranted,
                            {{0, 0, 100, next_, next_ + count, 0, false}},
                            0});
    next_ += count;
  }

 private:
  std::uint64_t next_ = 0, place_ = 0;
};

TEST(ClientOverIpc, APhaseIsWorkedThroughToItsEnd) {
  Shards shards;
  FakeAgent agent(
      [&](const wire::Envelope& envelope, const std::string& body, FakeAgent::Reply& reply) {
        if (envelope.kind == "fetch") shards.on_fetch(body, reply);
      });
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  client->begin_phase(1);
  client->set_hold(20);
  std::uint64_t position = 0;
  while (true) {
    const auto taken = client->take(7, kLong);
    ASSERT_TRUE(taken) << taken.error().message;
    if (taken->status == TakeStatus::kEnd) break;
    ASSERT_EQ(taken->status, TakeStatus::kData);
    EXPECT_LE(taken->records, 7U);
    for (const wire::Piece& piece : taken->pieces) {
      EXPECT_EQ(piece.from, position);
      position = piece.to;
    }
    client->commit(position);
  }
  EXPECT_EQ(position, 100U);
}

TEST(ClientOverIpc, AWaitingStaleAttemptIsToldThatItIsStale) {
  FakeAgent agent([](const wire::Envelope& envelope, const std::string&, FakeAgent::Reply& reply) {
    if (envelope.kind == "fetch")
      reply.send(wire::Refused{wire::RefusalCode::kStale, "attempt 1 is stale"});
  });
  const auto client = connect(agent);
  ASSERT_TRUE(client);
  client->begin_phase(1);
  client->set_hold(20);
  const auto taken = client->take(7, kLong);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::kRefused);
  const auto directive = client->next_directive(kLong);
  ASSERT_FALSE(directive);
  EXPECT_EQ(directive.error().message, "attempt 1 is stale");
}

TEST(ClientOverIpc, ByeArrivesBeforeTheClientIsGone) {
  std::atomic<std::uint64_t> samples = 0;
  FakeAgent agent([&](const wire::Envelope& envelope, const std::string& body, FakeAgent::Reply&) {
    if (envelope.kind == "bye") samples = wire::decode<wire::Bye>(body)->samples_total;
  });
  {
    const auto client = connect(agent);
    ASSERT_TRUE(client);
    client->report({33, {}, milliseconds(1), {}, true});
    client->bye({});
  }
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (samples == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(samples, 33U);
}

TEST(LooseClient, WorksThroughItsPhasesAndEnds) {
  Shards shards;
  std::atomic<bool> ended = false;
  FakeAgent agent(
      [&](const wire::Envelope& envelope, const std::string& body, FakeAgent::Reply& reply) {
        if (envelope.kind == "join") {
          EXPECT_FALSE(wire::decode<wire::Join>(body)->collective);
          reply.send(wire::PhaseStart{1, wire::PhaseKind::kTrain, Epoch{0}, 100, 0});
          reply.send(wire::PhaseStart{2, wire::PhaseKind::kFinish, Epoch{0}, 0, 0});
        }
        if (envelope.kind == "fetch") shards.on_fetch(body, reply);
        if (envelope.kind == "bye") ended = true;
      });
  auto loose = Loose::start(agent.environment());
  ASSERT_TRUE(loose) << loose.error().message;
  std::uint64_t records = 0;
  while (true) {
    const auto work = (*loose)->next(16);
    ASSERT_TRUE(work) << work.error().message;
    if (!*work) break;
    EXPECT_FALSE((*work)->evaluation);
    records += (*work)->records;
    (*loose)->report({}, milliseconds(1), {});
  }
  EXPECT_EQ(records, 100U);
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (!ended && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace antdt::client
