// The conversation of a worker with its job: the library that worker programs link.
//
// It connects to the agent of its host over the ipc socket that the agent names in the environment.
// It contains no tensor library, so any program can use it. docs/worker-client.md describes the
// whole conversation with an example; loose.h is the simpler level for programs without
// collectives.
//
// Threads: connect() starts one message thread, which fetches in advance, repeats what was not
// answered, and sends reports. Every member function may be called from any thread. The training
// thread waits for messages only in take() and next_directive(). ClientCore (client_core.h), which
// is pure, decides about messages; this class is its shell.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/drill_messages.h"
#include "core/wire/membership_messages.h"
#include "core/wire/servers/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/trace_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/agent_link.h"
#include "trainer/client/environment.h"

namespace antdt::client {

// An order of the job daemon. Orders are returned in the order in which they came, without those of
// a generation that is over by then.
struct Directive {
  Generation generation;
  std::variant<wire::Form, wire::Roster, wire::Settle, wire::PhaseStart, wire::Abort, wire::Leave,
               wire::Regroup, wire::PsRoster>
      order;
};

enum class TakeStatus {
  kData,  // `pieces` has at least one record
  kWait,  // nothing arrived within the timeout
  kEnd,   // every record of the phase is committed
};
struct Taken {
  TakeStatus status = TakeStatus::kWait;
  std::vector<wire::Piece> pieces;  // in the order in which they must be consumed
  std::uint64_t records = 0;        // number of records in all pieces
  // With kWait: the shard service has nothing now (others hold records that may be given back), as
  // opposed to an answer that is still on its way.
  bool dry = false;
  // With kWait: this phase, or its generation, is over; an order follows.
  bool stale = false;
};

// The times of one batch. `counts` is false for batches that say nothing about the worker's speed,
// such as the first after a change of plan.
struct BatchTimes {
  std::uint64_t samples = 0;
  Duration data{};     // waiting for the batch's data
  Duration compute{};  // forward, backward, update
  Duration wait{};     // in the collective
  bool counts = true;
  bool in_model = true;  // false: the push came too late, and its records are given back
  std::optional<Duration> hop = {};  // round-trip time, if it was measured since the last batch
  std::uint64_t of_others = 0;  // samples, of `samples`: of other workers' parts (shared steps)
};

// What has arrived besides the orders.
struct Known {
  PlanVersion plan;                    // the newest that was received; 0: none
  std::uint64_t checkpoint = 0;        // the highest number that was ordered; 0: none
  std::optional<std::uint32_t> leave;  // set if the worker is asked to leave: its exit code
  bool regroup = false;                // like Client::regroup_requested()
  Generation recorded_of;              // the generation whose steps are recorded (Grants)
  Step recorded;                       // recorded up to here; 0: none
};

// Something that a process reads, writes or receives and that may take long (see wire::Report).
struct Io {
  std::string what = {};  // empty: nothing
  std::string path = {};
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
};

class Tracing;

class Client {
 public:
  // Connects and greets the agent. kUnreachable if no agent answers within `timeout`; kRefused if
  // it refuses this attempt or there is no common protocol version (the message names both ranges).
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(
      const Environment& environment, Duration timeout = std::chrono::seconds(10));
  // The same over another link than the ipc socket in the environment.
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(
      const Environment& environment, std::unique_ptr<AgentLink> link,
      Duration timeout = std::chrono::seconds(10));
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Member member() const;
  [[nodiscard]] const std::string& job() const;
  [[nodiscard]] const std::string& host() const;
  [[nodiscard]] const std::string& run_dir() const;
  [[nodiscard]] const std::string& config_json() const;  // the job's effective configuration

  // ------------------------------------------------------------------ membership
  // The message thread repeats join, send_address, send_ready and a progress that is done until the
  // job daemon's next order answers them.
  void join(const wire::Join& join);
  void send_address(const wire::Address& address);
  void send_ready(const wire::Ready& ready);
  // The next order; empty if none came within `timeout`. The error (kRefused) means that this
  // attempt is stale: the worker must leave, because it can change nothing any more. Later messages
  // carry the generation of the last Form, PsRoster, Settle or PhaseStart that was returned.
  [[nodiscard]] Result<std::optional<Directive>> next_directive(Duration timeout);
  // `handler` is called on the message thread as soon as an Abort or an order of a later generation
  // arrives, so that a blocked collective is released. If an Abort is waiting among the orders
  // already, it is called at once, on the caller's thread. The given generation and those before it
  // are over. The handler must not call this client. Empty: no handler. When this returns, the
  // previous handler is not running any more.
  void set_abort_handler(std::function<void(Generation)> handler);

