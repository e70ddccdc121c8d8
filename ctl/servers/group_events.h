// The events and the effects of a group of parameter servers (server_group.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/servers/ps_messages.h"

namespace antdt::ctl::servers {

// ------------------------------------------------------------------------- inputs

// The processes that run or are being started; replaces the previous lists.
struct ProcessesExpected {
  std::vector<Member> servers;  // at least one process of each server is needed
  std::vector<Member> workers;
  std::vector<Member> added = {};  // servers of the next size, which are not waited for
};
// A server or a worker asks to be in the group.
// Why a worker that knows where the servers are could not begin.
enum class Trouble : std::uint8_t {
  kServers,     // they are not reached, or refuse
  kDisk,        // one of them cannot read its slices just now
  kCheckpoint,  // its slices are damaged, or do not fit the tables
};
[[nodiscard]] inline Trouble trouble_in(const wire::Join& join) {
  if (join.may_pass) return Trouble::kDisk;
  return join.unreadable.empty() ? Trouble::kServers : Trouble::kCheckpoint;
}

struct GroupJoinRequested {
  Member member;
  std::string endpoint;      // set by a server
  std::string key = {};      // the public key by which it is known over tcp
  std::string problem = {};  // set by a worker that knows where the servers are and could not begin
  Trouble trouble = Trouble::kServers;
  std::uint32_t fewest_servers = 0;  // said by a worker: its model does not fit fewer; 0: unknown
};
// A server has applied an order.
struct ServeAnswered {
  Member server;
  Generation generation;
  wire::PsServing said;
};
// A server has written its part of a checkpoint, or could not.
struct SlicesSaved {
  Member server;
  Generation generation;
  wire::PsSaved said;
};
struct GroupMemberLost {
  Member member;
  std::string reason;
};
// Answers ChooseRestore: the next group begins from this checkpoint, or from the seeded start.
struct RestoreChosen {
  std::string restore;        // empty: the seeded start
  std::uint64_t version = 0;  // number of updates that the checkpoint contains
};
// What the servers hold is of no use any more, because what belongs to it is lost.
struct RowsVoid {
  std::string reason;
};
struct CutOrdered {
  std::uint64_t number = 0;  // greater than every earlier one
  bool last = false;         // nothing is applied after it
};
// The last checkpoint is stored. The group is over, and the next one has this many servers.
struct GroupResized {
  std::uint32_t count = 0;
};
// The last checkpoint is given up, and the group goes on.
struct ResizeAbandoned {};
// From now on the servers work by these terms; an absent term stays as it was.
struct TermsSet {
  std::optional<std::uint32_t> backups;  // how many pushes a step need not wait for
  std::optional<double> rate = {};       // updates use this factor of the job's learning rate
};
// A server that reads its slices, or a worker that opens its data before it joins, has read more of
// them. The patience with every process begins anew.
struct RestoreAdvanced {};
struct TimePassed {};

using Input = std::variant<ProcessesExpected, GroupJoinRequested, ServeAnswered, SlicesSaved,
                           GroupMemberLost, RestoreChosen, RowsVoid, CutOrdered, GroupResized,
                           ResizeAbandoned, TermsSet, RestoreAdvanced, TimePassed>;

// ------------------------------------------------------------------------ effects

// image() has changed, and must be durable before anything that follows is sent.
struct PersistGroup {};
struct SendServe {
  Member to;
  Generation generation;
  wire::PsServe serve;
  bool reads = false;  // the server will read serve.restore, which must be on its host by then
};
struct SendCut {
  Member to;
  Generation generation;
  wire::PsCut cut;
};
// All servers serve the group. These are its workers, and their places begin at 0.
struct OpenGroup {
  Generation generation;
  std::vector<Member> workers;
};
// Every server knows this worker, so it may be told where the servers are. Repeated when the worker
// asks again.
struct AdmitWorker {
  Member worker;
};
// Exactly these places of a worker that leaves are applied; the rest may be granted again.
struct SettleLeaver {
  wire::PsPlaces places;
};
// The group is over: its workers are to drop their work and join again.
struct DissolveGroup {
  Generation generation;
  std::vector<Member> workers;
  std::string reason;
};
// The same for workers that have not joined since then, because the first message may have been
// lost.
struct RepeatDissolve {
  Generation generation;
  std::vector<Member> workers;
};
// All others have waited too long for this process.
struct EndSilentMember {
  Member member;
  std::string what;
};
// A server lost one of its two processes and goes on with the other. Nothing is lost.
struct ReportSwitch {
  std::uint32_t server = 0;
  Member lost;
  Member alone;
  bool promoted = false;  // `alone` was the backup before
};
// A server has a backup again, which has everything that the primary has answered.
struct ReportBackup {
  std::uint32_t server = 0;
  Member primary;
  Member backup;
};
// Tells these workers where the servers are now.
struct SendRosters {
  std::vector<Member> workers;
};
// A worker cannot work with the servers of this group. `last`: it has failed too often.
struct ReportTrouble {
  Member worker;
  std::string problem;
  bool last = false;
  Trouble trouble = Trouble::kServers;
};
// What the servers held is lost. Answered by RestoreChosen.
struct ChooseRestore {
  // Not empty: why the servers cannot read what was chosen last.
  std::string unread = {};
  std::string checkpoint = {};  // that one
  bool damaged = false;         // it is what a server found there
};
// A checkpoint is written or, with an error, given up.
struct ConcludeCut {
  std::uint64_t number = 0;
  std::string directory;  // relative to the run directory
  std::uint64_t version = 0;
  std::vector<wire::CheckpointFile> files;
  std::vector<Member> writers;         // the writer of each file
  std::vector<wire::PsPlaces> places;  // of the workers that have pushed
  std::string error;
  std::optional<Member> unwritten = {};  // the server that could not write its slices
};

using Effect = std::variant<PersistGroup, SendServe, SendCut, OpenGroup, AdmitWorker, SettleLeaver,
                            DissolveGroup, RepeatDissolve, EndSilentMember, ReportSwitch,
                            ReportBackup, SendRosters, ReportTrouble, ChooseRestore, ConcludeCut>;
using Effects = std::vector<Effect>;

}  // namespace antdt::ctl::servers
