// What a job hears, and what it wants done. The shell around it (the job daemon, or the
// simulation) feeds it the one and carries out the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ids.h"
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
#include "ctl/job/observers/step_watch.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/membership/membership.h"
#include "shard_server/history/history.h"

namespace antdt::ctl::job {

// ---------------------------------------------------------------------- inputs

// From a worker or a server, or from its agent on its behalf.
using WorkerBody =
    std::variant<wire::Fetch, wire::Progress, wire::Join, wire::Address, wire::Ready,
                 wire::Recalled, wire::CheckpointBegun, wire::CheckpointWritten, wire::Bye,
                 wire::Metrics, wire::PsServing, wire::PsSaved, wire::PsStats>;
struct WorkerSaid {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  WorkerBody body;
};
// An agent answered. `host.room` is how many workers of this job its host takes in all, those that
// run there included; `running` are the processes of this job that run there.
struct HostWelcomed {
  HostState host;
  std::vector<wire::RunningProcess> running;
};
// Nothing was heard of a host for a moment, so nothing can be heard of its workers either.
struct HostFellSilent {
  std::string host;
};
// `on`: the job daemon answers no requests for records from now on, because its disk is full, and
// nobody can be expected to make steps. Not `on`: it answers them again.
struct PauseChanged {
  bool on = true;
};
// The first input is one of three. The job is new:
struct JobCreated {};
// This incarnation of the job daemon follows an earlier one:
struct IncarnationRecovered {};
// A run that ended or broke off goes on from its last checkpoint:
struct ResumeOrdered {};

struct TimePassed {};
// The controller's time: once in each JobMachine::control_interval().
struct ControlTickPassed {};
// Answers StoreCheckpoint. `error` is empty when the checkpoint is whole and in place.
struct CheckpointStored {
  std::uint64_t number = 0;
  Step step;
  std::string name;
  std::string error;
};
// Files of a checkpoint are on their way between hosts, and some have arrived: who waits for them
// waits for something that moves.
struct CheckpointFilesMoved {};
// Answers FindCheckpoint. An empty directory: there is no checkpoint, training begins again.
struct CheckpointFound {
  std::string directory;
  Step step;
  std::string ledger_image;
  std::string accounts_image;
};
struct SkipOrdered {
  wire::SkipRecords order;
};
// An operator wants the advised action with this number done.
struct ApprovalReceived {
  std::uint64_t number = 0;
  std::string who;
};
// The program that is the job's solution has answered a view with this plan.
struct DecisionReceived {
  Decision decision;
  PlanVersion plan;
};
// Every entry that was remembered up to that mark (JobMachine::history_mark) is durable: the
// members may forget it.
struct HistoryKept {
  StepWatch::Mark told;
};
// An operator injects faults: these rules hold in the workers from now on.
struct InjectionOrdered {
  wire::InjectRules order;
};
// What an operator asked for, in words for the record.
struct OperatorAsked {
  std::string kind;
  std::string text;
};

using Input = std::variant<
    WorkerSaid, HostWelcomed, HostFellSilent, PauseChanged, JobCreated, IncarnationRecovered,
    ResumeOrdered, TimePassed, ControlTickPassed, CheckpointStored, CheckpointFound,
    CheckpointFilesMoved, SkipOrdered, ApprovalReceived, DecisionReceived, InjectionOrdered,
    HistoryKept, OperatorAsked, lifecycle::WorkersPlaced, lifecycle::HostLost,
    lifecycle::GangPrepared, lifecycle::WorkerStarted, lifecycle::WorkerExited,
    lifecycle::WorkerStartRefused, lifecycle::StopRequested, lifecycle::EvictionRequested,
    lifecycle::WorkerCountRequested, lifecycle::ServerCountRequested, lifecycle::JobFailed>;

// --------------------------------------------------------------------- effects

struct PersistRecord {
  std::string_view kind;
  std::string bytes;
};
using WorkerMessage =
    std::variant<wire::Grants, wire::Refused, wire::Recall, wire::Form, SharedRoster, wire::Plan,
                 wire::Settle, wire::Regroup, wire::Abort, wire::PhaseStart, wire::CheckpointOrder,
                 wire::Leave, wire::PsServe, wire::PsCut, wire::PsRoster, wire::Injected>;
struct SendToWorker {
  Member to;
  Generation generation;
  std::uint64_t seq = 0;
  WorkerMessage body;
  // The directory of a checkpoint that the receiver goes on to read: the message is sent when the
  // checkpoint is on the host of `to`. "": none.
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
// For the run's history of steps, which the job does not need to go on. The entries before a
// Settle message or a StoreCheckpoint are to be durable before these are carried out, if that can
// be done in time.
struct RememberEntry {
  shard_server::history::Entry entry;
};
// Answered by CheckpointFound, with the newest whole checkpoint.
struct FindCheckpoint {};
// For events.jsonl and the live view.
struct PublishNote {
  std::string kind;
  std::string text;
  std::string extra_json;  // more members of the event, or ""
};

using Effect = std::variant<PersistRecord, SendToWorker, lifecycle::StartWorker,
                            lifecycle::StopWorker, lifecycle::PrepareGang, StoreCheckpoint,
                            FindCheckpoint, RememberEntry, PublishNote, lifecycle::EndJob>;
using Effects = std::vector<Effect>;

}  // namespace antdt::ctl::job
