// The process of a parameter server, from the greeting of its agent to its exit.
//
//   greeting ──WelcomeHeard──> opening its end point ──EndPointOpened──> greeted
//   greeted ──(the agent does not know it)──> greeting, of another agent
//   any ──LeaveHeard, StopAsked, RefusalHeard, an error──> ended
//
// It says hello until it is welcomed, and joins until it is told which group it serves. It serves
// one group at a time, in a LinkedServer (linked_server.h) that its shell makes and runs:
//
//   no group ──GroupOrderHeard──> a group ──(of a later generation)──> that one, with the rows of
//                                                                      the one before if it keeps
//                                                                      them
//
// The end point stays open until the end. Answers are not repeated: who asks asks again.
//
// A value without I/O; its shell calls TimePassed every kAgain and PulsePassed every kPulse.
// Nothing is durable here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "core/wire/ps_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/ps/process/linked_server.h"

namespace antdt::ps {

namespace process {

// ---- inputs
struct WelcomeHeard {
  std::uint32_t version = 0;  // of the protocol, that the agent chose
};
// Where workers and the other servers reach this one, and its public key over tcp.
struct EndPointOpened {
  std::string endpoint;
  std::string key = {};
};
struct EndPointFailed {
  Error error;
};
struct RefusalHeard {
  wire::Refused refused;
};
struct LeaveHeard {
  int code = 0;
};
// SIGTERM came.
struct StopAsked {};
struct GroupOrderHeard {
  Generation generation;
  wire::PsServe serve;
};
struct CutOrderHeard {
  Generation generation;
  wire::PsCut cut;
};
// The group could not begin here.
struct GroupFailed {
  Error error;
};
// What the LinkedServer of the group answers to the job daemon.
struct OrderTaken {
  wire::PsServing serving;
};
struct CutTaken {
  wire::PsSaved saved;
};
// It cannot be the backup that it is to be.
struct BackupBroken {
  std::string error;
};
struct TimePassed {};
struct PulsePassed {
  std::uint64_t version = 0;  // updates that are applied
};
using Input = std::variant<WelcomeHeard, EndPointOpened, EndPointFailed, RefusalHeard, LeaveHeard,
                           StopAsked, GroupOrderHeard, CutOrderHeard, GroupFailed, OrderTaken,
                           CutTaken, BackupBroken, TimePassed, PulsePassed>;

// ---- effects
struct SayHello {};
// With its pid.
struct SayJoin {
  wire::Join join;
};
struct OpenEndPoint {};
// In place of the group before. With `keep` it goes on with the rows of that one, if it has any.
struct BeginGroup {
  linked::Start start;
  bool keep = false;
};
// For the LinkedServer.
struct OrderGroup {
  wire::PsServe serve;
};
struct OrderSlices {
  wire::PsCut cut;
};
// To the job daemon.
struct AnswerGroupOrder {
  Generation generation;
  wire::PsServing serving;
};
struct RefuseGroupOrder {
  Generation generation;
  wire::Refused refused;
};
struct AnswerCutOrder {
  Generation generation;
  wire::PsSaved saved;
};
struct SayReport {
  Generation generation;
  wire::Report report;
};
// What the server holds and has done.
struct SayStats {
  Generation generation;
};
struct EndProcess {
  int code = 0;
};
// With an error for a person.
struct GiveUpProcess {
  Error error;
};
using Effect = std::variant<SayHello, SayJoin, OpenEndPoint, BeginGroup, OrderGroup, OrderSlices,
                            AnswerGroupOrder, RefuseGroupOrder, AnswerCutOrder, SayReport, SayStats,
                            EndProcess, GiveUpProcess>;
using Effects = std::vector<Effect>;

}  // namespace process

class ServerProcess {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);
  static constexpr Duration kPulse = std::chrono::seconds(1);
  // kUnreachable if no agent has answered for so long.
  static constexpr Duration kGreeting = std::chrono::seconds(10);
  static constexpr int kResumable = 75;  // exit code after SIGTERM

  // `agent`: where it listens, for people. It is waited for no longer than `patience`.
  ServerProcess(Member self, std::string agent, MonoTime now, Duration patience = kGreeting)
      : self_(self), agent_(std::move(agent)), begun_(now), patience_(patience) {}

  // Appends to `out`; nothing after its end.
  void step(const process::Input& input, MonoTime now, process::Effects& out);

  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }
  [[nodiscard]] bool greeted() const { return state_ == State::kGreeted; }
  // Of the newest group; 0: none yet.
  [[nodiscard]] Generation generation() const { return generation_; }
  // That is in force.
  [[nodiscard]] const wire::PsServe& order() const { return order_; }

 private:
  enum class State : std::uint8_t { kGreeting, kOpening, kGreeted, kEnded };

  void on(const process::WelcomeHeard& input, MonoTime now, process::Effects& out);
  void on(const process::EndPointOpened& input, MonoTime now, process::Effects& out);
  void on(const process::EndPointFailed& input, MonoTime now, process::Effects& out);
  void on(const process::RefusalHeard& input, MonoTime now, process::Effects& out);
  void on(const process::LeaveHeard& input, MonoTime now, process::Effects& out);
  void on(const process::StopAsked& input, MonoTime now, process::Effects& out);
  void on(const process::GroupOrderHeard& input, MonoTime now, process::Effects& out);
  void on(const process::CutOrderHeard& input, MonoTime now, process::Effects& out);
  void on(const process::GroupFailed& input, MonoTime now, process::Effects& out);
  void on(const process::OrderTaken& input, MonoTime now, process::Effects& out);
  void on(const process::CutTaken& input, MonoTime now, process::Effects& out);
  void on(const process::BackupBroken& input, MonoTime now, process::Effects& out);
  void on(const process::TimePassed& input, MonoTime now, process::Effects& out);
  void on(const process::PulsePassed& input, MonoTime now, process::Effects& out);

  void speak(process::Effects& out);
  [[nodiscard]] Result<linked::Start> start_of(const wire::PsServe& serve,
                                               Generation generation) const;
  void end(int code, process::Effects& out);
  void give_up(Error error, process::Effects& out);
  void check_invariants() const;

  Member self_;
  std::string agent_;
  MonoTime begun_;
  Duration patience_;
  State state_ = State::kGreeting;
  std::string endpoint_;  // empty: not open yet
  std::string key_;
  Generation generation_;
  bool has_group_ = false;  // of that generation
  wire::PsServe order_;
  std::set<std::uint64_t> cutting_;  // checkpoints that are ordered and not answered
};

}  // namespace antdt::ps
