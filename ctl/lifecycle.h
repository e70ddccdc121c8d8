// The life of a job: its workers are started, meet, go through the phases
// (train 0, eval 0, train 1, …, finish) and end; or something fails, and the
// first cause is found and told.
//
//   kStarting ──processes run──> kForming ──settled──> kTraining <──> kEvaluating
//        │                           │                     │               │
//        └───────── failure, stop ───┴─────────────────────┴───> kStopping─┤
//                                                                          v
//                              kFinishing ──all left──> kDone | kFailed | kStopped
//
// A value without I/O. The job daemon owns one and journals its image
// (`image()`) whenever `SaveImage` is among the effects, before anything else
// of that step is sent; `restore()` takes the last image after a restart.
//
// Loose members (a Join with collective = false) need no meeting: the first
// phase opens with the first of them. Programs that do not speak the protocol
// ("torchrun", "exec") have no phases: they are done when all have exited.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/messages.h"

namespace antdt::ctl {

enum class JobState {
  kStarting,
  kForming,
  kTraining,
  kEvaluating,
  kFinishing,
  kStopping,
  kDone,
  kFailed,
  kStopped,
};
[[nodiscard]] std::string_view to_string(JobState state);

enum class Protocol { kAntdt, kTorchrun, kExec };

// Worker exit codes with a meaning (see docs/worker-client.md).
inline constexpr int kExitConfiguration = 2;
inline constexpr int kExitResumable = 75;
inline constexpr int kExitCollectiveBroken = 76;

// What the lifecycle needs to know of the job.
struct JobSpec {
  Protocol protocol = Protocol::kAntdt;
  bool external = false;  // no worker is started: clients come by themselves
  std::uint32_t epochs = 1;
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  Duration checkpoint_every{};  // 0: only at the end
  Duration stop_grace = std::chrono::seconds(10);
};

struct PlacedWorker {
  WorkerId worker;
  std::string host;
  std::uint32_t host_order = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.worker);
    v("host", m.host);
    v("host_order", m.host_order);
  }
};

// A worker's process as the job knows it.
struct WorkerProcess {
  enum State : std::uint8_t { kPlanned, kStarted, kJoined, kExited };
  PlacedWorker place;
  Attempt attempt;
  std::uint8_t state = kPlanned;
  std::uint32_t pid = 0;
  bool said_bye = false;
  bool asked_to_stop = false;
  double killed_from_s = 0;  // when asked to stop: from then on a SIGKILL is ours
  std::int32_t code = -1;
  std::int32_t signal = 0;
  std::string error;
  std::string last_lines;
  double exited_at_s = 0;  // since the job began
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("place", m.place);
    v("attempt", m.attempt);
    v("state", m.state);
    v("pid", m.pid);
    v("said_bye", m.said_bye);
    v("asked_to_stop", m.asked_to_stop);
    v("killed_from_s", m.killed_from_s);
    v("code", m.code);
    v("signal", m.signal);
    v("error", m.error);
    v("last_lines", m.last_lines);
    v("exited_at_s", m.exited_at_s);
  }
  [[nodiscard]] Member member() const { return {place.worker, attempt}; }
  [[nodiscard]] bool running() const { return state != kExited; }
};

// How a job ended, or will end once everything has stopped.
struct Outcome {
  std::string state;       // "done", "failed", "stopped"
  std::int32_t code = 0;   // exit code of `antdt run`
  std::string exit_class;  // "done", "program", "configuration", "signal", "collective", "host",
                           // "data", "stopped"
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

// What survives a restart of the job daemon.
struct LifecycleImage {
  std::uint8_t state = 0;
  std::vector<WorkerProcess> workers;
  std::uint64_t phase = 0;  // 0: none opened yet
  bool collective = true;
  std::uint64_t checkpoints_ordered = 0;
  std::uint64_t checkpoints_stored = 0;
  std::optional<Outcome> outcome;  // set from kStopping on
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("state", m.state);
    v("workers", m.workers);
    v("phase", m.phase);
    v("collective", m.collective);
    v("checkpoints_ordered", m.checkpoints_ordered);
    v("checkpoints_stored", m.checkpoints_stored);
    v("outcome", m.outcome);
  }
};

