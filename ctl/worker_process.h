// A worker's process as the job knows it, what has failed so far, and how a job
// ends: the values that the lifecycle keeps and the journal remembers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/messages.h"

namespace antdt::ctl {

// Worker exit codes with a meaning (see docs/worker-client.md).
inline constexpr int kExitConfiguration = 2;
inline constexpr int kExitResumable = 75;
inline constexpr int kExitCollectiveBroken = 76;
inline constexpr int kExitNeverAgain = 93;

// Why a process ended. The order is that of causes: what comes first explains
// what comes later, never the other way round.
enum class FailureClass : std::uint8_t {
  kConfiguration,  // cannot be executed, or ended with an error before the job made a step
  kNeverAgain,     // exit code 93
  kHost,           // its host is lost
  kOom,            // with evidence that memory ran out
  kProgram,        // exited with an error
  kSignal,         // killed by a signal that nobody here sent
  kHang,           // ended by us: it did not answer, or did not move
  kCollective,     // lost its peers: a victim
  kResumable,      // exit code 75: wants the job to stop and go on later
  kAsked,          // ended as it was asked to
  kNone,           // exit code 0
};
[[nodiscard]] std::string_view to_string(FailureClass cls);

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

//   kWaiting ──a host has room──> kPlanned ──> kStarted ──> kJoined
//       ^                            │            │            │
//       └──── restart, new attempt ──┴── kExited <┴────────────┘
//                                            └── evicted, fewer wanted ──> kRemoved
struct WorkerProcess {
  enum State : std::uint8_t { kPlanned, kStarted, kJoined, kExited, kWaiting, kRemoved };
  PlacedWorker place;
  Attempt attempt;
  std::uint8_t state = kPlanned;
  std::uint32_t pid = 0;
  bool said_bye = false;
  bool asked_to_stop = false;
  bool leaving = false;       // asked to leave at the end of a step
  double leaves_until_s = 0;  // leaving: killed from then on
  bool stays_away = false;    // not started again once it has left
  bool comes_back = false;    // leaving: started again where it was, if nowhere else
  bool hung = false;          // ended because of that
  bool moves_in = false;      // of a server without replicas: takes over from its first process
  bool apart = false;         // a server, and not of the group: of the next size, or of the last
  double killed_from_s = 0;   // when asked to stop: from then on a SIGKILL is ours
  double waits_until_s = 0;   // kWaiting: not started before
  double started_at_s = 0;
  std::uint32_t quick_failures = 0;  // in a row, each soon after its start
  std::int32_t code = -1;
  std::int32_t signal = 0;
  std::string error;
  std::string last_lines;
  std::string oom;
  double exited_at_s = 0;  // since the job began
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("place", m.place);
    v("attempt", m.attempt);
    v("state", m.state);
    v("pid", m.pid);
    v("said_bye", m.said_bye);
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
    v("exited_at_s", m.exited_at_s);
  }
  [[nodiscard]] Member member() const { return {place.worker, attempt}; }
  [[nodiscard]] bool is_server() const { return place.worker.role == 's'; }
  [[nodiscard]] bool running() const {
    return state == kPlanned || state == kStarted || state == kJoined;
  }
};
[[nodiscard]] std::string_view state_name(std::uint8_t state);

// One process that ended although nobody had asked it to.
struct FailureRecord {
  double time_s = 0;
  WorkerId worker;
  Attempt attempt;
  std::string host;
  std::uint8_t cls = 0;                  // FailureClass
  std::string cause;                     // a sentence
  std::uint64_t incident = 0;            // failures until training goes on are one incident
  std::optional<double> recovered_in_s;  // until training went on
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
  }
};

// How a job ended, or will end once everything has stopped.
struct Outcome {
  std::string state;       // "done", "failed", "stopped"
  std::int32_t code = 0;   // exit code of `antdt run`
  std::string exit_class;  // "done", "stopped", a FailureClass, "data", "checkpoint", "delivery"
  bool resumable = false;
  std::string first_cause;  // a sentence, with the log lines that show it
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
