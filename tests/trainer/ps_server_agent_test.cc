// A server as its agent and the job daemon see it: a fake of both talks to real
// servers, and workers train on them meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "core/fs.h"
#include "core/loop.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "tests/trainer/may_fork.h"
#include "trainer/ps_link/worker_link.h"
#include "trainer/ps_server/server_agent.h"

namespace antdt::ps {
namespace {

using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr const char* kJob = "job-1";

Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

// A server with a thread and a context of its own, as if it were a process.
class ServerProcess {
 public:
  ServerProcess(const std::string& agent, std::uint32_t index, std::uint32_t attempt = 1)
      : thread_([this, environment = client::Environment{
                           agent, kJob, Member{WorkerId{'s', index}, Attempt{attempt}}, "antdt"}] {
          run(environment);
        }) {}
  ~ServerProcess() {
    loop_.stop_from_any_thread();  // of a test that failed: it was not told to leave
    thread_.join();
  }
  Result<int> outcome() { return outcome_.get_future().get(); }

 private:
  void run(const client::Environment& environment) {
    transport::Context context;
    auto server = ServerAgent::start(loop_, context, environment);
    if (!server) return outcome_.set_value(tl::unexpected<Error>(server.error()));
    loop_.run();
    const auto outcome = (*server)->outcome().value_or(Result<int>(-1));
    server->reset();
    outcome_.set_value(outcome);
  }

  SteadyClock clock_;
  EventLoop loop_{clock_};
  std::promise<Result<int>> outcome_;
  std::thread thread_;
};

// The agent and the job daemon in one, on the thread of the test.
class PsServerAgentTest : public testing::Test {
 protected:
  PsServerAgentTest() : socket_(transport::Socket::bind_ipc(context_, path())) {
    EXPECT_TRUE(socket_) << socket_.error().message;
  }
  [[nodiscard]] std::string path() const { return directory_ / "workers.sock"; }
  [[nodiscard]] std::string run_dir() const { return directory_ / "run"; }

  template <class M>
  struct Heard {
    M message;
    wire::Envelope envelope;
  };
  // The next message of this kind from the server for which `right` holds; greets
  // whoever says hello meanwhile. What the other server says waits until it is asked
  // for, what else comes is dropped.
  template <class M>
  Heard<M> await(
      std::uint32_t server,
      const std::function<bool(const Heard<M>&)>& right = [](const auto&) { return true; }) {
    const MonoTime deadline = SteadyClock().now() + kPatience;
    while (const auto packet = next(server, deadline)) {
      const auto envelope = wire::open_envelope(*packet);
      if (envelope->kind != M::kKind) continue;
      Heard<M> heard{wire::decode<M>(packet->body).value(), *envelope};
      if (right(heard)) return heard;
    }
    ADD_FAILURE() << "s" << server << " has not said '" << M::kKind << "'";
    return {};
  }
  // What this server says next.
  std::optional<wire::Packet> next(std::uint32_t server, MonoTime deadline) {
    std::deque<wire::Packet>& waiting = waiting_[server];
    while (waiting.empty() && SteadyClock().now() < deadline) {
      if (!socket_->wait_readable(deadline - SteadyClock().now())) break;
      if (const auto packet = socket_->receive()) hear(*packet);
    }
    if (waiting.empty()) return {};
    wire::Packet packet = std::move(waiting.front());
    waiting.pop_front();
    return packet;
  }
  void hear(const wire::Packet& packet) {
    const auto envelope = wire::open_envelope(packet);
    ASSERT_TRUE(envelope);
    EXPECT_EQ(envelope->job, kJob);
    const std::uint32_t server = envelope->worker.index;
    peers_[server] = packet.peer;
    waiting_[server].push_back(packet);
    if (envelope->kind != wire::Hello::kKind) return;
    ++hellos_;
    say(server, wire::WorkerWelcome{wire::kMaxVersion, "here", run_dir(), "{}"});
  }
  template <class M>
  void say(std::uint32_t server, const M& message, Generation generation = {}) {
    wire::Envelope envelope;
    envelope.job = kJob;
    envelope.worker = {'s', server};
    envelope.attempt = Attempt{1};
    envelope.generation = generation;
    auto packet = wire::make_packet(envelope, message);
    packet.peer = peers_[server];
    EXPECT_EQ(socket_->send(packet), transport::SendOutcome::kSent);
  }
  void leave(std::uint32_t servers, std::uint32_t code) {
    for (std::uint32_t s = 0; s < servers; ++s) say(s, wire::Leave{"over", code});
  }
  // Two servers' end points, once both have joined.
  void await_joins() {
    for (std::uint32_t s = 0; s < 2; ++s) {
      serve_.servers.push_back(await<wire::Join>(s).message.endpoint);
    }
    serve_.sync = "ps-bsp";
    serve_.workers = {{w(0).worker, w(0).attempt}, {w(1).worker, w(1).attempt}};
  }
  // Says both servers what to serve; what they answer.
  std::vector<wire::PsServing> serve(Generation generation) {
    ++serve_.number;
    std::vector<wire::PsServing> serving;
    for (std::uint32_t s = 0; s < 2; ++s) {
      serve_.index = s;
      say(s, serve_, generation);
      serving.push_back(await<wire::PsServing>(s, [&](const auto& h) {
                          return h.envelope.generation == generation;
                        }).message);
      EXPECT_EQ(serving.back().number, serve_.number);
    }
    return serving;
  }
  std::vector<wire::PsSaved> cut(std::uint64_t number, Generation generation) {
    for (std::uint32_t s = 0; s < 2; ++s) {
      say(s, wire::PsCut{number, fmt::format("checkpoints/{}", number)}, generation);
    }
    std::vector<wire::PsSaved> saved;
    for (std::uint32_t s = 0; s < 2; ++s) saved.push_back(await<wire::PsSaved>(s).message);
    return saved;
  }
  std::unique_ptr<WorkerLink> link(std::uint32_t worker, Generation generation) {
    auto made = WorkerLink::connect(
        context_, {generation, serve_.servers, Consistency::kBarrier, kPatience}, w(worker));
    EXPECT_TRUE(made);
    const auto opened = (*made)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*made);
  }
  // One to each row.
  Result<wire::PsDecided> push(WorkerLink& link, std::uint64_t number, std::uint64_t step) {
    ANTDT_TRY(const auto pulled, link.pull({{0, keys_}}, step));
    return link.push({{0, {keys_, std::vector<float>(keys_.size(), 1)}}}, pulled,
                     {number, step, 1, number - 1, number, 1});
  }
  // What the rows are, all of them, after `steps`.
  float value(WorkerLink& link, std::uint64_t steps) {
    const auto pulled = link.pull({{0, keys_}}, steps);
    EXPECT_TRUE(pulled) << pulled.error().message;
    if (!pulled) return -1;
    EXPECT_THAT(pulled->values.at(0), testing::Each(pulled->values[0][0]));
    return pulled->values[0][0];
  }

