// One job as a single state machine: lifecycle, membership, ledger, accounts,
// monitor and controller, and what one of them means to the others.
//
// A value without I/O: step(input, now, outputs) is all that ever happens to it.
// The job daemon feeds it what arrives and carries out what it says, in order:
// every Persist of a turn, and image_if_changed() after them, are durable before
// anything else of that turn is sent. Recovery builds it from the journal again
// (open). The simulation runs the same object in virtual time.
//
// This folder is the job daemon's wiring, the one place where ctl meets
// shard_server.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/agent_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "core/wire/operator_messages.h"
#include "core/wire/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/checkpoints/checkpoint_part.h"
#include "ctl/control/controller.h"
#include "ctl/job/job_image.h"
#include "ctl/job/past.h"
#include "ctl/job/progress_view.h"
#include "ctl/job/report.h"
#include "ctl/job/run_history.h"
#include "ctl/job/verdict_watch.h"
#include "ctl/lifecycle/lifecycle.h"
#include "ctl/membership/membership.h"
#include "ctl/monitor/devices.h"
#include "ctl/processes/vitals.h"
#include "ctl/servers/server_group.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/history/history.h"
#include "shard_server/journal/journal.h"
#include "shard_server/ledger/ledger.h"
#include "shard_server/ledger/suspects.h"

namespace antdt::ctl {

namespace in {

// From a worker, or from its agent on its behalf.
using WorkerBody =
    std::variant<wire::Fetch, wire::Progress, wire::Join, wire::Address, wire::Ready,
                 wire::Recalled, wire::CheckpointBegun, wire::CheckpointWritten, wire::Bye,
                 wire::Metrics, wire::PsServing, wire::PsSaved, wire::PsStats>;
struct FromWorker {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  WorkerBody body;
};
// An agent answered: its host, with room for so many workers of this job in all
// (those that run there included), and the processes of this job that run there.
struct HostWelcome {
  HostState host;
  std::vector<wire::RunningProcess> running;
};
// A host that has not been heard of for a moment: its workers cannot be either.
struct HostSilent {
  std::string host;
};
// The job daemon answers no requests for records for now (its disk is full), or
// does so again: nobody is expected to make steps meanwhile.
struct Pause {
  bool on = true;
};
struct Recovered {};  // this incarnation follows an earlier one: once, before anything else
struct Declared {};   // the job is new: the same
struct Resumed {};    // an ended or broken-off run goes on from its last checkpoint
struct Tick {};
// The answer to StoreCheckpoint; `error` is empty when it is whole and in place.
struct CheckpointStored {
  std::uint64_t number = 0;
  Step step;
  std::string name;
  std::string error;
};
// Files of a checkpoint are on their way between hosts, and some have arrived: who waits for
// them waits for something that moves.
struct FilesMoved {};
// The answer to FindCheckpoint. An empty directory: there is none, training
// begins again.
struct CheckpointFound {
  std::string directory;
  Step step;
  std::string ledger_image;
  std::string accounts_image;
};
// Controller's time; the shell calls it every tick_interval().
struct ControlTick {};
struct Skip {
  wire::SkipRecords order;
};
// An operator wants the advised action with this number done.
struct Approve {
  std::uint64_t number = 0;
  std::string who;
};
// The program that is the job's solution has answered a view with this plan.
struct Decided {
  Decision decision;
  PlanVersion plan;
};
// Everything that Remember had said at that mark (JobMachine::history_mark) is safe: members may
// forget it.
struct HistoryKept {
  StepWatch::Mark told;
};
// An operator's drill: these rules hold in the workers from now on.
struct Inject {
  wire::InjectRules order;
};
// An operator's wish, in words for the record.
struct OperatorSaid {
  std::string kind;
  std::string text;
};

}  // namespace in

using JobInput =
    std::variant<in::FromWorker, in::HostWelcome, in::HostSilent, in::Pause, in::Recovered,
                 in::Declared, in::Resumed, in::Tick, in::ControlTick, in::CheckpointStored,
                 in::CheckpointFound, in::FilesMoved, in::Skip, in::Approve, in::Decided,
                 in::Inject, in::HistoryKept, in::OperatorSaid, job::Placed, job::HostLost,
                 job::GangReady, job::Started, job::Exited, job::StartRefused, job::StopAsked,
                 job::EvictAsked, job::ResizeAsked, job::ServersAsked, job::Failed>;

namespace out {

struct Persist {
  std::string_view kind;
  std::string bytes;
};
using ToWorkerBody =
    std::variant<wire::Grants, wire::Refused, wire::Recall, wire::Form, SharedRoster, wire::Plan,
                 wire::Settle, wire::Regroup, wire::Abort, wire::PhaseStart, wire::CheckpointOrder,
                 wire::Leave, wire::PsServe, wire::PsCut, wire::PsRoster, wire::Injected>;
struct ToWorker {
  Member to;
  Generation generation;
  std::uint64_t seq = 0;
  ToWorkerBody body;
  // The directory of a checkpoint that whoever hears this reads: it is said when the checkpoint
  // is on the host of `to`. "": none.
  std::string reads = {};
};
// Fetch what other hosts have of it, check it, add the ledger, put it in place. Answered by
// CheckpointStored.
struct StoreCheckpoint {
  wire::CheckpointWritten written;
  std::vector<copies::Part> parts;  // which of its files were written on which host
  Member writer;
  Lineage lineage;
  Generation generation;
  Epoch epoch;
  std::string ledger_image;
  std::string accounts_image;
};
// For the run's history of steps, which is no part of what the job needs to go on.
// What the outputs before a Settle or a StoreCheckpoint said is to be safe before
// these are carried out, if that can be.
struct Remember {
  shard_server::history::Entry entry;
};
// The newest whole checkpoint. Answered by CheckpointFound.
struct FindCheckpoint {};
struct Note {
  std::string kind;
  std::string text;
  std::string extra_json;  // more members of the event, or ""
};

}  // namespace out

using JobOutput =
    std::variant<out::Persist, out::ToWorker, job::StartWorker, job::StopWorker, job::PrepareGang,
                 out::StoreCheckpoint, out::FindCheckpoint, out::Remember, out::Note, job::End>;
using JobOutputs = std::vector<JobOutput>;

struct JobMachineConfig {
  std::string job;
  JobSpec spec;
  ControllerConfig control;
  shard_server::LedgerConfig ledger;
  crypto::Secret secret = {};  // see Membership
  Incarnation incarnation{1};
  Duration hang_after = std::chrono::seconds(120);
  std::vector<DeviceRule> devices = {};
  wire::DataIdentity data = {};  // what the launching host found, as RUN/data.json has it
};

class JobMachine {
 public:
  // An error is a journal that cannot be read, or of other data.
  [[nodiscard]] static Result<JobMachine> open(JobMachineConfig config,
                                               std::unique_ptr<Solution> solution,
                                               const shard_server::JournalContent& journal);
  // Whether the journal knew the job: then Recovered or Resumed comes first,
  // otherwise Declared.
  [[nodiscard]] bool known() const { return known_; }

