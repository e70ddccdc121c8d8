// What a worker says to its job: the library that worker programs link.
//
// It speaks to the agent of its host over the ipc socket that the agent names
// in the environment, and holds no tensor library: any program can use it.
// docs/worker-client.md tells the whole conversation with an example;
// loose.h has the simpler level for programs without collectives.
//
// Threads: connect() starts one message thread that fetches ahead, repeats what
// was not answered and sends reports. Every member function may be called from
// any thread; the training thread never waits for a message but in take() and
// next_directive(). Messages are decided in ClientCore (client_core.h), which
// is pure; this class is its shell.
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
#include "core/wire/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/agent_link.h"
#include "trainer/client/environment.h"

namespace antdt::client {

// An order of the job daemon, in the order in which they came. Orders of a
// generation that is over by the time they are asked for are left out.
struct Directive {
  Generation generation;
  std::variant<wire::Form, wire::Roster, wire::Settle, wire::PhaseStart, wire::Abort, wire::Leave,
               wire::Regroup, wire::PsRoster>
      order;
};

enum class TakeStatus {
  kData,  // pieces hold at least one record
  kWait,  // nothing within the timeout
  kEnd,   // every record of the phase is committed
};
struct Taken {
  TakeStatus status = TakeStatus::kWait;
  std::vector<wire::Piece> pieces;  // in the order in which they must be consumed
  std::uint64_t records = 0;        // in all pieces
  // With kWait: the shard service has nothing now (others hold records that may
  // come back), as opposed to an answer still under way.
  bool dry = false;
  // With kWait: this phase, or its generation, is over; an order follows.
  bool stale = false;
};

// What one batch took. `counts` is false for batches that say nothing of the
// worker's speed, as the first after a change of plan.
struct BatchTimes {
  std::uint64_t samples = 0;
  Duration data{};     // waiting for the batch's data
  Duration compute{};  // forward, backward, update
  Duration wait{};     // in the collective
  bool counts = true;
  bool in_model = true;              // false: it came too late, and its records go back
  std::optional<Duration> hop = {};  // there and back, where it was measured since the last batch
};

// What arrived beside the orders, as it is known by now.
struct Known {
  PlanVersion plan;                    // newest that was received; 0: none
  std::uint64_t checkpoint = 0;        // highest number that was ordered; 0: none
  std::optional<std::uint32_t> leave;  // asked to leave, with this exit code
  bool regroup = false;                // as Client::regroup_requested()
  Generation recorded_of;              // of this generation the steps are recorded (Grants)
  Step recorded;                       // up to here; 0: nowhere
};

// What a process reads, writes or receives that may take long (see wire::Report).
struct Io {
  std::string what = {};  // empty: nothing
  std::string path = {};
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
};

class Client {
 public:
  // Connects and shakes hands. kUnreachable when no agent answers within
  // `timeout`, kRefused when it refuses this attempt or no protocol version is
  // in common (the message names both ranges).
  [[nodiscard]] static Result<std::unique_ptr<Client>> connect(
      const Environment& environment, Duration timeout = std::chrono::seconds(10));
  // The same over another link than the ipc socket that the environment names.
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

  // -------------------------------------------------------------- membership
  // join, send_address, send_ready and a progress that is done are repeated by
  // the message thread until the job daemon's next order answers them.
  void join(const wire::Join& join);
  void send_address(const wire::Address& address);
  void send_ready(const wire::Ready& ready);
  // The next order; nothing when none came within `timeout`. An error (kRefused)
  // means that this attempt is stale: leave, it can change nothing any more.
  // The generation of the last Form, PsRoster, Settle or PhaseStart that was given
  // out is the one that later messages carry.
  [[nodiscard]] Result<std::optional<Directive>> next_directive(Duration timeout);
  // Called on the message thread as soon as an Abort arrives, or an order of a
  // later generation, so that a blocked collective is released; at once, on the
  // caller's thread, when an Abort is waiting in the orders already. The
  // generation given and those before it are over. Must not call this client.
  // Empty: none; the one before is not running any more when this returns.
  void set_abort_handler(std::function<void(Generation)> handler);

