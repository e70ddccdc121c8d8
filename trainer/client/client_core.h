// What a worker's client says and when, without any I/O.
//
// Owned by Client, under its mutex. Two parties feed it: the training thread
// with its wishes and the message thread with what arrived and with Tick when
// deadline() has come. Each step returns what to send.
//
//   greeting ──(worker-welcome)──> welcome ──(refused: stale, version, …)──> refused
//      ^                              │
//      └──────(refused: unknown)──────┘   the agent is a new one: greet again
//
// From the welcome to the bye something is reported at least once a second,
// whatever the training thread does: a process that is stopped falls silent.
//
// Messages that must not be lost and whose answer is an order of the job daemon
// (hello, join, address, ready, progress that is done) are *standing*: repeated
// until that order, or one that makes them pointless, has come. Orders may come
// twice for that reason; the second is dropped. With parameter servers a phase
// counts only after the roster of its generation: without it the join stands, or
// the generation before ends and is left with a join, which brings both again.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "core/wire/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/client.h"
#include "trainer/client/shard_feed.h"

namespace antdt::client {

// What arrived.
using Inbound =
    std::variant<wire::WorkerWelcome, wire::Refused, wire::Form, wire::Roster, wire::Settle,
                 wire::PhaseStart, wire::Abort, wire::Regroup, wire::Leave, wire::Plan,
                 wire::CheckpointOrder, wire::Grants, wire::Recall, wire::PsRoster, wire::Injected>;
struct Received {
  Generation generation;
  std::uint64_t seq = 0;
  Inbound body;
};

struct Unreadable {
  std::string why;
};

// What the training thread wants; wire messages are said as they are.
struct BeginPhase {
  std::uint64_t phase = 0;
};
struct SetHold {
  std::uint64_t records = 0;
};
struct Commit {
  std::uint64_t place = 0;
  std::optional<wire::EvalPartial> partial;
};
struct GiveBack {
  std::uint64_t records = 0;
};
struct Greet {};  // start the handshake
struct Tick {};

using Event =
    std::variant<Received, Unreadable, Greet, Tick, BeginPhase, SetHold, Commit, GiveBack,
                 BatchTimes, wire::TimeAccount, wire::Join, wire::Address, wire::Ready,
                 wire::Progress, wire::CheckpointBegun, wire::CheckpointWritten, wire::Bye>;

using OutboundBody = std::variant<wire::Hello, wire::Join, wire::Address, wire::Ready, wire::Fetch,
                                  wire::Recalled, wire::Report, wire::Progress,
                                  wire::CheckpointBegun, wire::CheckpointWritten, wire::Bye>;
struct Outbound {
  Generation generation;
  std::uint64_t seq = 0;
  OutboundBody body;
};

struct Effects {
  std::vector<Outbound> send;
  // Release what waits in the collective of this generation or an earlier one.
  std::optional<Generation> abort;
};

class ClientCore {
 public:
  static constexpr Duration kRepeatAfter = std::chrono::milliseconds(500);
  static constexpr Duration kReportEvery = std::chrono::milliseconds(50);
  static constexpr Duration kPulseEvery = std::chrono::seconds(1);

  [[nodiscard]] Effects step(const Event& event, MonoTime now);
  // Takes from the records in hand; a Tick afterwards fetches anew.
  [[nodiscard]] Taken take(std::uint64_t max_records) { return feed_.take(max_records); }
  // The next order. Its generation becomes the one of later messages.
  [[nodiscard]] std::optional<Directive> next_directive();
  [[nodiscard]] bool has_directive() const { return !orders_.empty(); }
  // What came too late is not yet known to have been given back.
  [[nodiscard]] bool gives_back() const { return feed_.gives_back(); }
  [[nodiscard]] std::optional<MonoTime> deadline() const;
  // What the training thread is doing, for the reports that follow.
  void set_activity(const char* activity) { activity_ = activity; }
  // Likewise what it, or a thread beside, reads or writes that may take long.
  void set_io(Io io) { io_ = std::move(io); }
  // Said from the next report on.
  void set_throttle(double share) {
    throttle_permille_ = share < 1 ? std::max(1U, static_cast<std::uint32_t>(1000 * share)) : 0;
  }

  [[nodiscard]] const std::optional<wire::WorkerWelcome>& welcome() const { return welcome_; }
  // Why this worker cannot go on, if so.
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }
  [[nodiscard]] Generation generation() const { return current_; }  // of the last order given out
  [[nodiscard]] Known known() const;
  [[nodiscard]] PlanVersion held_plan() const;
  [[nodiscard]] std::optional<wire::Plan> plan(PlanVersion version) const;
  // Where the servers of that generation are, as far as is known: the newest that was said, if
  // its number is greater than `than`.
  [[nodiscard]] std::optional<wire::PsRoster> servers(Generation generation,
                                                      std::uint64_t than) const;
  [[nodiscard]] std::uint64_t checkpoint_ordered() const { return checkpoint_ordered_; }
  [[nodiscard]] const std::optional<wire::Leave>& leave_requested() const { return leave_; }
  [[nodiscard]] const wire::Injected& injected() const { return injected_; }
  [[nodiscard]] Step steps_recorded(Generation generation) const {
    return generation == recorded_of_ ? recorded_ : Step{};
  }
  // The generation of the last order given out is to end, or is over.
  [[nodiscard]] bool regroup_requested() const {
    return regroup_ > Generation{} && regroup_ >= current_;
  }
  // Of an abort that was not given out yet.
  [[nodiscard]] std::optional<Generation> abort_waiting() const;

