// The life of a job: its workers are started, meet, go through the phases
// (train 0, eval 0, train 1, …, finish) and end; what fails is classed, counted
// and started again, until the job is done or a cause ends it.
//
//   kStarting ──processes run──> kForming ──settled──> kTraining <──> kEvaluating
//        │                           │                     │               │
//        └── a failure that ends it, stop ─────────────────┴───> kStopping─┤
//                                                                          v
//                              kFinishing ──all left──> kDone | kFailed | kStopped
//
// A process that fails becomes a new attempt of the same worker, on a host with
// room (restart = "member"), or all of them do together (restart = "gang").
// Membership decides who trains meanwhile.
//
// A value without I/O. The job daemon owns one and journals its image
// (`image()`) whenever `SaveImage` is among the effects, before anything else
// of that step is sent; `restore()` takes the last image after a restart.
//
// With parameter servers ([roles.server]) a generation is that of the server group:
// the workers that it begins with. Servers begin with the workers, and leave when
// all of these have left.
//
// Loose members (a Join with collective = false) need no meeting: the first
// phase opens with the first of them. Programs that do not speak the protocol
// ("torchrun", "exec") have no phases: they are done when all have exited.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/delivery.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/failures.h"
#include "ctl/hosts.h"
#include "ctl/job_events.h"
#include "ctl/worker_process.h"

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
enum class Restart { kNever, kMember, kGang };

// What the lifecycle needs to know of the job.
struct JobSpec {
  Protocol protocol = Protocol::kAntdt;
  Restart restart = Restart::kMember;
  bool external = false;  // no worker is started: clients come by themselves
  std::uint32_t epochs = 1;
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  Duration checkpoint_every{};  // 0: only at the end
  Duration stop_grace = std::chrono::seconds(10);
  std::map<std::string, std::uint32_t> budgets;  // by FailureClass
  Duration budget_refill = std::chrono::minutes(10);
  // Parameter servers: how many (0: none), and [trainer] sync, backup_workers, staleness.
  std::uint32_t servers = 0;
  std::string sync = "allreduce";
  std::uint32_t backups = 0;
  std::uint64_t staleness = 0;
  std::uint32_t server_replicas = 1;  // processes that are one server
  Delivery delivery = Delivery::kExactlyOnce;
  [[nodiscard]] std::uint32_t server_processes() const { return servers * server_replicas; }
};

// What survives a restart of the job daemon.
struct LifecycleImage {
  std::uint8_t state = 0;
  std::vector<WorkerProcess> workers;
  std::vector<HostState> hosts;
  std::uint64_t phase = 0;  // 0: none opened yet
  bool collective = true;
  bool made_progress = false;
  bool gang_stops = false;                // until all have exited, then all start again
  std::uint32_t gang_quick_failures = 0;  // in a row, each soon after the start
  double gang_waits_until_s = 0;          // not started again before
  std::uint64_t checkpoints_ordered = 0;
  std::uint64_t checkpoints_stored = 0;
  bool checkpoint_pending = false;
  bool model_kept = false;  // the final one is in place: everybody may leave
  std::vector<FailureRecord> failures;
  std::uint64_t incident = 1;  // the one that failures belong to now
  Budgets::Image budgets;
  double trained_s = 0;
  double seconds = 0;                // since the job began, when this was written
  std::optional<Outcome> outcome;    // set from kStopping on
  std::string over_budget;           // which budget a failure that ends the job exceeded
  std::uint32_t servers = 0;         // 0: as many as the job file says
  std::uint32_t servers_wanted = 0;  // 0: no others
  std::uint64_t last_cut = 0;        // the checkpoint that they wait for; 0: not ordered
  std::uint32_t servers_failed = 0;  // tries to become so many
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("state", m.state);
    v("workers", m.workers);
    v("hosts", m.hosts);
    v("phase", m.phase);
    v("collective", m.collective);
    v("made_progress", m.made_progress);
    v("gang_stops", m.gang_stops);
    v("gang_quick_failures", m.gang_quick_failures);
    v("gang_waits_until_s", m.gang_waits_until_s);
    v("checkpoints_ordered", m.checkpoints_ordered);
    v("checkpoints_stored", m.checkpoints_stored);
    v("checkpoint_pending", m.checkpoint_pending);
    v("model_kept", m.model_kept);
    v("failures", m.failures);
    v("incident", m.incident);
    v("budgets", m.budgets);
    v("trained_s", m.trained_s);
    v("seconds", m.seconds);
    v("outcome", m.outcome);
    v("over_budget", m.over_budget);
    v("servers", m.servers);
    v("servers_wanted", m.servers_wanted);
    v("last_cut", m.last_cut);
    v("servers_failed", m.servers_failed);
  }
};

class Lifecycle {
 public:
  explicit Lifecycle(JobSpec spec) : spec_(spec), budgets_(spec.budgets, spec.budget_refill) {}