  TempDir directory_;
  transport::Context context_;
  Result<transport::Socket> socket_;
  std::map<std::uint32_t, std::string> peers_;
  std::map<std::uint32_t, std::deque<wire::Packet>> waiting_;  // by server
  int hellos_ = 0;
  wire::PsServe serve_;
  const std::vector<std::uint64_t> keys_{1, 2, 3, 4, 5, 6, 7, 8, 9};
};

TEST_F(PsServerAgentTest, JoinsUntilItIsToldWhatToServe) {
  ServerProcess first(path(), 0);
  ServerProcess second(path(), 1);
  const auto join = await<wire::Join>(0);
  EXPECT_FALSE(join.message.collective);
  EXPECT_NE(join.message.pid, 0U);
  EXPECT_EQ(join.envelope.generation, Generation{});
  EXPECT_EQ(await<wire::Join>(0).message.endpoint, join.message.endpoint) << "said again";
  await_joins();
  EXPECT_EQ(serve_.servers[0], join.message.endpoint);
  EXPECT_NE(serve_.servers[0], serve_.servers[1]);
  const Generation generation{1};
  serve(generation);
  const auto own = link(0, generation);
  const auto other = link(1, generation);
  ASSERT_TRUE(other->idle());
  const auto decided = push(*own, 1, 0);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->status, "applied");
  const auto report =
      await<wire::Report>(0, [](const auto& h) { return h.message.step == Step{1}; });
  EXPECT_EQ(report.message.activity, "compute");
  const auto stats = await<wire::PsStats>(0, [](const auto& h) { return h.message.version == 1; });
  EXPECT_EQ(stats.message.pushes_applied, 1U);
  EXPECT_EQ(stats.envelope.generation, generation);
  leave(2, 0);
  EXPECT_EQ(first.outcome().value_or(-1), 0);
  EXPECT_EQ(second.outcome().value_or(-1), 0);
  EXPECT_FALSE(std::filesystem::exists(serve_.servers[0])) << "its socket goes with it";
}

TEST_F(PsServerAgentTest, AWorkerThatLeavesIsAnsweredForAndTheOthersGoOn) {
  ServerProcess first(path(), 0);
  ServerProcess second(path(), 1);
  await_joins();
  const Generation generation{1};
  serve(generation);
  const auto kept = link(0, generation);
  const auto lost = link(1, generation);
  auto together = std::async(std::launch::async, [&] { return push(*kept, 1, 0); });
  ASSERT_TRUE(push(*lost, 1, 0));
  ASSERT_TRUE(together.get());
  auto waits = std::async(std::launch::async, [&] { return push(*kept, 2, 1); });
  serve_.leaving = {serve_.workers.back()};
  serve_.workers.pop_back();
  const auto serving = serve(generation);
  ASSERT_EQ(serving[0].left.size(), 1U);
  EXPECT_EQ(serving[0].left[0].worker, w(1).worker);
  EXPECT_EQ(serving[0].left[0].phase, 1U);
  ASSERT_EQ(serving[0].left[0].applied.size(), 1U);
  EXPECT_EQ(serving[0].left[0].applied[0].from, 0U);
  EXPECT_EQ(serving[0].left[0].applied[0].to, 1U);
  EXPECT_THAT(serving[1].left, testing::IsEmpty());
  const auto alone = waits.get();
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->version, 2U);
  // An older word of the job daemon's comes late: the newest one is in force.
  wire::PsServe old = serve_;
  old.number = 1;
  old.index = 0;
  old.workers.push_back(old.leaving.front());
  say(0, old, generation);
  EXPECT_EQ(await<wire::PsServing>(0).message.number, 2U);
  const auto refused = push(*lost, 2, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kAborted);
  leave(2, 75);
  EXPECT_EQ(first.outcome().value_or(-1), 75);
}

