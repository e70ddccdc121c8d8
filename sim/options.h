// The shape of a simulated run, and the faults that may happen in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/clock.h"

namespace antdt::sim {

// Each sabotage breaks a rule on purpose, so that a test can show that the invariants find it. No
// real program contains one.
enum class Sabotage {
  kNone,
  kGrantTwice,    // the daemon hands the same records to two members
  kApplyTwice,    // a worker applies a step twice
  kForgetTurn,    // messages leave before their turn is in the journal, and a crash forgets the
                  // turn
  kCommitEarly,   // a worker reports a step as stable that only it has applied
  kEndEarly,      // a member hears "end" before all is committed
  kKeepOldState,  // a member that is behind keeps its older state instead of the newer one; a group
                  // of servers does not read the checkpoint that it should go on from
  kLyingDisk,     // a crash of the daemon takes away turns that were durable
  kSaveLate,      // a checkpoint's places do not match its model
  kDeaf,          // from some moment on the daemon receives nothing
  kNoFence,       // the journal accepts writes of an incarnation that has a successor
  kForgetSkip,    // records that an operator skips are still handed out
  kSkipUnasked,   // records are skipped that nobody asked to skip
  kHideSkip,      // a member does not report which records its program skipped
  kHurrySkip,     // a member completes a step before the journal has what its program skipped in it
  kEndLate,       // a member makes one more step after its program has ended the training
  kPushTooSoon,   // a worker of servers pushes before the ledger has taken back what came too late
  kSayLess,       // a worker of a group of servers that is given up does not report what its home
                  // may have applied and the ledger does not know
  kStayPaused,    // the daemon does not notice that the disk has room again
  kLieAboutData,  // a worker with other data reports the launcher's data
  kSayNoBytes,    // a worker reports its checkpoint, and no progress of it
  kWrongDomain,   // the daemon takes a worker for one of another domain
  kComputeTwice,  // a desk of shared steps hands a record to two members
  // Where members mix their replicas:
  kCommitUnmixed,  // a worker commits what the members concluded one step ago, as if all had summed
                   // their gradients
  kSaveUnmixed,    // replicas are not consolidated before a checkpoint and at the end of a phase
  kHoldBehind,     // a member whose replica is behind counts as one that holds the model
  kMergeAll,       // a lost member gives back nothing of what it trained in concluded steps
  kMergeLess,      // a member gives back a record that is in the model
  // Where domains send one another updates (those above are broken there, too, but kHoldBehind):
  kKeepParts,        // survivors do not withdraw what they have of a lost domain in part
  kKeepExchange,     // a step that is dropped leaves what was exchanged before it
  kOwnThreshold,     // the first domain keeps the threshold of the job's file
  kForgetThreshold,  // a daemon that begins again does not know which threshold is in force
  // Where embedding rows are on servers, and members agree on steps:
  kGatherUnstaged,  // a member gathers a step without having staged its part on the servers
  // Where workers keep replicas beside servers:
  kExchangeTwice,     // a worker moves the centre by twice what its replica moved
  kDropLastExchange,  // a worker does not send the exchange that ends its phase
  kKeepReplica,       // a home does not tell the other servers that a worker has left
  kStaleCentre,       // a server moves the centre from where it was an exchange before
};

// How the workers of a job are synchronised.
enum class Sync {
  kAllReduce,
  kServers,  // with parameter servers; the seed decides whether there is a barrier
  kDsSync,   // members of a collective mix their replicas in groups
  kGaia,     // domains of members send one another what is significant of their updates
  kHybrid,   // members of a collective, whose embedding rows are on parameter servers
  kShadow,   // with parameter servers and replicas of the dense parameters (shadow-…)
  kAny,      // the seed decides
};

// Whether records are pinned to domains.
enum class Pinning { kNever, kAlways, kSeedDecides };

// What can fail: the weight of each kind of fault against the others; 0: never.
struct Faults {
  std::uint32_t worker_kill = 0;
  std::uint32_t worker_hang = 0;
  std::uint32_t worker_slow = 0;
  std::uint32_t daemon_crash = 0;
  std::uint32_t agent_crash = 0;
  std::uint32_t host_crash = 0;
  std::uint32_t partition = 0;      // between the daemon and a host, or between two hosts
  std::uint32_t blackout = 0;       // all machines lose their power
  std::uint32_t suspend = 0;        // a machine and its clock stand still
  std::uint32_t two_daemons = 0;    // the next incarnation begins before the last has ended
  std::uint32_t journal_full = 0;   // the disk has no room for the journal
  std::uint32_t store_still = 0;    // the journal's store does not answer for a while
  std::uint32_t files_full = 0;     // the disk has no room for checkpoints
  std::uint32_t files_away = 0;     // nobody but the daemon can read checkpoints
  std::uint32_t spoil = 0;          // the newest checkpoint is damaged
  std::uint32_t operator_wish = 0;  // evictions, resizes, skips, a stop and a resume
  bool program_skips = false;       // the workers' program skips some records
  bool program_ends = false;        // in some jobs it ends the training before the last epoch
  bool other_data = false;          // one host has files that differ from the launcher's
  // The machines' monotonic clocks have different first values and rates.
  bool clocks = false;
  // Chances for each message between the daemon and agents.
  double lose = 0;
  double duplicate = 0;
  double reorder = 0;
  double delay = 0;  // delayed by much more than usual

  [[nodiscard]] std::uint32_t weight() const {
    return worker_kill + worker_hang + worker_slow + daemon_crash + agent_crash + host_crash +
           partition + blackout + suspend + two_daemons + journal_full + store_still + files_full +
           files_away + spoil + operator_wish;
  }
};

struct Options {
  std::uint64_t seed = 1;
  bool trace = false;
  Faults faults;
  Sabotage sabotage = Sabotage::kNone;
  Sync sync = Sync::kAllReduce;
  Pinning pinning = Pinning::kNever;
  // With parameter servers: no barrier, one process for each server, and a promise of less than
  // exactly once.
  bool weaker_delivery = false;
  std::uint32_t workers = 0;  // 0: the seed decides
  // How long the disk takes to write a checkpoint, and to read one. 0: no time.
  Duration write_time{};
  Duration read_time{};
  std::uint32_t epochs = 2;
  bool evaluate = true;
  Duration faults_stop = std::chrono::seconds(40);  // from this moment on there are no faults
  Duration end_within = std::chrono::seconds(400);  // the job must end within this time after the
                                                    // faults
};

// By name: "none", "workers", "daemon", "agents", "disks", "store", "operators", "messages",
// "programs" (which skip records and end the training, while workers die), "all" of these, and
// "data" (a job with it cannot complete). Returns false for other names.
bool set_faults(std::string_view name, Faults& faults);

}  // namespace antdt::sim