  [[nodiscard]] std::vector<job::Effect> step(const job::Event& event, MonoTime now);

  [[nodiscard]] LifecycleImage image() const;
  // `group`: the members of the generation that is settled.
  void restore(LifecycleImage image, std::vector<Member> group);

  [[nodiscard]] JobState state() const { return static_cast<JobState>(image_.state); }
  [[nodiscard]] const std::vector<WorkerProcess>& workers() const { return image_.workers; }
  // The newest, of the present incident and a few before; the others were taken.
  [[nodiscard]] const std::vector<FailureRecord>& failures() const { return image_.failures; }
  // Failures that nothing more will be said of, or that are too many to wait for it: they are no
  // part of the image any more.
  [[nodiscard]] std::vector<FailureRecord> take_old_failures();
  static constexpr std::size_t kMostFailures = 16;  // that stay, of incidents that are over too
  static constexpr std::size_t kMostOfAnIncident = 64;
  [[nodiscard]] const std::optional<Outcome>& outcome() const { return image_.outcome; }
  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  // How many failures of a class the job bears from now on.
  [[nodiscard]] std::uint32_t budget_left(FailureClass cls) const {
    return budgets_.left(cls, image_.trained_s);
  }
  [[nodiscard]] const WorkerProcess* find(WorkerId worker) const;
  // Whether this attempt is the present one and has not ended or been given up.
  [[nodiscard]] bool is_current(Member member) const;
  // Whether who joins now can be of use: at the end of the job newcomers cannot.
  [[nodiscard]] bool welcomes(Member member) const;
  // The phase that is open (what == "" if none is).
  [[nodiscard]] wire::PhaseStart phase() const { return describe(image_.phase); }
  [[nodiscard]] bool collective() const { return image_.collective; }
  [[nodiscard]] bool model_kept() const { return image_.model_kept; }
  [[nodiscard]] double seconds() const;  // since the job began, over incarnations
  [[nodiscard]] std::uint32_t servers() const;
  // That they are about to become; 0: they stay as many.
  [[nodiscard]] std::uint32_t servers_wanted() const { return image_.servers_wanted; }

  // Whether an operator's wish can be done; the error says why not.
  [[nodiscard]] Status check(const job::EvictAsked& e) const;
  [[nodiscard]] Status check(const job::RestartAsked& e) const;
  [[nodiscard]] Status check(const job::ResizeAsked& e) const;
  [[nodiscard]] Status check(const job::ServersAsked& e) const;

 private:
  using Effects = std::vector<job::Effect>;
  // lifecycle.cc: states and phases
  void on(const job::Placed& e, Effects& out);
  void on(const job::Started& e, Effects& out);
  void on(const job::Joined& e, Effects& out);
  void on(const job::GenerationSettled& e, Effects& out);
  void on(const job::GenerationOver& e, Effects& out);
  void on(const job::Progressed& e, Effects& out);
  void on(const job::PhaseDrained& e, Effects& out);
  void on(const job::MemberDone& e, Effects& out);
  void on(const job::CheckpointBegun& e, Effects& out);
  void on(const job::CheckpointStored& e, Effects& out);
  void on(const job::FilesMoved& e, Effects& out);
  void on(const job::Restored& e, Effects& out);
  void on(const job::SaidBye& e, Effects& out);
  void on(const job::StopAsked& e, Effects& out);
  void on(const job::Failed& e, Effects& out);
  void on(const job::Tick& e, Effects& out);
  // lifecycle_end.cc: SaidBye, StopAsked, Failed, Tick and when everybody has left
  // lifecycle_workers.cc: processes, their failures and their places
  void on(const job::HostUp& e, Effects& out);
  void on(const job::HostLost& e, Effects& out);
  void on(const job::GangReady& e, Effects& out);
  void on(const job::Exited& e, Effects& out);
  void on(const job::StartRefused& e, Effects& out);
  void on(const job::Vanished& e, Effects& out);
  void on(const job::Resumed& e, Effects& out);
  void on(const job::Hung& e, Effects& out);
  // lifecycle_operators.cc
  void on(const job::EvictAsked& e, Effects& out);
  void on(const job::RestartAsked& e, Effects& out);
  void on(const job::ResizeAsked& e, Effects& out);
  // lifecycle_servers.cc: a server without replicas that is moved
  void on(const job::TakenOver& e, Effects& out);
  [[nodiscard]] WorkerId second_id(const WorkerProcess& server) const;
  [[nodiscard]] WorkerProcess* second_of(const WorkerProcess& server);
  [[nodiscard]] const WorkerProcess* second_of(const WorkerProcess& server) const;
  [[nodiscard]] bool is_moving(const WorkerProcess& server) const;
  [[nodiscard]] std::string host_of_second(const WorkerProcess& server) const;
  [[nodiscard]] Status check_move(const WorkerProcess& server) const;
  void move(WorkerProcess& server, const std::string& reason, Effects& out);
  [[nodiscard]] bool move_failed(WorkerProcess& server, FailureClass cls, Effects& out);
  void leave_for_second(WorkerProcess& server, const std::string& reason, Effects& out);
  void end_moves(Effects& out);
  // lifecycle_server_count.cc
  void on(const job::ServersAsked& e, Effects& out);
  [[nodiscard]] std::vector<WorkerId> processes_of(std::uint32_t count) const;
  [[nodiscard]] std::vector<WorkerId> added_for(std::uint32_t count) const;
  void order_last_cut(Effects& out);
  void look_at_last_cut(Effects& out);
  [[nodiscard]] bool is_last_cut(const job::CheckpointStored& e, Effects& out);
  void last_cut_failed(const std::string& why, Effects& out);
  void server_change_failed(const std::string& why, Effects& out);
  void give_up_servers(const std::string& why, Effects& out);
  void change_servers(Effects& out);
  void change_servers_at_resume(Effects& out);
  void let_apart_go(const std::string& reason, Effects& out);
  void added_failed(WorkerProcess& server, FailureClass cls, Effects& out);

