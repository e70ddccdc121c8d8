// What happens to a group of parameter servers (server_group.h), and what it wants done, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/ps_messages.h"

namespace antdt::ctl::servers {

// ------------------------------------------------------------------------- inputs

// The processes that run or are being started; replaces what was said before.
struct ProcessesExpected {
  std::vector<Member> servers;  // at least one process of each server is needed
  std::vector<Member> workers;
  std::vector<Member> added = {};  // servers of the next size, for which nobody waits
};
// A server or a worker asks to be in the group.
struct GroupJoinRequested {
  Member member;
  std::string endpoint;      // of a server
  std::string key = {};      // the public key by which it is known over tcp
  std::string problem = {};  // of a worker that knows where the servers are and could not begin
};
// A server has taken up what it was told.
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
// Answers ChooseRestore: the next group goes on from this checkpoint, or from the seeded start.
struct RestoreChosen {
  std::string restore;        // empty: the start
  std::uint64_t version = 0;  // updates that are in it
};
struct CutOrdered {
  std::uint64_t number = 0;  // above all before
  bool last = false;         // nothing is applied behind it
};
// The last checkpoint is stored: the group is over, and the next one has so many servers.
struct GroupResized {
  std::uint32_t count = 0;
};
// The last checkpoint is given up, and the group goes on.
struct ResizeAbandoned {};
// From now on the servers work by these terms; what is absent stays as it was.
struct TermsSet {
  std::optional<std::uint32_t> backups;  // workers whose pushes a step need not wait for
  std::optional<double> rate = {};       // updates use this fraction of the job's learning rate
};
// A server that reads its slices has read more of them: everybody's patience begins anew.
struct RestoreAdvanced {};
struct TimePassed {};

using Input = std::variant<ProcessesExpected, GroupJoinRequested, ServeAnswered, SlicesSaved,
                           GroupMemberLost, RestoreChosen, CutOrdered, GroupResized,
                           ResizeAbandoned, TermsSet, RestoreAdvanced, TimePassed>;

// ------------------------------------------------------------------------ effects

// image() has changed: it is written before anything that follows is sent.
struct PersistGroup {};
struct SendServe {
  Member to;
  Generation generation;
  wire::PsServe serve;
  bool reads = false;  // the server then reads serve.restore, which must be on its host by then
};
struct SendCut {
  Member to;
  Generation generation;
  wire::PsCut cut;
};
// All servers serve the group, and these are its workers: they begin at place 0.
struct OpenGroup {
  Generation generation;
  std::vector<Member> workers;
};
// Every server knows this worker, so it may be told where they are; repeated when it asks again.
struct AdmitWorker {
  Member worker;
};
// Of a worker that leaves exactly these places are applied: the rest may be handed out again.
struct SettleLeaver {
  wire::PsPlaces places;
};
// The group is over: its workers are to let go of it and join again.
struct DissolveGroup {
  Generation generation;
  std::vector<Member> workers;
  std::string reason;
};
// The same for those that have not joined since: the first message may have been lost.
struct RepeatDissolve {
  Generation generation;
  std::vector<Member> workers;
};
// All others have waited too long for this process.
struct EndSilentMember {
  Member member;
  std::string what;
};
// A server lost one of its two processes and goes on with the other; nothing is lost.
struct ReportSwitch {
  std::uint32_t server = 0;
  Member lost;
  Member alone;
  bool promoted = false;  // `alone` was the backup
};
// A server has a backup again, which holds everything that the primary has answered.
struct ReportBackup {
  std::uint32_t server = 0;
  Member primary;
  Member backup;
};
// Tells these workers where the servers are now.
struct SendRosters {
  std::vector<Member> workers;
};
// A worker cannot work with servers that serve; `last`: it has failed too often.
struct ReportTrouble {
  Member worker;
  std::string problem;
  bool last = false;
};
// What the servers held is lost. Answered by RestoreChosen.
struct ChooseRestore {};
// A checkpoint is written or, with an error, given up.
struct ConcludeCut {
  std::uint64_t number = 0;
  std::string directory;  // below the run's
  std::uint64_t version = 0;
  std::vector<wire::CheckpointFile> files;
  std::vector<Member> writers;         // of each file
  std::vector<wire::PsPlaces> places;  // of the workers that have pushed
  std::string error;
  std::optional<Member> unwritten = {};  // the server that could not write the slices it has
};

using Effect = std::variant<PersistGroup, SendServe, SendCut, OpenGroup, AdmitWorker, SettleLeaver,
                            DissolveGroup, RepeatDissolve, EndSilentMember, ReportSwitch,
                            ReportBackup, SendRosters, ReportTrouble, ChooseRestore, ConcludeCut>;
using Effects = std::vector<Effect>;

}  // namespace antdt::ctl::servers