  // Adds to `outputs`.
  void step(const JobInput& input, MonoTime now, JobOutputs& outputs);
  // The image record of this turn, if there is one.
  [[nodiscard]] std::optional<std::string> image_if_changed();
  // Sections of a snapshot, as open() takes them.
  [[nodiscard]] std::vector<shard_server::JournalEntry> snapshot() const;

  // Whether an operator's wish can be done; the error says why not.
  [[nodiscard]] Status check(const job::EvictAsked& e) const;
  [[nodiscard]] Status check(const job::RestartAsked& e) const;
  [[nodiscard]] Status check(const job::ResizeAsked& e) const;
  [[nodiscard]] Status check(const job::ServersAsked& e) const;
  [[nodiscard]] Status check_skip(const wire::SkipRecords& order) const;
  [[nodiscard]] Status check_approve(std::uint64_t number) const;

  // What a program that decides is to be shown; nothing while what was decided last is
  // not in force and measured.
  [[nodiscard]] const ClusterView* view_to_decide(MonoTime now) const;

  [[nodiscard]] JobReport report() const;
  [[nodiscard]] Duration control_interval() const { return controller_.tick_interval(); }
  [[nodiscard]] const Lifecycle& lifecycle() const { return lifecycle_; }
  [[nodiscard]] const Membership& membership() const { return membership_; }
  [[nodiscard]] const servers::ServerGroup& server_group() const { return servers_; }
  // Of the members: of the collective, or of the servers' group.
  [[nodiscard]] Generation generation() const;
  [[nodiscard]] const shard_server::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const shard_server::Accounts& accounts() const { return accounts_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] StepWatch::Mark history_mark() const { return history_.mark(); }

 private:
  JobMachine(JobMachineConfig config, std::unique_ptr<Solution> solution,
             shard_server::Ledger ledger, shard_server::Accounts accounts, Past past,
             JobImage image, bool known);

  // Inputs: job_machine.cc
  void on(const in::FromWorker& e);
  void on(const in::HostWelcome& e);
  void on(const in::HostSilent& e);
  void on(const in::Pause& e);
  void on(const in::Recovered& e);
  void on(const in::Declared& e);
  void on(const in::Resumed& e);
  void on(const in::Tick& e);
  void on(const in::ControlTick& e);
  void on(const in::CheckpointStored& e);
  void on(const in::CheckpointFound& e);
  void on(const in::FilesMoved&);
  void on(const in::Skip& e);
  void on(const in::Approve& e);
  void on(const in::Decided& e);
  void on(const in::HistoryKept& e);
  void on(const in::Inject& e);
  void on(const in::OperatorSaid& e);
  void on(const job::EvictAsked& e);
  void on(const job::ServersAsked& e);
  template <class LifecycleEvent>
  void on(const LifecycleEvent& e) {
    feed(job::Event(e));
  }

