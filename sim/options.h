// What a simulated run is made of, and what may go wrong in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/clock.h"

namespace antdt::sim {

// Each is something the invariants must see: a test switches one on and
// expects a violation. None is part of any real program.
enum class Sabotage {
  kNone,
  kGrantTwice,    // the daemon hands the same records to two members
  kApplyTwice,    // a worker applies a step twice
  kForgetTurn,    // messages leave before the journal has them, and a crash forgets them
  kCommitEarly,   // a worker says that a step is stable which only it has applied
  kEndEarly,      // a member hears "end" before all is committed
  kKeepOldState,  // a member that is behind does not take over the newer state; a
                  // group of servers does not read the checkpoint that it goes on from
  kLyingDisk,     // a crash of the daemon takes turns away that were durable
  kSaveLate,      // a checkpoint's places are not those of its model
  kDeaf,          // from some moment on the daemon hears nobody
  kNoFence,       // the journal takes what an incarnation writes that was succeeded
  kForgetSkip,    // records that an operator skips are handed out all the same
  kSkipUnasked,   // records are skipped that nobody asked to skip
  kPushTooSoon,   // a worker of servers pushes before the ledger took back what came too late
  kSayLess,       // a worker of servers that are given up does not say what its home may have
                  // applied and the ledger has not heard of
  kStayPaused,    // the daemon does not see that there is room again
  kLieAboutData,  // a worker whose data are others says that they are the launcher's
  kSayNoBytes,    // a worker does not say how far it is with a checkpoint
};

// How the workers of a job work together.
enum class Sync {
  kAllReduce,
  kServers,  // around parameter servers, with a barrier or without, as the seed says
  kAny,      // as the seed says
};

// What can fail, as chances of one kind of fault against the others; 0: never.
struct Faults {
  std::uint32_t worker_kill = 0;
  std::uint32_t worker_hang = 0;
  std::uint32_t worker_slow = 0;
  std::uint32_t daemon_crash = 0;
  std::uint32_t agent_crash = 0;
  std::uint32_t host_crash = 0;
  std::uint32_t partition = 0;      // between the daemon and a host, or between two hosts
  std::uint32_t blackout = 0;       // every machine loses its power
  std::uint32_t suspend = 0;        // a machine stands still, and its clock
  std::uint32_t two_daemons = 0;    // the next one begins before the last has ended
  std::uint32_t journal_full = 0;   // no room for the journal
  std::uint32_t files_full = 0;     // none for checkpoints
  std::uint32_t spoil = 0;          // the newest checkpoint is damaged
  std::uint32_t operator_wish = 0;  // evictions, other sizes, skips, a stop and a resume
  bool other_data = false;          // one host has other files than the launcher
  // Monotonic clocks that began anywhere and run at their own pace.
  bool clocks = false;
  // Of messages between the daemon and agents.
  double lose = 0;
  double duplicate = 0;
  double reorder = 0;
  double delay = 0;  // by much more than usual

  [[nodiscard]] std::uint32_t weight() const {
    return worker_kill + worker_hang + worker_slow + daemon_crash + agent_crash + host_crash +
           partition + blackout + suspend + two_daemons + journal_full + files_full + spoil +
           operator_wish;
  }
};

struct Options {
  std::uint64_t seed = 1;
  bool trace = false;
  Faults faults;
  Sabotage sabotage = Sabotage::kNone;
  Sync sync = Sync::kAllReduce;
  // Around servers: no barrier and one process for each, under a promise of less than exactly once.
  bool weaker_delivery = false;
  std::uint32_t workers = 0;  // 0: as many as the seed says
  // How long the disk takes to write a checkpoint, and to read one. 0: no time.
  Duration write_time{};
  Duration read_time{};
  std::uint32_t epochs = 2;
  bool evaluate = true;
  Duration faults_stop = std::chrono::seconds(40);  // T
  Duration end_within = std::chrono::seconds(400);  // X
};

// By name: "none", "workers", "daemon", "agents", "disks", "operators", "messages", "all" of
// these, and "data" (with which a job cannot be done); false for others.
bool set_faults(std::string_view name, Faults& faults);

}  // namespace antdt::sim
