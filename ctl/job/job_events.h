// The inputs of a job and its effects. The shell around it (the job daemon, or the simulation)
// feeds it the inputs and carries out the effects.
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
#include "core/wire/servers/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/trace_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/checkpoints/checkpoint_names.h"
#include "ctl/checkpoints/checkpoint_part.h"
#include "ctl/control/controller.h"
#include "ctl/job/observers/step_watch.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/membership/membership.h"
#include "shard_server/history/history.h"

namespace antdt::ctl::job {

// ---------------------------------------------------------------------- inputs

// A message of a worker or a server, or of its agent on its behalf.
using WorkerBody = std::variant<wire::Fetch, wire::Progress, wire::Join, wire::Address, wire::Ready,
                                wire::Recalled, wire::CheckpointBegun, wire::CheckpointWritten,
                                wire::Bye, wire::Metrics, wire::PsServing, wire::PsSaved,
                                wire::PsStats, wire::Traced, wire::StackTold>;
struct WorkerSaid {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  WorkerBody body;
};
// An agent answered. `host.room` is how many workers of this job its host takes in all, including
// those that run there; `running` are the processes of this job that run there.
struct HostWelcomed {
  HostState host;
  std::vector<wire::RunningProcess> running;
};
// A host has been silent for a moment, so its workers cannot be heard either.
struct HostFellSilent {
  std::string host;
};
// `on`: the disk is full, so the job daemon answers no requests for records from now on, and nobody
// can be expected to make steps. Not `on`: it answers them again.
struct PauseChanged {
  bool on = true;
};
// The first input is one of three. JobCreated: the job is new.
struct JobCreated {};
// IncarnationRecovered: this incarnation of the job daemon follows an earlier one.
struct IncarnationRecovered {};
// ResumeOrdered: a run that ended or broke off goes on from its last checkpoint.
struct ResumeOrdered {};

struct TimePassed {};
// The controller's tick, sent once in each JobMachine::control_interval().
struct ControlTickPassed {};
// Answers StoreCheckpoint. `error` is empty if the checkpoint is complete and in place.
struct CheckpointStored {
  std::uint64_t number = 0;
  Step step;
  std::string name;
  std::string error;
  Generation generation{};  // in which it was written
};
// Files of a checkpoint are being copied between hosts, and some have arrived, or a host checks
// those that it has. Whoever waits for them waits for something that makes progress.
struct CheckpointFilesMoved {};
// Answers FindCheckpoint. An empty directory means that there is no checkpoint, and training begins
// again.
struct CheckpointFound {
  std::string directory;
  Step step;
  std::string ledger_image;
  std::string accounts_image;
};
struct SkipOrdered {
  wire::SkipRecords order;
};
// An operator approves the advised action with this number.
struct ApprovalReceived {
  std::uint64_t number = 0;
  std::string who;
};
// The program that is the job's solution has answered a view that contained this plan.
struct DecisionReceived {
  Decision decision;
  PlanVersion plan;
};
// Every history entry up to this mark (JobMachine::history_mark) is durable, so the members may
// forget it.
struct HistoryKept {
  StepWatch::Mark told;
};
// An operator injects faults: these rules apply in the workers from now on.
struct InjectionOrdered {
  wire::InjectRules order;
};
// What an operator asked for, in words, to be recorded among the actions.
struct OperatorAsked {
  std::string kind;
  std::string text;
};

using Input =
    std::variant<WorkerSaid, HostWelcomed, HostFellSilent, PauseChanged, JobCreated,
                 IncarnationRecovered, ResumeOrdered, TimePassed, ControlTickPassed,
                 CheckpointStored, CheckpointFound, CheckpointFilesMoved, SkipOrdered,
                 ApprovalReceived, DecisionReceived, InjectionOrdered, HistoryKept, OperatorAsked,
                 lifecycle::WorkersPlaced, lifecycle::HostLost, lifecycle::HostDrained,
                 lifecycle::GangPrepared, lifecycle::WorkerStarted, lifecycle::WorkerExited,
                 lifecycle::WorkerStartRefused, lifecycle::StopRequested,
                 lifecycle::EvictionRequested, lifecycle::WorkerCountRequested,
                 lifecycle::ServerCountRequested, lifecycle::JobFailed>;

// --------------------------------------------------------------------- effects

struct PersistRecord {
  std::string_view kind;
  std::string bytes;
};
using WorkerMessage =
    std::variant<wire::Grants, wire::Refused, wire::Recall, wire::Form, SharedRoster, wire::Plan,
                 wire::Settle, wire::Regroup, wire::Abort, wire::PhaseStart, wire::CheckpointOrder,
                 wire::Leave, wire::PsServe, wire::PsCut, wire::PsRoster, wire::Injected,
                 wire::StackWanted>;
struct SendToWorker {
  Member to;
  Generation generation;
  std::uint64_t seq = 0;
  WorkerMessage body;
  // The directory of a checkpoint that the receiver will read. The message is sent when the
  // checkpoint is on the host of `to`. Empty: it reads none.
  std::string reads = {};
};
// Fetch the checkpoint's files from other hosts, check them, add the ledger, and put the checkpoint
// in place. Answered by CheckpointStored.
struct StoreCheckpoint {
  wire::CheckpointWritten written;
  std::vector<copies::Part> parts;  // which files were written on which host
  Member writer;
  Lineage lineage;
  Generation generation;
  Epoch epoch;
  std::string ledger_image;
  std::string accounts_image;
};
// An entry for the run's history of steps, which the job does not need to go on. The entries before
// a Settle message or a StoreCheckpoint are to be durable before these are carried out, if that can
// be done in time.
struct RememberEntry {
  shard_server::history::Entry entry;
};
// Answered by CheckpointFound, with the newest complete checkpoint.
struct FindCheckpoint {
  // Not empty: why no member, or one of the servers, can read what was found last. One looks again
  // after a pause, and takes no copy of it on another host for whole before it was compared.
  std::string unread = {};
  std::string checkpoint = {};  // that one
  bool damaged = false;         // it is what they found there
};
// Checkpoints up to this age failed. What was written of them only takes room.
struct RemoveUnfinished {
  copies::Age up_to;
};
// A line for events.jsonl and the live view.
struct PublishNote {
  std::string kind;
  std::string text;
  std::string extra_json;  // further members of the event's JSON object, or ""
};

using Effect =
    std::variant<PersistRecord, SendToWorker, lifecycle::StartWorker, lifecycle::StopWorker,
                 lifecycle::PrepareGang, StoreCheckpoint, FindCheckpoint, RemoveUnfinished,
                 RememberEntry, PublishNote, lifecycle::EndJob>;
using Effects = std::vector<Effect>;

}  // namespace antdt::ctl::job
