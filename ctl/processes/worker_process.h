// A worker's process as the job knows it, what has failed so far, and how a job ends: values that
// the lifecycle keeps and the journal stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/job_states.h"
#include "core/wire/agent_messages.h"
#include "ctl/processes/end_classes.h"

namespace antdt::ctl {

// Worker exit codes with a meaning (see docs/worker-client.md).
inline constexpr int kExitConfiguration = 2;
inline constexpr int kExitDataLost = 74;
inline constexpr int kExitResumable = 75;
inline constexpr int kExitCollectiveBroken = 76;
inline constexpr int kExitNeverAgain = 93;

struct PlacedWorker {
  WorkerId worker;
  std::string host;  // end point of its agent
  std::uint32_t host_order = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("host", m.host);
    v("host_order", m.host_order);
  }
};

// What the journal keeps of a process. Names and meaning are the same in every journal so far.
struct WorkerProcessImage {
  PlacedWorker place;
  Attempt attempt;
  std::uint8_t state = 0;  // WorkerProcess::State
  std::uint32_t pid = 0;
  bool asked_to_stop = false;
  bool leaving = false;
  double leaves_until_s = 0;  // set while it is leaving
  bool stays_away = false;    // WorkerProcess::After
  bool comes_back = false;    // with stays_away: WorkerProcess::After
  bool hung = false;          // it was asked to stop because it hung
  bool moves_in = false;      // WorkerProcess::Standing
  bool apart = false;         // with moves_in: WorkerProcess::Standing
  double killed_from_s = 0;   // set when it was asked to stop
  double waits_until_s = 0;
  double started_at_s = 0;
  std::uint32_t quick_failures = 0;
  std::int32_t code = -1;
  std::int32_t signal = 0;
  std::string error;
  std::string last_lines;
  std::string oom;
  bool orphaned = false;
  std::string device;
  double exited_at_s = 0;
  std::string goes_to;  // WorkerProcess::goes_to
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("place", m.place);
    v("attempt", m.attempt);
    v("state", m.state);
    v("pid", m.pid);
    v("asked_to_stop", m.asked_to_stop);
    v("leaving", m.leaving);
    v("leaves_until_s", m.leaves_until_s);
    v("stays_away", m.stays_away);
    v("comes_back", m.comes_back);
    v("hung", m.hung);
    v("moves_in", m.moves_in);
    v("apart", m.apart);
    v("killed_from_s", m.killed_from_s);
    v("waits_until_s", m.waits_until_s);
    v("started_at_s", m.started_at_s);
    v("quick_failures", m.quick_failures);
    v("code", m.code);
    v("signal", m.signal);
    v("error", m.error);
    v("last_lines", m.last_lines);
    v("oom", m.oom);
    v("orphaned", m.orphaned);
    v("device", m.device);
    v("exited_at_s", m.exited_at_s);
    v("goes_to", m.goes_to);
  }
};

// One worker or server, at its present attempt. Its state changes only in the functions below:
//
//   wait() ──> kWaiting ──plan_on()──> kPlanned ──start()──> kStarted ──join()──> kJoined
//                ^   │                    │                     │                    │
//                │   │                    └── exit(), lose(), refuse() ──────────────┘
//                │   │stop_waiting()          v
//                │   └──────────────────> kExited ──remove()──> kRemoved
//                ├──── begin_again(): a new attempt, of any state ────┤
//                └──── wait_for_gang(): the same one, from kExited    │ remove(), from kWaiting
//
// A process may join before its agent has reported that it runs: then start() follows join().
// Besides, a process can be asked to end in two ways, and what was asked of it explains its end
// (failures.h): it can be asked to leave at the end of a step, and it can be stopped with a signal.
// Either may come alone, or the stop after the request to leave. Nothing is asked of a new attempt.
//
//   (nothing) ──ask_to_leave()──> leaves_until_s       (nothing) ──ask_to_stop()──> kAsked
//                                                          └────────found_hung()──> kHung
struct WorkerProcess {
  enum State : std::uint8_t { kPlanned, kStarted, kJoined, kExited, kWaiting, kRemoved };
  // What follows when it has ended as it was asked to.
  enum class After : std::uint8_t {
    kElsewhere,  // a new attempt, if another host has room
    kComesBack,  // a new attempt, on another host if possible, else on the same one
    kStaysAway,  // it is removed
  };
  // How a server process relates to the group that serves.
  enum class Standing : std::uint8_t {
    kOfGroup,  // part of the group, as all workers are
    kMovesIn,  // without replicas: it takes over, or has taken over, from the server's first
               // process
    kApart,    // belongs to the group's next size, or belonged to its last one
  };
  struct StopOrder {
    enum class Why : std::uint8_t { kAsked, kHung };
    Why why = Why::kAsked;
    double killed_from_s = 0;  // from then on, a SIGKILL is ours
  };

  PlacedWorker place;
  Attempt attempt;
  State state = kPlanned;
  std::uint32_t pid = 0;
  std::optional<double> leaves_until_s;  // set when asked to leave; it is killed at that time
  std::optional<StopOrder> stop;
  After after = After::kElsewhere;
  std::string goes_to;  // the host that the next attempt was asked to start on; empty: none
  Standing standing = Standing::kOfGroup;
  double waits_until_s = 0;  // in kWaiting: the earliest time to start it
  double started_at_s = 0;
  std::uint32_t quick_failures = 0;  // how many times in a row it ended soon after its start
  std::int32_t code = -1;
  std::int32_t signal = 0;
  std::string error;
  std::string last_lines;
  std::string oom;
  std::string device;      // what was wrong with a device of it; empty: nothing
  bool orphaned = false;   // its host ended it, because this job's daemon was silent for too long
  double exited_at_s = 0;  // in seconds since the job began