  // The generation of the last order that was returned; later messages carry it.
  [[nodiscard]] Generation generation() const;
  // The results of the next functions in one call, as the training thread of a member needs them at
  // each step.
  [[nodiscard]] Known known() const;
  // The values for the slot of a collective step.
  [[nodiscard]] PlanVersion held_plan() const;  // newest version received; 0: none
  [[nodiscard]] std::optional<wire::Plan> plan(PlanVersion version) const;
  // Where the servers of that generation are, if a roster with a higher number than `than` is
  // known. A roster that was returned as an order may be older.
  [[nodiscard]] std::optional<wire::PsRoster> servers(Generation generation,
                                                      std::uint64_t than) const;
  [[nodiscard]] std::uint64_t checkpoint_ordered() const;  // highest number; 0: none
  [[nodiscard]] std::optional<wire::Leave> leave_requested() const;
  // A fault injection that an operator ordered, in addition to those of job.toml; number 0: there
  // was none.
  [[nodiscard]] wire::Injected injected() const;
  // Whether the generation of the last returned order will end together, at the end of a step
  // (Regroup), or is over already. A Regroup is also returned as an order.
  [[nodiscard]] bool regroup_requested() const;

  // ---------------------------------------------------------------------- shards
  // Forgets the records that it holds, and starts phase `phase` of the current generation with
  // place 0. Fetching begins when a hold is set.
  void begin_phase(std::uint64_t phase);
  // How many records to hold (several seconds of work): when fewer are held, more are fetched. 0:
  // fetch nothing.
  void set_hold(std::uint64_t records);
  // Takes the next records that are held, at least one and at most `max_records`; waits up to
  // `timeout` if there are none. Records that were taken cannot be recalled. The error (kRefused)
  // is as in next_directive.
  [[nodiscard]] Result<Taken> take(std::uint64_t max_records, Duration timeout);
  // Of the records taken since begin_phase, the first `place` are stable. Sent with the next fetch,
  // or alone if there is none soon.
  void commit(std::uint64_t place);
  // For an evaluation: also with the results of the records since the last commit.
  void commit(std::uint64_t place, wire::EvalPartial partial);

  // The `records` records behind the committed place came too late to their step and are meant for
  // another worker. When given_back() says so, the records that were taken behind them have their
  // places. Until then nothing more may be committed, not to servers either.
  void give_back(std::uint64_t records);
  // Whether nothing is left to be answered; waits up to `timeout` for it. True also if the phase is
  // over. The error (kRefused) is as in next_directive.
  [[nodiscard]] Result<bool> given_back(Duration timeout);

  // These records, taken and not committed, were skipped by the program: places since begin_phase.
  // The step that has them may complete when skips_told() says so.
  void skip(std::vector<wire::SkippedRecords> records);
  // Whether the job daemon has stored all of them; waits up to `timeout` for it. True also if the
  // phase is over. The error (kRefused) is as in next_directive.
  [[nodiscard]] Result<bool> skips_told(Duration timeout);

  // --------------------------------------------------------------------- reports
  // Reports are added up and sent at most every 50 ms.
  void report(const BatchTimes& times);
  // How the wall time of this process was spent so far; sent with the reports.
  void time_account(const wire::TimeAccount& account);
  // What the training thread does from now on: the name of a field of wire::TimeAccount, a string
  // that lives as long as the program. This is one atomic store. The message thread reports it at
  // least once a second, so that a thread that is stuck can be distinguished from a process that is
  // stopped. It is "startup" until it is set, and "other" from the first phase on.
  void set_activity(const char* activity);
  // The latest progress counts, except that it keeps an earlier history of steps if it has none.
  // Sent at most every 50 ms, but at once if it is done. set_throttle: the part of the time for
  // which this process may run, for its agent; 1: all of it.
  void set_throttle(double share);
  // What is read or written from now on, on whatever thread; sent with the reports.
  void set_io(Io io);
  // What this process exchanged in collectives so far; sent with a report each second, or less
  // often if it has many lines.
  void set_traffic(wire::TrafficSums traffic);
  // The most records of a micro-batch that fit the device's memory; 0: not known.
  void set_max_micro_batch(std::uint32_t records);
  // How this process summed the gradient of an embedding table so far.
  void set_table_sums(const wire::TableSums& sums);
  // The exchanges of this process's replica of the dense parameters so far.
  void set_shadow(const wire::ShadowSums& sums);
  void set_updates(const wire::UpdateSums& sums);
  void progress(const wire::Progress& progress);
  void checkpoint_begun(const wire::CheckpointBegun& begun);
  void checkpoint_written(const wire::CheckpointWritten& written);

  // The last message of this worker. Waits up to a second until everything before it has been sent;
  // samples_total and account are filled in if they are 0; table_sums, traffic and shadow are what
  // set_table_sums(), set_traffic() and set_shadow() said.
  void bye(wire::Bye bye);

  // The part of the conversation that is about a traced script. It ends with this client.
  [[nodiscard]] Tracing tracing();

 private:
  friend class Tracing;
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What is said about a script that knows nothing of its job (core/wire/trace_messages.h).
class Tracing {
 public:
  void traced(const wire::Traced& traced);
  void stack_told(const wire::StackTold& told);
  // Waits until a stack is requested with a number above `than`, or until `timeout`; returns the
  // newest number. The error (kRefused) is as in Client::next_directive.
  [[nodiscard]] Result<std::uint64_t> stack_wanted(std::uint64_t than, Duration timeout);

 private:
  friend class Client;
  explicit Tracing(Client::State& client) : client_(client) {}
  Client::State& client_;
};

}  // namespace antdt::client