namespace job {

// ---- events
struct Placed {
  std::vector<PlacedWorker> workers;
};
struct Started {
  Member member;
  std::uint32_t pid = 0;
};
struct Exited {
  Member member;
  wire::ProcessExited exit;
};
struct StartRefused {
  Member member;
  std::string reason;
};
struct Joined {
  Member member;
  bool collective = true;
};
struct GenerationSettled {
  Generation generation;
};
struct PhaseDrained {
  std::uint64_t phase = 0;
};  // every record of it is committed
struct MemberDone {
  Member member;
  std::uint64_t phase = 0;
};  // Progress with done
struct CheckpointStored {
  std::uint64_t number = 0;
  std::string error;
};
struct SaidBye {
  Member member;
  std::string error;
};
struct StopAsked {
  std::string reason;
  Duration grace{};
};
// The job cannot go on: `exit_class` and `code` as in Outcome.
struct Failed {
  std::string exit_class;
  std::int32_t code = 1;
  std::string reason;
};
struct Tick {};
using Event =
    std::variant<Placed, Started, Exited, StartRefused, Joined, GenerationSettled, PhaseDrained,
                 MemberDone, CheckpointStored, SaidBye, StopAsked, Failed, Tick>;

// ---- effects
struct SaveImage {};
struct StartWorker {
  Member member;
  std::string host;
};
struct StopWorker {
  Member member;
  std::string host;
  Duration grace{};
};
struct ExpectMembers {
  std::vector<WorkerProcess> workers;
};  // for Membership
struct OpenPhase {
  wire::PhaseStart start;
};  // in the ledger, then to every member
struct OrderCheckpoint {
  std::uint64_t number = 0;
};  // to every member
struct LeaveAll {
  wire::Leave leave;
};
struct Note {
  std::string kind;
  std::string text;
};  // for events.jsonl and the live view
struct End {
  Outcome outcome;
};
using Effect = std::variant<SaveImage, StartWorker, StopWorker, ExpectMembers, OpenPhase,
                            OrderCheckpoint, LeaveAll, Note, End>;

}  // namespace job

class Lifecycle {
 public:
  explicit Lifecycle(JobSpec spec) : spec_(spec) {}

  [[nodiscard]] std::vector<job::Effect> step(const job::Event& event, MonoTime now);

  [[nodiscard]] const LifecycleImage& image() const { return image_; }
  void restore(LifecycleImage image) { image_ = std::move(image); }

  [[nodiscard]] JobState state() const { return static_cast<JobState>(image_.state); }
  [[nodiscard]] const std::vector<WorkerProcess>& workers() const { return image_.workers; }
  [[nodiscard]] const WorkerProcess* find(WorkerId worker) const;
  [[nodiscard]] bool is_current(Member member) const;
  // The phase that is open (what == "" if none is).
  [[nodiscard]] wire::PhaseStart phase() const { return describe(image_.phase); }
  [[nodiscard]] bool collective() const { return image_.collective; }

 private:
  using Effects = std::vector<job::Effect>;
  void on(const job::Placed& e, Effects& out);
  void on(const job::Started& e, Effects& out);
  void on(const job::Exited& e, Effects& out);
  void on(const job::StartRefused& e, Effects& out);
  void on(const job::Joined& e, Effects& out);
  void on(const job::GenerationSettled& e, Effects& out);
  void on(const job::PhaseDrained& e, Effects& out);
  void on(const job::MemberDone& e, Effects& out);
  void on(const job::CheckpointStored& e, Effects& out);
  void on(const job::SaidBye& e, Effects& out);
  void on(const job::StopAsked& e, Effects& out);
  void on(const job::Failed& e, Effects& out);
  void on(const job::Tick& e, Effects& out);

  [[nodiscard]] wire::PhaseStart describe(std::uint64_t phase) const;
  [[nodiscard]] std::uint64_t last_phase() const;  // number of "finish"
  WorkerProcess* find_mutable(Member member);
  void set_state(JobState state) { image_.state = static_cast<std::uint8_t>(state); }
  [[nodiscard]] double seconds() const;  // since the job began
  [[nodiscard]] bool stopping() const { return image_.outcome.has_value(); }
  void open_phase(std::uint64_t phase, Effects& out);
  void advance_if_complete(Effects& out);
  void order_checkpoint(Effects& out);
  void fail(Outcome outcome, Effects& out);
  void stop_all(Duration grace, Effects& out);
  void end_if_all_left(Effects& out);
  [[nodiscard]] Outcome judge_exits() const;

  JobSpec spec_;
  LifecycleImage image_;
  MonoTime now_{};
  std::optional<MonoTime> began_;
  MonoTime last_checkpoint_{};
  std::optional<MonoTime> stop_deadline_;
  bool killed_ = false;  // the deadline passed once: everybody got SIGKILL
  bool ended_ = false;
  bool drained_ = false;                         // the ledger says so of the open phase
  std::map<WorkerId, std::uint64_t> done_with_;  // highest phase each member is done with
};

}  // namespace antdt::ctl