  // Of the last order given out; later messages carry it.
  [[nodiscard]] Generation generation() const;
  // All of what follows at once, as the training thread of a member wants it at each step.
  [[nodiscard]] Known known() const;
  // What the slots of a collective step carry.
  [[nodiscard]] PlanVersion held_plan() const;  // newest version received; 0: none
  [[nodiscard]] std::optional<wire::Plan> plan(PlanVersion version) const;
  // Where the servers of that generation are by now, if a roster newer than that of number
  // `than` says so; one that is given out may be older.
  [[nodiscard]] std::optional<wire::PsRoster> servers(Generation generation,
                                                      std::uint64_t than) const;
  [[nodiscard]] std::uint64_t checkpoint_ordered() const;  // highest number; 0: none
  [[nodiscard]] std::optional<wire::Leave> leave_requested() const;
  // A drill of an operator's, above those of job.toml; number 0: there was none.
  [[nodiscard]] wire::Injected injected() const;
  // The generation of the last order given out is to end together, at the end
  // of a step (Regroup), or is over already. A Regroup is an order as well.
  [[nodiscard]] bool regroup_requested() const;

  // ------------------------------------------------------------------ shards
  // Forgets what is in hand and starts phase `phase` of the current generation
  // with place 0; fetching begins when a hold is set.
  void begin_phase(std::uint64_t phase);
  // How many records to keep in hand (several seconds of work): more are
  // fetched as soon as fewer are. 0: fetch nothing.
  void set_hold(std::uint64_t records);
  // The next records in hand, at least one and at most `max_records`; waits up
  // to `timeout` when nothing is. What was taken is not recalled any more. An
  // error (kRefused) as in next_directive.
  [[nodiscard]] Result<Taken> take(std::uint64_t max_records, Duration timeout);
  // Of the records taken since begin_phase, the first `place` are stable. Goes
  // with the next fetch, or alone when there is none soon.
  void commit(std::uint64_t place);
  // Evaluation: and this is what the records since the last commit gave.
  void commit(std::uint64_t place, wire::EvalPartial partial);

  // Of the records taken, so many behind the committed place came too late to their step
  // and are to be another worker's. What was taken behind them has their places once
  // given_back() says so; until then nothing more may be committed, to servers either.
  void give_back(std::uint64_t records);
  // Whether nothing is left to be answered; waits up to `timeout` for it. Also when the phase
  // is over. An error (kRefused) as in next_directive.
  [[nodiscard]] Result<bool> given_back(Duration timeout);

  // ----------------------------------------------------------------- reports
  // Added up; sent at most every 50 ms.
  void report(const BatchTimes& times);
  // Where the wall time of this process went so far; goes with the reports.
  void time_account(const wire::TimeAccount& account);
  // What the training thread does from now on: the name of a field of
  // wire::TimeAccount, a string that lives as long as the program. One store, no
  // lock: the message thread says it at least once a second, so that a thread
  // that is stuck can be told from a process that is stopped. "startup" until
  // it is set, "other" from the first phase on.
  void set_activity(const char* activity);
  // The latest wins, but for a history of steps where it has none; sent at most
  // every 50 ms, but at once when it is done.
  // The part of the time that this process may run, for its agent; 1: all of it.
  void set_throttle(double share);
  // What is read or written from now on, on whatever thread; goes with the reports.
  void set_io(Io io);
  void progress(const wire::Progress& progress);
  void checkpoint_begun(const wire::CheckpointBegun& begun);
  void checkpoint_written(const wire::CheckpointWritten& written);
  // The last message of this worker. Waits up to a second until everything
  // before it has left; samples_total and account are filled in where 0.
  void bye(wire::Bye bye);

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace antdt::client
