// The job daemon: the real JobMachine and, around it, what cmd/antdt-jobd does:
// links to agents, turns with one commit each, a store of checkpoints.
//
// One object is one incarnation, that is one process. The disk and the
// checkpoints outlive it, and two incarnations may run at once for a while: the
// older one ends when it wants to write. A crash may come at any moment; a turn
// that was being committed is then there whole or not at all, and nothing of it
// was sent.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctl/job/job_machine.h"
#include "ctl/lifecycle/process_requests.h"
#include "sim/hosts/disk.h"
#include "sim/hosts/process.h"
#include "sim/messages.h"
#include "sim/model.h"
#include "sim/options.h"
#include "sim/servers/ps_packets.h"
#include "sim/world.h"

namespace antdt::sim {

// Files that every host sees.
struct SharedFiles {
  struct Checkpoint {
    Trained state;
    PsSlices slices;  // where the model is on servers
    Lineage lineage;
    std::string ledger_image, accounts_image;
    bool damaged = false;  // and its checksums show it
  };
  std::map<std::string, Trained> written;         // by directory, not complete
  std::map<std::string, PsSlices> slices;         // likewise
  std::map<std::string, Checkpoint> checkpoints;  // by name
  bool full = false;                              // nothing more can be written
};

class Daemon {
 public:
  struct Outside {
    std::function<void(const std::string& host, ToAgent)> to_agent;
    // After each turn that is durable.
    std::function<void(const ctl::JobMachine&)> durable;
    // Records are skipped: from now on for this incarnation, once durable for all.
    std::function<void(const ctl::JobMachine&, const KeptSkip&, bool durable)> skipped;
    std::function<void(const ctl::Outcome&)> ended;
    // It ended for want of room, or as another one has taken over.
    std::function<void()> died;
    // A message that says a phase is over.
    std::function<void(const ctl::JobMachine&, std::uint64_t phase)> said_end;
    std::function<void(const SharedFiles::Checkpoint&)> stored;
    // A process is to be killed at once, not having been asked to leave.
    std::function<void(const ctl::JobMachine&, Member)> killed;
    // Whether it crashes now: a turn is durable, and nothing of it was sent.
    std::function<bool(const ctl::JobMachine&)> dies_before_sending;
  };
  Daemon(World& world, HostClock clock, ctl::JobMachineConfig config,
         std::vector<std::string> hosts, std::uint32_t workers, SharedFiles& files, Disk& disk,
         Sabotage sabotage, Outside outside);

  // False when there is no room to begin.
  bool start();
  void crash();
  // It stands still: stopped, or with its machine (and its clock).
  void freeze(bool with_its_clock);
  void thaw();
  void receive(ToDaemon message);
  // Given to the machine in a turn of its own, if the daemon runs.
  void feed_soon(ctl::job::Input input);
  void skip(std::uint64_t from, std::uint64_t to);

  [[nodiscard]] bool runs() const { return machine_.has_value(); }
  [[nodiscard]] bool stands_still() const { return process_.stands_still(); }
  [[nodiscard]] bool paused() const { return paused_.has_value(); }
  [[nodiscard]] Incarnation incarnation() const { return incarnation_; }
  // Null while it does not run.
  [[nodiscard]] const ctl::JobMachine* machine() const { return machine_ ? &*machine_ : nullptr; }

 private:
  struct Link {
    bool welcome = false;
    bool lost = false;
    MonoTime last_heard{};
  };
  struct Outgoing {
    std::string host;
    ToAgent message;
  };
  using Job = std::function<void()>;

  void begin();
  void soon(Job job);
  void turn();
  void finish_turn();
  void committed();
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
  void repeat_requests();
  void hear(const ToDaemon& message);
  void hear_worker(const ToDaemon& message, const ctl::job::WorkerSaid& said);
  void welcomed(const std::string& host, const wire::AgentWelcome& welcome);
  void place();
  void send(const std::string& host, decltype(ToAgent::body) body);

  // daemon_outputs.cc
  void perform(const ctl::job::PersistRecord& o);
  void perform(const ctl::job::SendToWorker& o);
  void perform(const ctl::lifecycle::StartWorker& o);
  void perform(const ctl::lifecycle::StopWorker& o);
  void perform(const ctl::lifecycle::PrepareGang&) {}
  void perform(const ctl::job::RememberEntry&) {}  // no part of what the job needs
  void perform(const ctl::job::StoreCheckpoint& o);
  void perform(const ctl::job::FindCheckpoint& o);
  void perform(const ctl::job::PublishNote& o);
  void perform(const ctl::lifecycle::EndJob& o);
  [[nodiscard]] std::string store(const ctl::job::StoreCheckpoint& o, const std::string& name);
  [[nodiscard]] bool take_slices(const ctl::job::StoreCheckpoint& o);
  void sabotage(ctl::job::SendToWorker& message);

  World& world_;
  HostClock clock_;
  const ctl::JobMachineConfig config_;
  const std::vector<std::string> hosts_;
  const std::uint32_t workers_;
  SharedFiles& files_;
  Disk& disk_;
  const Sabotage sabotage_;
  Outside outside_;

  Process process_;
  Incarnation incarnation_;
  std::optional<ctl::JobMachine> machine_;
  std::map<std::string, Link> links_;
  ctl::ProcessRequests requests_;
  std::deque<Job> inbox_;
  bool in_turn_ = false;
  bool committing_ = false;
  std::vector<shard_server::JournalEntry> pending_;
  std::vector<KeptSkip> skips_;
  std::vector<KeptSkip> declared_;  // in this turn
  std::vector<Outgoing> outbox_;
  std::optional<std::pair<Member, std::string>> inbound_;
  bool low_on_space_ = false;
  std::optional<MonoTime> paused_;  // since then, or when room was looked for last
  std::optional<ctl::Outcome> outcome_;
  // For sabotage.
  std::optional<wire::Grants> granted_;
};

}  // namespace antdt::sim
