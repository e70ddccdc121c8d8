// The agent and the job daemon of two servers, as a fake on the thread of the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "tests/trainer/ps_link/testing.h"
#include "trainer/ps_link/worker_link.h"
#include "trainer/ps_server/server_agent.h"

namespace antdt::ps {

inline constexpr Duration kPatience = std::chrono::seconds(60);
inline constexpr const char* kJob = "job-1";

// A server with its own thread and context, as if it were a process.
class RealServer {
 public:
  RealServer(const std::string& agent, std::uint32_t index, std::uint32_t attempt = 1)
      : thread_([this, environment = client::Environment{
                           agent, kJob, Member{WorkerId{'s', index}, Attempt{attempt}}, "antdt"}] {
          run(environment);
        }) {}
  ~RealServer() {
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
  // Returns the next message of this kind from the server for which `right` holds; greets processes
  // that send hello meanwhile. Messages of the other server are kept for later calls, and other
  // messages are dropped.
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
  // The next message of this server.
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
    say(server, wire::WorkerWelcome{wire::kMaxVersion, "here", run_dir(), config_});
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
  // Two servers' end points and keys, once both have joined.
  void await_joins() {
    for (std::uint32_t s = 0; s < 2; ++s) {
      const wire::Join join = await<wire::Join>(s).message;
      serve_.servers.push_back(join.endpoint);
      server_keys_.push_back(join.key);
      serve_.keys.push_back({WorkerId{'s', s}, Attempt{1}, join.key});
    }
    serve_.sync = SyncStrategy::kPsBsp;
    serve_.workers = {{w(0).worker, w(0).attempt}, {w(1).worker, w(1).attempt}};
  }
  // Sends the order to both servers; returns their answers.
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
  // `own`: the key pair that identifies it over tcp.
  Result<std::unique_ptr<WorkerLink>> connect(Member self, Generation generation,
                                              const transport::KeyPair& own) {
    Peers peers{generation, serve_.servers, Consistency::kBarrier, kPatience};
    peers.keys = server_keys_;
    peers.own = own;
    return WorkerLink::connect(context_, peers, self);
  }
  std::unique_ptr<WorkerLink> link(std::uint32_t worker, Generation generation) {
    auto made = connect(w(worker), generation, {});
    EXPECT_TRUE(made);
    const auto opened = (*made)->open({1, {{"count", 1, "sum", 0, 0, 0, "zero", 0}}});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*made);
  }
  // Pushes a gradient of one for each row.
  Result<wire::PsDecided> push(WorkerLink& link, std::uint64_t number, std::uint64_t step) {
    ANTDT_TRY(const auto pulled, link.pull({{0, keys_}}, step));
    return link.push({{0, {keys_, std::vector<float>(keys_.size(), 1)}}}, pulled,
                     {number, step, 1, number - 1, number, 1});
  }
  // The value of all rows after `steps`.
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
  std::vector<std::string> server_keys_;
  std::string config_ = "{}";  // of the job, as servers are told
  const std::vector<std::uint64_t> keys_{1, 2, 3, 4, 5, 6, 7, 8, 9};
};

}  // namespace antdt::ps
