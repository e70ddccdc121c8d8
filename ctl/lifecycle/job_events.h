// What the lifecycle of a job hears and what it wants done.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/wire/training_messages.h"
#include "ctl/processes/hosts.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl::job {

// ---- events
struct Placed {  // the first placement
  std::vector<PlacedWorker> workers;
};
struct HostUp {
  HostState host;
};
struct HostLost {
  std::string host;
  std::string reason;
};
struct GangReady {};  // answers PrepareGang
struct Started {
  Member member;
  std::uint32_t pid = 0;
};
struct Exited {
  Member member;
  wire::ProcessExited exit;
};
// Its agent does not know of it any more, and says nothing of its end.
struct Vanished {
  Member member;
};
// An ended or broken-off run goes on: everybody is started again.
struct Resumed {};
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
  std::vector<Member> members;
};
struct GenerationOver {};  // its members are to join again
// Bytes of a checkpoint were written to a disk or copied to another host.
struct CheckpointMoved {};
struct Progressed {  // somebody made a step
  Step step;
};
// A process does not answer or does not move; `why` is the end of a sentence.
struct Hung {
  Member member;
  std::string why;
};
struct PhaseDrained {
  std::uint64_t phase = 0;
};  // every record of it is committed
struct MemberDone {
  Member member;
  std::uint64_t phase = 0;
};  // Progress with done
// A member writes it from now on, while steps go on. CheckpointStored follows, also when the
// member is lost.
struct CheckpointBegun {
  std::uint64_t number = 0;
};
struct CheckpointStored {
  std::uint64_t number = 0;
  std::string error;
};
// Training goes on from a checkpoint of this phase (0: from the beginning).
struct Restored {
  std::uint64_t phase = 0;
};
struct StopAsked {
  std::string reason;
  Duration grace{};
};
struct EvictAsked {
  std::string target;  // a worker id or a host
  std::string reason;
  Duration deadline{};
};
// A worker that is to be started again, on another host if one has room.
struct RestartAsked {
  Member member;
  std::string reason;
  Duration deadline{};
};
// A server without replicas that is moved: the process that moves in has all that this one
// has, and what it is told from now on.
struct TakenOver {
  Member member;
};
struct ResizeAsked {
  std::uint32_t count = 0;
  std::string reason;
};
// The same for parameter servers: how many the model is to be placed on.
struct ServersAsked {
  std::uint32_t count = 0;
  std::string reason;
};
// The job cannot go on: `exit_class` and `code` as in Outcome.
struct Failed {
  std::string exit_class;
  std::int32_t code = 1;
  std::string reason;
  // Not zero: those who train are sound, and write a checkpoint within this time first.
  Duration checkpoint_within = {};
};
struct Tick {};
using Event = std::variant<Placed, HostUp, HostLost, GangReady, Started, Exited, Vanished, Resumed,
                           StartRefused, Joined, GenerationSettled, GenerationOver, Progressed,
                           Hung, PhaseDrained, MemberDone, CheckpointBegun, CheckpointStored,
                           CheckpointMoved, Restored, StopAsked, EvictAsked, RestartAsked,
                           TakenOver, ResizeAsked, ServersAsked, Failed, Tick>;

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
// Programs that need an address and a free port of rank 0's host before they
// are started together; answered by GangReady.
struct PrepareGang {
  std::vector<PlacedWorker> workers;  // by rank
};
struct ExpectMembers {
  std::vector<WorkerProcess> workers;
};                   // for Membership
struct WorkerGone {  // for Membership, and for the ledger where members are loose
  Member member;
  std::string reason;
  bool in_order = false;
  bool suspect = false;  // the records it was working on
};
struct OpenPhase {
  wire::PhaseStart start;
};  // in the ledger, then to every member
struct AnnouncePhase {
  wire::PhaseStart start;
};  // the open phase, to the members of a new generation
struct OrderCheckpoint {
  std::uint64_t number = 0;
  bool last = false;  // nothing is to be trained behind it: ServersChange or ServersGoOn follows
};                    // to every member
// The group of so many servers follows, from the newest checkpoint.
struct ServersChange {
  std::uint32_t count = 0;
};
// The group goes on, and does not wait for its last checkpoint.
struct ServersGoOn {};
struct LeaveWorker {
  Member member;
  wire::Leave leave;
};
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
using Effect = std::variant<SaveImage, StartWorker, StopWorker, PrepareGang, ExpectMembers,
                            WorkerGone, OpenPhase, AnnouncePhase, OrderCheckpoint, ServersChange,
                            ServersGoOn, LeaveWorker, LeaveAll, Note, End>;

}  // namespace antdt::ctl::job
