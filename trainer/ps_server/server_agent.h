// Connects a parameter server with its agent and the job daemon: the shell of a ServerProcess
// (trainer/ps/process/server_process.h), which it feeds with the agent's messages and whose effects
// it carries out. It talks to its agent as every worker does, and its messages to and from the job
// daemon go the same way (core/wire/servers/ps_messages.h).
//
// Runs with `loop` and stops it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/client/environment.h"
#include "trainer/injected/injected.h"
#include "trainer/ps/process/server_process.h"
#include "trainer/ps_link/group_links.h"
#include "trainer/ps_link/server_loop.h"
#include "trainer/ps_server/listen.h"

namespace antdt::ps {

class ServerAgent {
 public:
  // `context` must have no other server: over tcp it admits the processes that this server is told.
  [[nodiscard]] static Result<std::unique_ptr<ServerAgent>> start(EventLoop& loop,
                                                                  transport::Context& context,
                                                                  client::Environment environment);
  ~ServerAgent();
  ServerAgent(const ServerAgent&) = delete;
  ServerAgent& operator=(const ServerAgent&) = delete;

  // SIGTERM arrived.
  void stop() { feed(process::StopAsked{}); }
  // Empty while it runs. The error (kRefused: this server is not wanted) is for a person.
  [[nodiscard]] const std::optional<Result<int>>& outcome() const { return outcome_; }

 private:
  ServerAgent(EventLoop& loop, transport::Context& context, client::Environment environment,
              transport::Socket agent, transport::KeyPair own);
  void receive();
  void on_packet(const wire::Packet& packet, const wire::Envelope& envelope);
  void hear_welcome(const wire::WorkerWelcome& welcome);
  void tick();
  void pulse();
  void report_reading(const std::string& path, std::uint64_t done, std::uint64_t total);

  // Inputs that effects lead to are put behind them, in a queue.
  void feed(process::Input input);
  void perform(const process::SayHello& effect);
  void perform(const process::TellOperator& effect);
  void perform(process::SayJoin& effect);
  void perform(const process::OpenEndPoint& effect);
  void perform(process::BeginGroup& effect);
  void perform(const process::OrderGroup& effect);
  void perform(const process::OrderSlices& effect);
  void perform(const process::AnswerGroupOrder& effect);
  void perform(const process::RefuseGroupOrder& effect);
  void perform(const process::AnswerCutOrder& effect);
  void perform(process::SayReport& effect);
  void perform(const process::SayStats& effect);
  void perform(const process::EndProcess& effect) { end(effect.code); }
  void perform(process::GiveUpProcess& effect);

  [[nodiscard]] Status open_end_point();
  [[nodiscard]] Status prepare_drill();
  [[nodiscard]] Drill drill();
  [[nodiscard]] Status begin_group(const process::BeginGroup& effect);
  void end(Result<int> outcome);
  // Sends to the agent, or through it.
  template <class M>
  void say(const M& message, Generation generation = {});

  EventLoop& loop_;
  transport::Context& context_;
  const client::Environment environment_;
  transport::Socket agent_;
  const transport::KeyPair own_keys_;
  // Used by the context, which may outlive this object.
  const std::shared_ptr<AdmittedKeys> admitted_ = std::make_shared<AdmittedKeys>();
  const SteadyClock clock_;  // for fault injections
  std::optional<trainer::Injected> injected_;
  wire::Injected injection_ordered_;     // the newest
  std::uint32_t throttle_permille_ = 0;  // ordered by a fault injection
  std::optional<Listening> own_;         // where workers and the other servers reach it
  std::optional<wire::WorkerWelcome> welcome_;
  ServerProcess process_;
  std::deque<process::Input> inputs_;  // inputs that are not fed yet
  bool feeding_ = false;
  std::optional<Result<int>> outcome_;
  std::unique_ptr<ServerLoop> server_;
  TimerId again_, pulse_;
  MonoTime reading_said_{};
};

}  // namespace antdt::ps