TEST_F(PsServerAgentTest, ANewGroupGoesOnFromACheckpointOfTheOneBefore) {
  if (!kMayFork) GTEST_SKIP() << "a child writes the checkpoint";
  ServerProcess first(path(), 0);
  ServerProcess second(path(), 1);
  await_joins();
  const Generation before{1};
  const Generation after{2};
  serve(before);
  const auto own = link(0, before);
  ASSERT_TRUE(link(1, before)->idle());
  ASSERT_TRUE(push(*own, 1, 0));
  ASSERT_TRUE(push(*own, 2, 1));
  const auto saved = cut(1, before);
  for (const wire::PsSaved& s : saved) {
    EXPECT_EQ(s.error, "");
    EXPECT_EQ(s.version, 2U);
    for (const auto& file : s.files) {
      EXPECT_TRUE(std::filesystem::exists(run_dir() + "/checkpoints/1/" + file.name));
    }
  }
  EXPECT_EQ(saved[0].files.size() + saved[1].files.size(), kSlices);
  ASSERT_EQ(saved[0].places.size(), 2U);
  ASSERT_EQ(saved[0].places[0].applied.size(), 1U);
  EXPECT_EQ(saved[0].places[0].applied[0].to, 2U);
  ASSERT_TRUE(push(*own, 3, 2)) << "this one is not in it";
  EXPECT_EQ(cut(1, before)[1].version, 2U) << "said again it is answered again";
  EXPECT_EQ(value(*own, 3), 3);

  wire::PsServe late = serve_;
  serve_.number = 0;
  serve_.restore = "checkpoints/1";
  serve_.version = 2;
  serve(after);
  late.number = 9;
  late.index = 0;
  say(0, late, before);  // the group before is over: nobody answers
  const auto gone = push(*own, 4, 3);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kAborted);
  const auto again = link(0, after);
  ASSERT_TRUE(link(1, after)->idle());
  EXPECT_EQ(value(*again, 2), 2);
  const auto decided = push(*again, 1, 2);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->version, 3U);
  EXPECT_EQ(value(*again, 3), 3);
  serve_.index = 0;
  say(0, serve_, after);
  const auto serving = await<wire::PsServing>(0);
  EXPECT_EQ(serving.envelope.generation, after) << "the one before was not answered";
  leave(2, 0);
}

TEST_F(PsServerAgentTest, WhoseAttemptIsOverEndsAndChangesNothing) {
  ServerProcess server(path(), 0);
  await<wire::Join>(0);
  say(0, wire::Refused{"stale", "attempt 2 runs already"});
  EXPECT_EQ(server.outcome().value_or(-1), 0);
}

TEST_F(PsServerAgentTest, WhoIsNotWantedSaysWhy) {
  ServerProcess server(path(), 0);
  await<wire::Join>(0);
  say(0, wire::Refused{"busy", "again, please"});
  say(0, wire::Refused{"version", "no version in common"});
  const auto outcome = server.outcome();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("no version in common"));
}

TEST_F(PsServerAgentTest, AnAgentThatWasStartedAgainIsGreetedAgain) {
  ServerProcess server(path(), 0);
  await<wire::Join>(0);
  const int before = hellos_;
  say(0, wire::Refused{"unknown", "who is that?"});
  await<wire::Hello>(0);
  EXPECT_GT(hellos_, before);
  await<wire::Join>(0);
  leave(1, 0);
}

TEST_F(PsServerAgentTest, WhatItCannotServeIsRefusedAndItGoesOn) {
  ServerProcess first(path(), 0);
  ServerProcess second(path(), 1);
  await_joins();
  const auto refusal = [&](const wire::PsServe& message) {
    say(0, message, Generation{1});
    return await<wire::Refused>(0).message.reason;
  };
  wire::PsServe wrong = serve_;
  wrong.number = 1;
  wrong.index = 2;
  EXPECT_THAT(refusal(wrong), HasSubstr("not end point 2 of the 2"));
  wrong.index = 1;
  EXPECT_THAT(refusal(wrong), HasSubstr("not end point 1"));
  wrong.index = 0;
  wrong.sync = "allreduce";
  EXPECT_THAT(refusal(wrong), HasSubstr("needs no parameter servers"));
  serve(Generation{1});
  leave(2, 0);
}

}  // namespace
}  // namespace antdt::ps