  // Messages of workers: job_machine_messages.cc
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Fetch& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Progress& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Join& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Address& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Ready& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Recalled& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::CheckpointBegun& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::CheckpointWritten& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Bye& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::Metrics& e);
  // A checkpoint that a member writes while steps go on: what belongs to its step.
  struct Begun {
    wire::CheckpointBegun said;
    out::StoreCheckpoint store;  // all but `written`
    std::string error;           // why it can be no checkpoint; empty: it can
    MonoTime seen{};             // when its writer was heard of last, writing
  };
  [[nodiscard]] Status keep_aside(const std::vector<wire::MemberPlace>& places,
                                  out::StoreCheckpoint& store) const;
  [[nodiscard]] bool is_begun(Member m, const wire::CheckpointWritten& e) const;
  void begun_failed(const std::string& why);
  void checkpoint_is(std::uint64_t number, const std::string& error);  // empty: stored
  void let_another_write_the_model();
  void look_at_begun();
  void store_checkpoint(const wire::CheckpointWritten& written, Member writer,
                        const std::vector<Member>& writers);
  [[nodiscard]] std::vector<copies::Part> parts_of(const wire::CheckpointWritten& written,
                                                   const std::vector<Member>& writers) const;
  [[nodiscard]] bool has_other_data(Member m, const wire::DataIdentity& data);
  void state_moves();
  void unresponsive(const Unresponsive& e);

  // Where training goes on from a checkpoint: job_machine_restore.cc
  struct Beginning {
    std::string ledger, accounts;  // images
    std::uint64_t version = 0;     // of the model on servers
    std::string who;               // goes on with what
  };
  void hear_said(Member m, const wire::PsSaid& said);
  [[nodiscard]] Result<Beginning> beginning(const in::CheckpointFound& e) const;
  [[nodiscard]] std::vector<shard_server::OldPlace> places_in_doubt() const;

  // Parameter servers and their workers: job_machine_servers.cc
  void heard(Member m, Generation g, std::uint64_t seq, const wire::PsServing& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::PsSaved& e);
  void heard(Member m, Generation g, std::uint64_t seq, const wire::PsStats& e);
  [[nodiscard]] bool uses_servers() const { return config_.spec.servers > 0; }
  // Whether those who train are together, in a collective or around servers.
  [[nodiscard]] bool group_is_whole() const;
  [[nodiscard]] bool trains() const;  // so that there is something to control
  void expect_group(const std::vector<WorkerProcess>& running);
  void feed(const servers::Input& event);
  void run(const servers::Effects& effects);
  void on_formed(const servers::OpenGroup& formed);
  void on_trouble(const servers::ReportTrouble& trouble);
  void admit(Member worker);
  void on_left(const wire::PsPlaces& places);
  void on_over(const servers::DissolveGroup& over);
  [[nodiscard]] const WorkerProcess* first_server() const;  // null: nobody serves as it
  // That an eviction means: a process of a server, which is to run elsewhere.
  [[nodiscard]] std::optional<job::RestartAsked> server_to_move(const job::EvictAsked& e) const;
  void on_switched(const servers::ReportSwitch& switched);
  void on_backed(const servers::ReportBackup& backed);
  void on_stuck(const std::string& why);  // nobody moves
  void on_cut(const servers::ConcludeCut& cut);
  void look_at_unwritten(const servers::ConcludeCut& cut);
  [[nodiscard]] wire::PsRoster roster() const;
  void tell_of_servers(Member worker);
  void deal_again();  // the plan, when other workers push
  void add_up(Member m, const wire::Progress& e);

  // What the run's history is told: job_machine_history.cc
  void remember(RunHistory::Entries entries);
  void remember_steps(const wire::StepHistory& told, Step step);
  void remember_moment(bool ends);  // if a second is over, or all

