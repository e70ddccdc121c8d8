// The job daemon: the real JobMachine and, around it, what cmd/antdt-jobd does:
// links to agents, turns with one commit each, a store of checkpoints.
//
// The journal and the checkpoints outlive it. A crash may come at any moment; a
// turn that was being committed is then there whole or not at all, and nothing
// of it was sent.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctl/job/job_machine.h"
#include "sim/messages.h"
#include "sim/model.h"
#include "sim/options.h"
#include "sim/world.h"

namespace antdt::sim {

// Files that every host sees.
struct SharedFiles {
  struct Checkpoint {
    Trained state;
    Lineage lineage;
    std::string ledger_image, accounts_image;
  };
  std::map<std::string, Trained> written;         // by directory, not complete
  std::map<std::string, Checkpoint> checkpoints;  // by name
};

class Daemon {
 public:
  struct Outside {
    std::function<void(const std::string& host, ToAgent)> to_agent;
    // After each turn that is durable.
    std::function<void(const ctl::JobMachine&)> durable;
    std::function<void(const ctl::Outcome&)> ended;
    // A message that says a phase is over.
    std::function<void(const ctl::JobMachine&, std::uint64_t phase)> said_end;
    std::function<void(const SharedFiles::Checkpoint&)> stored;
  };
  Daemon(World& world, ctl::JobMachineConfig config, std::vector<std::string> hosts,
         std::uint32_t workers, SharedFiles& files, Sabotage sabotage, Outside outside);

  void start();
  void crash();
  void receive(ToDaemon message);
  // Given to the machine in a turn of its own, if the daemon runs.
  void feed_soon(ctl::JobInput input);

  [[nodiscard]] bool runs() const { return machine_.has_value(); }
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

  void soon(Job job);
  void turn();
  void finish_turn();
  void commit();
  void feed(const ctl::JobInput& input);
  void every(Duration period, Job job);
  void tick();
  void beat();
  void repeat_requests();
  void hear(const ToDaemon& message);
  void welcomed(const std::string& host, const wire::AgentWelcome& welcome);
  void place();
  void send(const std::string& host, decltype(ToAgent::body) body);

  void perform(const ctl::out::Persist& o);
  void perform(const ctl::out::ToWorker& o);
  void perform(const ctl::job::StartWorker& o);
  void perform(const ctl::job::StopWorker& o);
  void perform(const ctl::job::PrepareGang&) {}
  void perform(const ctl::out::StoreCheckpoint& o);
  void perform(const ctl::out::FindCheckpoint& o);
  void perform(const ctl::out::Note& o);
  void perform(const ctl::job::End& o);
  void sabotage(ctl::out::ToWorker& message);

  World& world_;
  const ctl::JobMachineConfig config_;
  const std::vector<std::string> hosts_;
  const std::uint32_t workers_;
  SharedFiles& files_;
  const Sabotage sabotage_;
  Outside outside_;

  // Durable.
  Incarnation incarnation_;
  shard_server::JournalContent journal_;
  std::string durable_ledger_;
  std::uint64_t turns_ = 0;

  Life life_;
  std::optional<ctl::JobMachine> machine_;
  std::map<std::string, Link> links_;
  std::map<Member, MonoTime> asked_;
  std::deque<Job> inbox_;
  bool in_turn_ = false;
  bool committing_ = false;
  std::vector<shard_server::JournalEntry> pending_;
  std::vector<Outgoing> outbox_;
  std::optional<std::pair<Member, std::string>> inbound_;
  // For sabotage.
  std::optional<wire::Grants> granted_;
  shard_server::JournalContent older_;
};

}  // namespace antdt::sim