  [[nodiscard]] wire::PhaseStart describe(std::uint64_t phase) const;
  [[nodiscard]] std::uint64_t last_phase() const;  // number of "finish"
  WorkerProcess* find_mutable(Member member);
  void set_state(JobState state) { image_.state = static_cast<std::uint8_t>(state); }
  [[nodiscard]] bool stopping() const { return image_.outcome.has_value(); }
  [[nodiscard]] bool is_gang() const {
    return spec_.protocol != Protocol::kAntdt || spec_.restart == Restart::kGang;
  }
  [[nodiscard]] bool made_progress() const;
  void open_phase(std::uint64_t phase, Effects& out);
  void advance_if_complete(Effects& out);
  void order_checkpoint(Effects& out);
  void stop_with(Outcome outcome, Duration grace, Effects& out);
  // Whether everybody leaves once the checkpoint that was ordered is stored.
  [[nodiscard]] bool ends_with_checkpoint() const {
    return state() == JobState::kStopping && image_.outcome &&
           (image_.outcome->state == "stopped" || fails_with_checkpoint_);
  }
  void fail(Outcome outcome, Effects& out);
  void stop_all(Duration grace, Effects& out);
  void stop_worker(WorkerProcess& worker, Duration grace, Effects& out);
  void end_if_all_left(Effects& out);
  void let_servers_go(Effects& out);
  [[nodiscard]] Outcome outcome_at_the_end() const;
  [[nodiscard]] bool bring_one_back(Effects& out);

  void expect(Effects& out);
  void ended(WorkerProcess& worker, FailureClass cls, Effects& out);
  void replace(WorkerProcess& worker, FailureClass cls, Effects& out);
  void left_as_asked(WorkerProcess& worker, Effects& out);
  [[nodiscard]] FailureClass class_in_gang(FailureClass cls, const WorkerProcess& worker);
  void stop_gang(const WorkerProcess& cause, Effects& out);
  void restart_gang_if_all_left(Effects& out);
  void wait_for_place(WorkerProcess& worker);
  void start_waiting(Effects& out);
  void ask_to_leave(WorkerProcess& worker, const std::string& reason, Duration deadline,
                    Effects& out);
  [[nodiscard]] bool takes_budget(FailureClass cls);
  void record_failure(const WorkerProcess& worker, FailureClass cls);
  [[nodiscard]] Outcome outcome_of(std::uint64_t incident) const;
  [[nodiscard]] std::string host_name(const std::string& host) const;

  JobSpec spec_;
  LifecycleImage image_;  // hosts, budgets and seconds are filled in by image()
  Hosts hosts_;
  Budgets budgets_;
  MonoTime now_{};
  std::optional<MonoTime> began_;
  double seconds_before_ = 0;  // of earlier incarnations
  MonoTime last_checkpoint_{};
  MonoTime files_moved_{};  // between hosts, last
  // The number of the checkpoint that a member writes, whatever becomes of its generation. 0: none.
  std::uint64_t being_written_ = 0;
  std::optional<MonoTime> servers_failed_at_;  // the servers were to become more or fewer
  std::string checkpoint_error_;               // said last; empty: the last one was stored
  std::optional<MonoTime> last_progress_;
  std::optional<MonoTime> stop_deadline_;
  bool killed_ = false;                 // the deadline passed once: everybody got SIGKILL
  bool fails_with_checkpoint_ = false;  // those who train write one before they leave
  bool ended_ = false;
  bool settled_ = false;
  std::vector<Member> group_;                    // of the newest settled generation
  bool drained_ = false;                         // the ledger says so of the open phase
  std::map<WorkerId, std::uint64_t> done_with_;  // highest phase each member is done with
};

}  // namespace antdt::ctl
