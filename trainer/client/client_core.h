// What a worker's client sends and when, without any I/O.
//
// Owned by Client, under its mutex. Two threads feed it: the training thread with its requests, and
// the message thread with what arrived, and with TimePassed when deadline() has come.
// docs/machines.md describes the shape of a machine.
//
//   greeting ──(worker-welcome)──> welcome ──(refused: stale, version, …)──> refused
//      ^                              │
//      └──────(refused: unknown)──────┘   the agent is a new one: greet again
//
// orders.h: which orders are returned, and what is repeated until an order answers it.
// shard_feed.h: which records are held and requested. reports.h: what is reported, and how often.
//
// Nothing is durable: a worker that is started again joins as a new attempt.
#pragma once

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
#include "core/wire/servers/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/trace_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/client.h"
#include "trainer/client/effects.h"
#include "trainer/client/orders.h"
#include "trainer/client/reports.h"
#include "trainer/client/shard_feed.h"

namespace antdt::client {

// What arrived.
using Inbound = std::variant<wire::WorkerWelcome, wire::Refused, wire::Form, wire::Roster,
                             wire::Settle, wire::PhaseStart, wire::Abort, wire::Regroup,
                             wire::Leave, wire::Plan, wire::CheckpointOrder, wire::Grants,
                             wire::Recall, wire::PsRoster, wire::Injected, wire::StackWanted>;
struct MessageReceived {
  Generation generation;
  std::uint64_t seq = 0;
  Inbound body;
};

struct UnreadableReceived {
  std::string why;
};

// Requests of the training thread; wire messages are sent as they are.
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
// See ShardFeed::skip.
struct Skip {
  std::vector<wire::SkippedRecords> records;
};
struct Greet {};  // start the greeting
struct TimePassed {};

using Input =
    std::variant<MessageReceived, UnreadableReceived, Greet, TimePassed, BeginPhase, SetHold,
                 Commit, GiveBack, Skip, BatchTimes, wire::TimeAccount, wire::Join, wire::Address,
                 wire::Ready, wire::Progress, wire::CheckpointBegun, wire::CheckpointWritten,
                 wire::Bye, wire::Traced, wire::StackTold>;

class ClientCore {
 public:
  static constexpr Duration kRepeatAfter = Orders::kRepeatAfter;
  static constexpr Duration kReportEvery = Reports::kReportEvery;
  static constexpr Duration kPulseEvery = Reports::kPulseEvery;

  void step(const Input& input, MonoTime now, Effects& out);
  // Takes from the records that are held; TimePassed afterwards fetches again.
  [[nodiscard]] Taken take(std::uint64_t max_records) { return feed_.take(max_records); }
  // The next order. Its generation becomes the one of later messages.
  [[nodiscard]] std::optional<Directive> next_directive() { return orders_.take_next(); }
  // Whether late records are not yet known to have been given back.
  [[nodiscard]] bool gives_back() const { return feed_.gives_back(); }
  // Whether skipped records are not yet known to the job daemon.
  [[nodiscard]] bool tells_skips() const { return feed_.tells_skips(); }
  [[nodiscard]] std::optional<MonoTime> deadline() const;
  // For the following reports: what the training thread is doing; what it, or a thread beside it,
  // reads or writes that may take long; the part of the time for which this process may run.
  void set_activity(const char* activity) { reports_.set_activity(activity); }
  void set_io(Io io) { reports_.set_io(std::move(io)); }
  void set_traffic(wire::TrafficSums traffic) { reports_.set_traffic(std::move(traffic)); }
  void set_max_micro_batch(std::uint32_t records) { reports_.set_max_micro_batch(records); }
  void set_table_sums(const wire::TableSums& sums) { reports_.set_table_sums(sums); }
  void set_shadow(const wire::ShadowSums& sums) { reports_.set_shadow(sums); }
  void set_updates(const wire::UpdateSums& sums) { reports_.set_updates(sums); }
  void set_throttle(double share) { reports_.set_throttle(share); }

  [[nodiscard]] const std::optional<wire::WorkerWelcome>& welcome() const { return welcome_; }
  // Why this worker cannot go on, if it cannot.
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }
  // What was ordered, and for which generation.
  [[nodiscard]] const Orders& orders() const { return orders_; }
  [[nodiscard]] Known known() const;
  [[nodiscard]] std::uint64_t checkpoint_ordered() const { return checkpoint_ordered_; }
  [[nodiscard]] const wire::Injected& injected() const { return injected_; }
  // The newest number with which a stack was requested; 0: none was.
  [[nodiscard]] std::uint64_t stack_wanted() const { return stack_wanted_; }

 private:
  struct Greeting {
    SendMessage message;
    MonoTime sent_at;
  };

  void on(const MessageReceived& input, MonoTime now, Effects& out);
  void on(const UnreadableReceived& input, MonoTime now, Effects& out);
  void on(const Greet& input, MonoTime now, Effects& out);
  void on(const TimePassed& input, MonoTime now, Effects& out);
  void on(const BeginPhase& input, MonoTime now, Effects& out);
  void on(const SetHold& input, MonoTime now, Effects& out);
  void on(const Commit& input, MonoTime now, Effects& out);
  void on(const GiveBack& input, MonoTime now, Effects& out);
  void on(const Skip& input, MonoTime now, Effects& out);
  void on(const BatchTimes& input, MonoTime now, Effects& out);
  void on(const wire::TimeAccount& input, MonoTime now, Effects& out);
  void on(const wire::Progress& input, MonoTime now, Effects& out);
  void on(const wire::Bye& input, MonoTime now, Effects& out);
  // Join, Address and Ready are kept and repeated until they are answered. The others are sent
  // once.
  template <class Message>
  void on(const Message& input, MonoTime now, Effects& out);

  void hear(const wire::WorkerWelcome& welcome, MonoTime now);
  void hear(const wire::Refused& refused, MonoTime now, Effects& out);
  void hear_recorded(Generation generation, Step step);
  void hear_of_membership(const MessageReceived& input, Effects& out);
  void check_invariants() const;

  std::optional<wire::WorkerWelcome> welcome_;
  std::optional<Error> refusal_;
  std::optional<Greeting> greeting_;
  Orders orders_;
  std::uint64_t checkpoint_ordered_ = 0;
  wire::Injected injected_;  // the newest
  std::uint64_t stack_wanted_ = 0;
  Generation recorded_of_;  // the newest generation whose steps are recorded
  Step recorded_;           // recorded up to here
  ShardFeed feed_;
  Reports reports_;
};

}  // namespace antdt::client
