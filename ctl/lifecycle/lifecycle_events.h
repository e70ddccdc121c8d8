// The events and the effects of a job's lifecycle.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/wire/training_messages.h"
#include "ctl/processes/hosts.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl::lifecycle {

// ---- events
struct WorkersPlaced {  // the first placement
  std::vector<PlacedWorker> workers;
};
struct HostCameUp {
  HostState host;
};
struct HostLost {
  std::string host;
  std::string reason;
};
// `by_whom`: see HostState::drained.
struct HostDrained {
  std::string host;
  std::string by_whom;
};
struct GangPrepared {};  // answers PrepareGang
struct WorkerStarted {
  Member member;
  std::uint32_t pid = 0;
};
struct WorkerExited {
  Member member;
  wire::ProcessExited exit;
};
// The process's agent does not know it any more, and reports no end.
struct WorkerVanished {
  Member member;
};
// A run that ended or broke off goes on: all workers are started again.
struct RunResumed {};
// This job daemon follows an earlier one, and has what that wrote.
struct DaemonFollowed {};
struct WorkerStartRefused {
  Member member;
  std::string reason;
};
struct WorkerJoined {
  Member member;
  bool collective = true;
};
struct GenerationSettled {
  Generation generation;
  std::vector<Member> members;
  std::string collective = {};  // what carries the bytes between them, in words; empty: not known
};
struct GenerationEnded {};  // the generation's members are to join again
// Bytes of a checkpoint were written to a disk or copied to another host.
struct CheckpointBytesMoved {};
// A worker's records were committed. Loose clients make no steps.
struct RecordsCommitted {};
struct StepCompleted {  // somebody made a step
  Step step;
};
// A process does not answer or makes no progress; `why` is the end of a sentence.
struct WorkerHung {
  Member member;
  std::string why;
};
// Every record of the phase is committed or skipped.
struct PhaseDrained {
  std::uint64_t phase = 0;
  std::uint64_t trained = 0;  // records of it that are committed
};
// The workers' program wants nothing more to be trained.
struct TrainingEnded {
  std::string reason;
};
struct WorkerDone {
  Member member;
  std::uint64_t phase = 0;
};  // Progress with done = true
// A member writes the checkpoint from now on, while steps go on. CheckpointConcluded follows, even
// if the member is lost.
struct CheckpointWriteBegun {
  std::uint64_t number = 0;
};
struct CheckpointConcluded {
  std::uint64_t number = 0;
  std::string error;
  bool older_may_come = false;  // one that was written before is still being stored
};
// Training goes on from a checkpoint of this phase (0: from the beginning).
struct CheckpointRestored {
  std::uint64_t phase = 0;
  std::uint64_t records = 0;  // of the phase; 0: not known
  std::uint64_t step = 0;     // the last one that is in the checkpoint
  std::string ended = {};     // not empty: the program has ended the training in it, and why
};
struct StopRequested {
  std::string reason;
  Duration grace{};
};
struct EvictionRequested {
  std::string target;  // a worker id or a host
  std::string reason;
  Duration deadline{};
};
// Start this worker again, on another host if one has room.
struct RestartRequested {
  Member member;
  std::string reason;
  Duration deadline{};
  std::string host = {};  // by name: this one, if it has room then; empty: any other one
};
// A server without replicas is moved: the second process has everything that the first one has, and
// receives every later update.
struct ServerTakenOver {
  Member member;
};
struct WorkerCountRequested {
  std::uint32_t count = 0;
  std::string reason;
};
// Changes the number of parameter servers that hold the model.
struct ServerCountRequested {
  std::uint32_t count = 0;
  std::string reason;
};
// The job cannot go on: `exit_class` and `code` as in Outcome.
struct JobFailed {
  ExitClass exit_class = ExitClass::kProgram;
  std::int32_t code = 1;
  std::string reason;
  // If not zero, the workers that train are sound, and first write a checkpoint within this time.
  Duration checkpoint_within = {};
};
struct TimePassed {};
using Input =
    std::variant<WorkersPlaced, HostCameUp, HostLost, HostDrained, GangPrepared, WorkerStarted,
                 WorkerExited, WorkerVanished, RunResumed, DaemonFollowed, WorkerStartRefused,
                 WorkerJoined, GenerationSettled, GenerationEnded, StepCompleted, RecordsCommitted,
                 WorkerHung, PhaseDrained, TrainingEnded, WorkerDone, CheckpointWriteBegun,
                 CheckpointConcluded, CheckpointBytesMoved, CheckpointRestored, StopRequested,
                 EvictionRequested, RestartRequested, ServerTakenOver, WorkerCountRequested,
                 ServerCountRequested, JobFailed, TimePassed>;

// ---- effects
struct PersistImage {};
struct StartWorker {
  Member member;
  std::string host;
};
struct StopWorker {
  Member member;
  std::string host;
  Duration grace{};
};
// For programs that need an address and a free port of rank 0's host before they are started
// together; answered by GangPrepared.
struct PrepareGang {
  std::vector<PlacedWorker> workers;  // by rank
};
// Other processes run than before. The effect does not say which: a later step may have changed
// that before it is carried out.
struct ExpectMembers {};
struct ReleaseWorker {  // sent to Membership, and to the ledger if members are loose
  Member member;
  std::string reason;
  bool in_order = false;
  bool suspect = false;  // the records that it was working on are suspect
};
struct OpenPhase {
  wire::PhaseStart start;
};  // opens the phase in the ledger, then announces it to every member
struct AnnouncePhase {
  wire::PhaseStart start;
};  // announces the open phase to the members of a new generation
// The rest of the open phase, which trains, is not trained.
struct CutPhase {
  std::uint64_t phase = 0;
  std::string reason;
};
struct OrderCheckpoint {
  std::uint64_t number = 0;
  bool last = false;  // nothing may be trained after it; ChangeServers or KeepServers follows
};                    // sent to every member
// A group of this many servers follows, from the newest checkpoint.
struct ChangeServers {
  std::uint32_t count = 0;
};
// The group goes on, and does not wait for its last checkpoint.
struct KeepServers {};
struct AskToLeave {
  Member member;
  wire::Leave leave;
};
struct AskAllToLeave {
  wire::Leave leave;
};
struct WriteNote {
  std::string kind;
  std::string text;
};  // for events.jsonl and the live view
struct EndJob {
  Outcome outcome;
};
using Effect =
    std::variant<PersistImage, StartWorker, StopWorker, PrepareGang, ExpectMembers, ReleaseWorker,
                 OpenPhase, AnnouncePhase, CutPhase, OrderCheckpoint, ChangeServers, KeepServers,
                 AskToLeave, AskAllToLeave, WriteNote, EndJob>;
using Effects = std::vector<Effect>;

}  // namespace antdt::ctl::lifecycle
