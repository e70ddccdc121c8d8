// The process of a parameter server, from the greeting of its agent to its exit.
//
//   greeting ──WelcomeHeard──> opening its end point ──EndPointOpened──> greeted
//   greeted ──(the agent does not know it)──> greeting, of another agent
//   any ──LeaveHeard, StopAsked, RefusalHeard, an error──> ended
//
// It sends hello until it is welcomed, however long its agent is away: it ends with its shim, which
// goes on without the agent. It sends join until it is told which group it serves.
// It serves one group at a time, in a LinkedServer (linked_server.h) that its shell makes and runs:
//
//   no group ──GroupOrderHeard──> a group
//   a group ──GroupOrderHeard, of a later generation──> that one, with the rows of the one before
//                                                       if it keeps them
//
// The end point stays open until the end. Answers are not repeated, because the sender of a request
// repeats that.
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
#include "core/wire/servers/ps_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/ps/process/cut_progress.h"
#include "trainer/ps/process/linked_server.h"

namespace antdt::ps {

namespace process {

// ---- inputs
struct WelcomeHeard {
  std::uint32_t version = 0;  // protocol version that the agent chose
};
// Where workers and the other servers reach this process, and its public key for tcp.
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
// SIGTERM arrived.
struct StopAsked {};
struct GroupOrderHeard {
  Generation generation;
  wire::PsServe serve;
};
struct CutOrderHeard {
  Generation generation;
  wire::PsCut cut;
};
// The group could not begin in this process.
struct GroupFailed {
  Error error;
};
// The answer of the group's LinkedServer to the job daemon.
struct OrderTaken {
  wire::PsServing serving;
};
struct CutTaken {
  wire::PsSaved saved;
};
// It cannot become the backup that it was ordered to be.
struct BackupBroken {
  std::string error;
  bool unread = false;  // because of the disk
};
struct TimePassed {};
struct PulsePassed {
  std::uint64_t version = 0;                // number of updates that are applied
  std::optional<CutProgress> writing = {};  // empty: no checkpoint
};
using Input = std::variant<WelcomeHeard, EndPointOpened, EndPointFailed, RefusalHeard, LeaveHeard,
                           StopAsked, GroupOrderHeard, CutOrderHeard, GroupFailed, OrderTaken,
                           CutTaken, BackupBroken, TimePassed, PulsePassed>;

// ---- effects
struct SayHello {};
// For a person who looks why nothing happens.
struct TellOperator {
  std::string text;
};
// Contains its pid.
struct SayJoin {
  wire::Join join;
};
struct OpenEndPoint {};
// Replaces the previous group. With `keep` it goes on with that group's rows, if it has any.
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
// What the server holds, and totals of what it did.
struct SayStats {
  Generation generation;
};
struct EndProcess {
  int code = 0;
};
// The error is for a person.
struct GiveUpProcess {
  Error error;
};
using Effect = std::variant<SayHello, TellOperator, SayJoin, OpenEndPoint, BeginGroup, OrderGroup,
                            OrderSlices, AnswerGroupOrder, RefuseGroupOrder, AnswerCutOrder,
                            SayReport, SayStats, EndProcess, GiveUpProcess>;
using Effects = std::vector<Effect>;

}  // namespace process

class ServerProcess {
 public:
  static constexpr Duration kAgain = std::chrono::milliseconds(500);
  static constexpr Duration kPulse = std::chrono::seconds(1);
  // An operator is told when no agent has answered for so long, and again and again.
  static constexpr Duration kComplainAfter = std::chrono::seconds(10);
  static constexpr Duration kComplainAgain = std::chrono::minutes(1);
  static constexpr int kResumable = 75;  // exit code after SIGTERM
  static constexpr int kLostGroup = 76;  // exit code of one that only a new process can replace

  // `agent`: where it listens, for messages.
  ServerProcess(Member self, std::string agent, MonoTime now)
      : self_(self),
        agent_(std::move(agent)),
        greets_since_(now),
        complains_at_(now + kComplainAfter) {}

  // Appends to `out`; nothing after its end.
  void step(const process::Input& input, MonoTime now, process::Effects& out);

  [[nodiscard]] bool ended() const { return state_ == State::kEnded; }
  [[nodiscard]] bool greeted() const { return state_ == State::kGreeted; }
  // The generation of the newest group; 0: none yet.
  [[nodiscard]] Generation generation() const { return generation_; }
  // The order that is in force.
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

  void greet(MonoTime now);
  void complain(MonoTime now, process::Effects& out);
  void speak(process::Effects& out);
  [[nodiscard]] bool has_group() const { return generation_ != Generation{}; }
  [[nodiscard]] Result<linked::Start> start_of(const wire::PsServe& serve,
                                               Generation generation) const;
  void end(int code, process::Effects& out);
  void give_up(Error error, process::Effects& out);
  void check_invariants() const;

  Member self_;
  std::string agent_;
  State state_ = State::kGreeting;
  MonoTime greets_since_;
  MonoTime complains_at_;  // if it greets still
  std::string endpoint_;   // empty: not open yet
  std::string key_;
  Generation generation_;
  wire::PsServe order_;
  std::set<std::uint64_t> cutting_;  // checkpoints that are ordered and not answered yet
};

}  // namespace antdt::ps
