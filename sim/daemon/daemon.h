// The simulated job daemon. All its decisions are made by the code that ships (the job machine, its
// requests and contacts, skips, the pause on a full disk), driven in virtual time with one commit
// each turn.
//
// One object is one incarnation, that is, one process. The disk and the checkpoints outlive it. Two
// incarnations may run at once for a while: the older one ends at its next write. A crash may come
// at any moment. A turn whose commit was under way is then on the disk whole or not at all, and
// none of its messages was sent.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/job/daemon_pace.h"
#include "ctl/job/job_machine.h"
#include "ctl/job/skip_list.h"
#include "ctl/processes/agent_contacts.h"
#include "sim/daemon/daemon_outputs.h"
#include "sim/files.h"
#include "sim/hosts/disk.h"
#include "sim/hosts/process.h"
#include "sim/messages.h"
#include "sim/options.h"
#include "sim/world.h"

namespace antdt::sim {

class Daemon {
 public:
  // What all incarnations share: the job, its hosts and its files.
  struct Run {
    ctl::JobMachineConfig config;   // everything except the incarnation
    ctl::JobMachineConfig resumed;  // the same from the first resume of a stopped run on
    std::vector<std::string> hosts;
    std::uint32_t workers = 0;
    SharedFiles& files;
    Disk& disk;
    Sabotage sabotage = Sabotage::kNone;
    std::uint32_t visit_every = 0;  // JobShape
  };
  struct Outside {
    std::function<void(const std::string& host, ToAgent)> to_agent;
    // Called after each turn that is durable.
    std::function<void(const ctl::JobMachine&)> durable;
    // Called when records are skipped: at once for this incarnation, and again, for all, when the
    // skip is durable.
    std::function<void(const ctl::JobMachine&, const ctl::job::Skip&, bool durable)> skipped;
    std::function<void(const ctl::Outcome&)> ended;
    // Called when the daemon ended because the disk is full, or because a newer incarnation has
    // taken over.
    std::function<void()> died;
    // Called when a message says that a phase is over.
    std::function<void(const ctl::JobMachine&, std::uint64_t phase)> said_end;
    std::function<void(const SharedFiles::Checkpoint&)> stored;
    // Called when a process is to be killed at once, without having been asked to leave.
    std::function<void(const ctl::JobMachine&, Member)> killed;
    // Asked when a turn is durable and before its messages are sent: whether the daemon crashes
    // now.
    std::function<bool(const ctl::JobMachine&)> dies_before_sending;
  };
  Daemon(World& world, HostClock clock, const Run& run, const Outside& outside);

  // Returns false if the disk has no room to begin.
  bool start();
  void crash();
  // The daemon stands still: it was stopped (SIGSTOP), or its machine and its clock were suspended.
  void freeze(bool with_its_clock);
  void thaw();
  void receive(ToDaemon message);
  // Feeds `input` to the machine in a turn of its own, if the daemon runs.
  void feed_soon(ctl::job::Input input);
  void skip(std::uint64_t from, std::uint64_t to);

  [[nodiscard]] bool runs() const { return machine_.has_value(); }
  [[nodiscard]] bool stands_still() const { return process_.stands_still(); }
  // Amid a turn: what it has found before may be in its inbox.
  [[nodiscard]] bool is_busy() const { return runs() && turn_ != Turn::kNone; }
  [[nodiscard]] bool paused() const { return pause_.paused(); }
  [[nodiscard]] Incarnation incarnation() const { return incarnation_; }
  // Null while the daemon does not run.
  [[nodiscard]] const ctl::JobMachine* machine() const { return machine_ ? &*machine_ : nullptr; }

 private:
  using Job = std::function<void()>;
  friend class DaemonOutputs;

  [[nodiscard]] std::unique_ptr<ctl::Solution> solution() const;
  void begin();
  void soon(Job job);
  void turn();
  void commit_soon();
  void give_signs_of_life();
  void committed(Disk::Wrote wrote);
  [[nodiscard]] Disk::Wrote commit(bool with_snapshot = true);
  void end(const char* why);
  void pause_if_disk_is_full();
  void go_on_if_there_is_room();
  void declare_skips();
  void keep_skips();
  void feed(const ctl::job::Input& input);
  void every(Duration period, Job job);
  void tick();
  void beat();
  void hear(const ToDaemon& message);
  void hear_worker(const ToDaemon& message, const ctl::job::WorkerSaid& said);
  void welcomed(const std::string& host, const wire::AgentWelcome& welcome);
  void place();

  World& world_;
  HostClock clock_;
  const Run& run_;
  const Outside& outside_;

  Process process_;
  Incarnation incarnation_;
  std::optional<ctl::JobMachine> machine_;
  ctl::AgentContacts contacts_;
  DaemonOutputs outputs_{*this};
  std::deque<Job> inbox_;
  // kStandsStill: it waits for a commit, and so does its clock (core/standstill_clock.h).
  enum class Turn { kNone, kRuns, kCommits, kStandsStill };
  Turn turn_ = Turn::kNone;
  ctl::job::SkipList skips_;
  std::vector<ctl::job::Skip> declared_;  // in this turn
  bool low_on_space_ = false;
  bool resumes_ = false;  // removes the operator's request when it is in the journal
  ctl::job::JournalPause pause_;
};

}  // namespace antdt::sim
