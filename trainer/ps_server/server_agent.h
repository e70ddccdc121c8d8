// A parameter server and those who lead it: its agent and the job daemon.
//
// It speaks to its agent as every worker does, and what servers and the job daemon
// say to one another travels that way (ps_messages.h):
//
//   greeting ──(worker-welcome)──> joining ──(ps-serve)──> serving ──(ps-serve)──┐
//      hello, repeated               join, repeated       the group of a        │
//      ^                                │                 generation; a later <──┘
//      └───────(refused: unknown)───────┴──────────────── one replaces it, rows and all,
//                                                         unless it is told to keep them
//
//   leave: ends with its code.  refused (stale): another attempt took its place,
//   ends with 0 and changes nothing.
//
// Its end point is bound from the welcome, which brings the job's configuration, to the
// end; between two groups nobody is answered there. Answers are not repeated: who asks asks again.
// Runs with `loop` and stops it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/ps_messages.h"
#include "trainer/client/environment.h"
#include "trainer/injected/injected.h"
#include "trainer/ps_link/group_links.h"
#include "trainer/ps_link/server_loop.h"
#include "trainer/ps_server/listen.h"

namespace antdt::ps {

class ServerAgent {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);
  static constexpr Duration kPulse = std::chrono::seconds(1);      // reports
  static constexpr Duration kGreeting = std::chrono::seconds(10);  // kUnreachable after that

  // `context` has no other server: over tcp it lets in whom this one is told of.
  [[nodiscard]] static Result<std::unique_ptr<ServerAgent>> start(EventLoop& loop,
                                                                  transport::Context& context,
                                                                  client::Environment environment);
  ~ServerAgent();
  ServerAgent(const ServerAgent&) = delete;
  ServerAgent& operator=(const ServerAgent&) = delete;

  // Ends with this exit code.
  void leave(int code);
  // Nothing while it goes on. An error (kUnreachable: no agent answers; kRefused: this
  // server is not wanted) is for a person.
  [[nodiscard]] const std::optional<Result<int>>& outcome() const { return outcome_; }

 private:
  ServerAgent(EventLoop& loop, transport::Context& context, client::Environment environment,
              transport::Socket agent, transport::KeyPair own);
  void receive();
  void on_packet(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_welcome(const wire::WorkerWelcome& welcome);
  [[nodiscard]] Status open_end_point(const wire::WorkerWelcome& welcome);
  [[nodiscard]] Status prepare_drill(const wire::WorkerWelcome& welcome);
  [[nodiscard]] Drill drill();
  void on_refused(const wire::Refused& refused);
  void on_serve(const wire::PsServe& message, const wire::Envelope& envelope);
  void on_cut(const wire::PsCut& message, const wire::Envelope& envelope);
  [[nodiscard]] Status open_group(const wire::PsServe& message, Generation generation);
  void end(Result<int> outcome);

  void say_again();
  void report();
  void report_reading(const std::string& path, std::uint64_t done, std::uint64_t total);
  // To the agent, or through it. `about`: what it answers.
  template <class M>
  void say(const M& message, const wire::Envelope& about = {});

  EventLoop& loop_;
  transport::Context& context_;
  const client::Environment environment_;
  transport::Socket agent_;
  const transport::KeyPair own_keys_;
  // Asked by the context, which may outlive this.
  const std::shared_ptr<AdmittedKeys> admitted_ = std::make_shared<AdmittedKeys>();
  const SteadyClock clock_;  // of drills
  std::optional<trainer::Injected> injected_;
  wire::Injected injection_ordered_;     // newest
  std::uint32_t throttle_permille_ = 0;  // that a drill asks for
  std::optional<Listening> own_;         // where workers and the other servers reach it
  const MonoTime begun_;
  std::optional<wire::WorkerWelcome> welcome_;
  bool greeted_ = false;  // by this agent; one that was started again is greeted anew
  std::optional<Result<int>> outcome_;

  Generation generation_;            // of the newest group; 0: none yet
  wire::PsServe serve_;              // that is in force
  std::set<std::uint64_t> cutting_;  // checkpoints that are ordered and not answered
  std::unique_ptr<ServerLoop> server_;
  TimerId again_, pulse_;
  MonoTime reading_said_{};
};

}  // namespace antdt::ps