  // Effects of the parts: job_machine_effects.cc
  void feed(const job::Event& event) { run(lifecycle_.step(event, now_)); }
  void feed(const MembershipEvent& event) { run(membership_.step(event, now_)); }
  void feed(const control::Input& input) {
    control::Effects effects;
    controller_.step(input, now_, effects);
    run(effects);
  }
  void feed(const shard_server::ledger::Input& event);
  void run(const std::vector<job::Effect>& effects);
  void run(const std::vector<MembershipEffect>& effects);
  void run(const control::Effects& effects);
  void run(shard_server::ledger::Effects& effects);
  void persist_ledger(std::string bytes);
  void on_settled(const Settled& settled);
  void note_startup(const std::vector<Member>& members);
  void on_drained(std::uint64_t phase);
  void on_gone(const job::WorkerGone& gone);
  // Of who died: the last two steps, which may not be stable, and the one after them.
  static constexpr std::uint64_t kSuspectSteps = 3;
  void suspect(Member dead, std::uint64_t place, std::uint64_t records);
  [[nodiscard]] bool stop_for_suspects();
  void open_phase(const wire::PhaseStart& start);
  void announce_phase(const wire::PhaseStart& start);
  void announce_plan(const wire::Plan& plan);
  void record_action(const control::RecordAction& action);
  void perform(const control::PerformAction& e);
  [[nodiscard]] control::TimePassed control_tick() const;
  void check_vitals();
  void expect_steps();  // of whom they can be expected now
  void say_finish_again();
  void fill_epoch(Epoch epoch);  // its report, as far as training is
  void close_epoch(Epoch epoch);
  void end(const Outcome& outcome);

  void note(std::string kind, std::string text, std::string extra_json = "");
  void send(Member to, Generation generation, out::ToWorkerBody body, std::uint64_t seq = 0);
  void send_to_reader(Member to, Generation generation, out::ToWorkerBody body,
                      const std::string& checkpoint);
  void send_to_members(const out::ToWorkerBody& body);
  void send_to_running(const out::ToWorkerBody& body);
  [[nodiscard]] std::vector<Member> members() const;
  [[nodiscard]] wire::PhaseStart with_committed(wire::PhaseStart start) const;
  [[nodiscard]] std::string host_name(const std::string& endpoint) const;
  void tell_of_injection(Member worker, bool again);
  [[nodiscard]] Monitor::MemberInfo info_of(Member member, std::string host) const;
  [[nodiscard]] wire::Plan plan_of(WorkerId worker) const;
  // To train in the whole job.
  [[nodiscard]] std::uint64_t samples_total() const {
    return config_.spec.train_records * config_.spec.epochs;
  }
  [[nodiscard]] std::uint64_t samples_done() const;
  [[nodiscard]] std::vector<WorkerReport> worker_reports() const;
  [[nodiscard]] std::vector<ServerReport> server_reports() const;
  void report_servers(JobReport& report) const;  // while it runs
  [[nodiscard]] JobImage image() const;
  void persist_past();  // what of the present has become it

  JobMachineConfig config_;
  bool known_ = false;
  shard_server::Ledger ledger_;
  shard_server::Accounts accounts_;
  Lifecycle lifecycle_;
  Membership membership_;
  servers::ServerGroup servers_;
  Controller controller_;
  Vitals vitals_;
  ProgressView progress_;
  RunHistory history_{config_.spec.external};
  VerdictWatch verdicts_;

  shard_server::Suspects suspects_;
  std::vector<Member> dead_suspects_;  // of the base; what they held is not known exactly yet
  std::map<Member, std::uint64_t> suspected_;  // workers of servers that died: of so many records
  std::vector<Member> loose_members_;
  struct Unwritten {
    Member server;
    std::uint32_t times = 0;  // one after another
    std::string said = {};    // why it cannot be moved
  };
  Unwritten unwritten_;                        // checkpoints that failed because of one server
  std::vector<Member> dealt_;                  // workers of servers that have a share of the plan
  std::map<Member, wire::Progress> pushed_;    // of the phase, by worker of servers
  std::map<Member, wire::PsSaid> said_;        // by workers of servers whose group is over
  std::map<WorkerId, wire::PsStats> served_;   // newest, by server
  std::optional<Member> model_writer_;         // in the end; none: that of rank 0
  std::uint64_t model_tries_ = 0;              // of members that could not
  std::optional<Begun> begun_;                 // a restart of the job daemon forgets it
  std::uint64_t cut_phase_ = 0;                // the ledger's when the cut was ordered
  std::map<WorkerId, WorkerReport> measured_;  // of attempts before and the present one
  std::map<WorkerId, WorkerReport> earlier_;   // of attempts that have ended
  std::map<Member, MonoTime> started_;         // when its start was asked for
  std::optional<Duration> startup_;            // of the first group, from there until it was whole
  std::map<Member, MonoTime> vanished_;        // since when its agent does not know it
  Devices devices_{config_.devices};           // what workers compute on
  wire::Injected injected_;                    // newest; number 0: nothing ever was
  std::optional<MonoTime> injected_until_;     // none: to the job's end
  bool group_settled_ = false;
  bool paused_ = false;
  MonoTime finish_said_{};
  Past past_;
  std::vector<EpochReport> epochs_;
  std::string message_;
  bool image_dirty_ = false;
  bool ended_ = false;

  // Of the step in progress.
  MonoTime now_{};
  JobOutputs* out_ = nullptr;
};

}  // namespace antdt::ctl