  WorkerProcess() = default;
  explicit WorkerProcess(WorkerProcessImage image);
  [[nodiscard]] WorkerProcessImage image() const;
  // (none) -> kPlanned: the job's first placement.
  [[nodiscard]] static WorkerProcess planned(const PlacedWorker& place, double now_s);
  // (none) -> kWaiting: one more process is wanted. If it had a host, that one is preferred.
  [[nodiscard]] static WorkerProcess wait(const PlacedWorker& place, Attempt attempt,
                                          Standing standing = Standing::kOfGroup);

  // kWaiting -> kPlanned: this host has room for it.
  void plan_on(const std::string& host, std::uint32_t host_order, double now_s);
  // kPlanned -> kStarted, kJoined without a pid -> kJoined. False if it is in no such state.
  [[nodiscard]] bool start(std::uint32_t process_id, double now_s);
  // kPlanned, kStarted -> kJoined. False if it is in no such state.
  [[nodiscard]] bool join();
  // Running -> kExited: its agent saw its end.
  void exit(const wire::ProcessExited& how, double now_s);
  // Running -> kExited: it was lost with its host or its agent; `why` is a sentence.
  void lose(std::string why, double now_s);
  // kPlanned -> kExited: its agent could not start it.
  void refuse(double now_s);
  // Any -> kExited: the job ends, and nobody can report any more what became of the process.
  void forget() { state = kExited; }
  // kWaiting -> kExited: the job ends, or all processes are placed again.
  void stop_waiting();
  // kExited -> kWaiting, in the same attempt: it waits until all processes have ended.
  void wait_for_gang();
  // kExited, kWaiting -> kRemoved: it is not wanted any more.
  void remove() { state = kRemoved; }
  // Any -> kWaiting, as the next attempt. The more often it failed soon after its start, the later
  // it is started.
  void begin_again(double now_s);
  // What it is asked to do while it runs.
  void ask_to_leave(double until_s) { leaves_until_s = until_s; }
  void ask_to_stop(double killed_from_s);
  void found_hung(const std::string& why, double now_s);

  [[nodiscard]] Member member() const { return {place.worker, attempt}; }
  [[nodiscard]] bool is_server() const { return place.worker.role == 's'; }
  [[nodiscard]] bool running() const {
    return state == kPlanned || state == kStarted || state == kJoined;
  }
  [[nodiscard]] bool leaving() const { return leaves_until_s.has_value(); }
  [[nodiscard]] bool asked_to_stop() const { return stop.has_value(); }
  // It was asked to stop, and its time for that is over.
  [[nodiscard]] bool is_to_be_killed(double now_s) const {
    return stop && now_s >= stop->killed_from_s;
  }
  [[nodiscard]] bool hung() const { return stop && stop->why == StopOrder::Why::kHung; }
  [[nodiscard]] bool stays_away() const { return after == After::kStaysAway; }
  [[nodiscard]] bool comes_back() const { return after == After::kComesBack; }
  [[nodiscard]] bool moves_in() const { return standing == Standing::kMovesIn; }
  [[nodiscard]] bool apart() const { return standing == Standing::kApart; }
  // Which invariant is broken; empty: none.
  [[nodiscard]] std::string_view broken_invariant() const;
};
[[nodiscard]] ProcessState process_state(WorkerProcess::State state);
// As reports show it: one that runs and was asked to leave is leaving.
[[nodiscard]] ProcessState reported_state(const WorkerProcess& worker);

// A process that fails this soon after its start, at least twice in a row without having been a
// member in between, is started again with a growing delay.
[[nodiscard]] bool ended_quickly(const WorkerProcess& worker);
[[nodiscard]] double restart_delay_s(std::uint32_t quick_failures);

// One process that ended although nobody had asked it to.
struct FailureRecord {
  // How many bytes of the cause are kept once the incident is over.
  static constexpr std::size_t kMostOfACause = 1'000;
  double time_s = 0;
  WorkerId worker;
  Attempt attempt;
  std::string host;
  std::uint8_t cls = 0;                  // FailureClass
  std::string cause;                     // a sentence
  std::uint64_t incident = 0;            // all failures until training goes on are one incident
  std::optional<double> recovered_in_s;  // how long it took until training went on
  // The step to which training went back for that, 0: its beginning; nothing: it lost no step.
  std::optional<std::uint64_t> went_back_to = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("time_s", m.time_s);
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("host", m.host);
    v("cls", m.cls);
    v("cause", m.cause);
    v("incident", m.incident);
    v("recovered_in_s", m.recovered_in_s);
    v("went_back_to", m.went_back_to);
  }
};

// How a job ended, or will end once everything has stopped.
struct Outcome {
  JobEnd state = JobEnd::kDone;
  std::int32_t code = 0;  // exit code of `antdt run`
  ExitClass exit_class = ExitClass::kDone;
  bool resumable = false;
  std::string first_cause;  // a sentence, with the log lines that prove it
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("state", m.state);
    v("code", m.code);
    v("exit_class", m.exit_class);
    v("resumable", m.resumable);
    v("first_cause", m.first_cause);
  }
};

}  // namespace antdt::ctl