 private:
  struct Standing {
    Outbound message;
    MonoTime sent_at;
  };
  // Samples, times and progress since they were last sent.
  struct Unsent {
    wire::Report report;
    bool has_report = false;
    std::optional<wire::Progress> progress;
    Generation progress_generation;  // a place counts in one generation only
    std::optional<MonoTime> report_sent_at, progress_sent_at;
  };

  void on(const Received& event, MonoTime now, Effects& effects);
  void on(const Unreadable& event, MonoTime now, Effects& effects);
  void on(const Greet&, MonoTime now, Effects& effects);
  void on(const Tick&, MonoTime now, Effects& effects);
  void on(const BeginPhase& event, MonoTime now, Effects& effects);
  void on(const SetHold& event, MonoTime now, Effects& effects);
  void on(const Commit& event, MonoTime now, Effects& effects);
  void on(const GiveBack& event, MonoTime now, Effects& effects);
  void on(const BatchTimes& times, MonoTime now, Effects& effects);
  void on(const wire::TimeAccount& account, MonoTime now, Effects& effects);
  void on(const wire::Join& join, MonoTime now, Effects& effects);
  void on(const wire::Address& address, MonoTime now, Effects& effects);
  void on(const wire::Ready& ready, MonoTime now, Effects& effects);
  void on(const wire::Progress& progress, MonoTime now, Effects& effects);
  void on(const wire::CheckpointBegun& begun, MonoTime now, Effects& effects);
  void on(const wire::CheckpointWritten& written, MonoTime now, Effects& effects);
  void on(const wire::Bye& bye, MonoTime now, Effects& effects);

  void welcomed(const wire::WorkerWelcome& welcome, MonoTime now);
  void refused(const wire::Refused& refused, MonoTime now, Effects& effects);
  void order(Generation generation, decltype(Directive::order) order, Effects& effects);
  [[nodiscard]] bool awaits_settle(Generation generation) const;
  // The newest generation whose servers are known; 0: none, or there are no servers.
  [[nodiscard]] Generation rostered() const;
  // Whether a phase of this generation means anything to this worker.
  [[nodiscard]] bool is_prepared_for(Generation generation) const;
  void roster_is_missing(Generation generation, Effects& effects);
  void hold_servers(Generation generation, const wire::PsRoster& roster);
  void hold_plan(const wire::Plan& plan);
  void recorded(Generation generation, Step step);
  void aborted(Generation generation, const wire::Abort& abort, Effects& effects);

  void stand(OutboundBody body, MonoTime now, Effects& effects);
  void flush_report(MonoTime now, Effects& effects);
  void send_report(MonoTime now, Effects& effects);
  void flush_progress(MonoTime now, Effects& effects);

  std::optional<wire::WorkerWelcome> welcome_;
  std::optional<Error> refusal_;
  std::optional<Standing> greeting_;
  std::optional<Standing> standing_;

  Generation newest_;   // that an order named
  Generation current_;  // of the last order given out
  Generation regroup_;  // the newest that was told to end together
  std::deque<Directive> orders_;
  // The last order of each kind, to know a repeated one: (generation, phase).
  std::map<std::size_t, std::pair<Generation, std::uint64_t>> seen_;
  // A phase that came before the Settle of its generation: begun after it. To
  // train without would be to count places from somewhere else than the others.
  std::optional<std::pair<Generation, wire::PhaseStart>> early_phase_;
  std::map<PlanVersion, wire::Plan> plans_;
  std::uint64_t checkpoint_ordered_ = 0;
  std::optional<std::pair<Generation, wire::PsRoster>> servers_;  // the newest
  std::optional<wire::Leave> leave_;
  wire::Injected injected_;  // newest
  Generation recorded_of_;   // the newest whose steps are recorded
  Step recorded_;            // up to here

  ShardFeed feed_;
  Unsent unsent_;
  std::uint64_t samples_total_ = 0;
  wire::TimeAccount account_;
  Step step_;  // the last that the training thread spoke of
  const char* activity_ = "startup";
  Io io_;
  std::uint32_t throttle_permille_ = 0;
  std::optional<MonoTime> pulse_at_;  // when to report though nothing is new; none: not now
};

}  // namespace antdt::client
