// Plays a job with many workers in virtual time. The real job (ctl/job) decides everything, the
// workers are numbers (worker.h), and no message is lost.
//
// Each message of a worker or a host is an input of the job, and the job's outputs are carried out
// at once. The same things take time as in a real run: batches, the collective or the servers, a
// start, a new membership. An Onlooker may store what the job daemon would write, and may make
// processes, hosts and the job daemon fail. Lost packets, slow disks and the daemons' shells are
// simulated by sim/cluster.h.
//
//   processes ──start──> joined ──group──> training ──> the job's end
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/drill/emulation.h"
#include "ctl/job/job_machine.h"
#include "sim/fleet/speeds.h"
#include "sim/fleet/worker.h"
#include "sim/world.h"
#include "trainer/worker/sharing/share_rules.h"

namespace antdt::fleet {

// The times in seconds of everything except computing. The defaults are estimates for processes of
// one network, not measurements: bench/predictions/simulate_vs_real.py tells how far they are off.
struct Costs {
  double start_s = 0.5;                // from the start of a process to its join
  double regroup_s = 0.3;              // connecting a new membership and healing it
  double collective_s = 1e-3;          // of each step
  double collective_round_s = 0.2e-3;  // of each step, once for each doubling of the members
  double round_trip_s = 1e-3;          // of a pull or a push of a worker that waits for nobody
  double ask_s = 0.2e-3;               // an ask of a member that shares its steps, there and back
  double desk_s = 20e-6;               // for which a message keeps the desk of a group busy
  // How many members the collective had whose cost was measured (Speeds::step_cost_s); 0: as many
  // as there are now.
  std::uint32_t measured_members = 0;

  // The time of the collective in one step.
  [[nodiscard]] double exchange_s(std::size_t members) const {
    return collective_s + collective_round_s * rounds(members);
  }
  // What was measured, for this number of members: it grows with the rounds of the collective.
  [[nodiscard]] double scaled_s(double measured_s, std::size_t members) const {
    if (measured_members <= 1) return measured_s;
    return measured_s * rounds(members) / rounds(measured_members);
  }
  // One for each doubling of the members.
  [[nodiscard]] static int rounds(std::size_t members) {
    return std::bit_width(std::max<std::size_t>(members, 1) - 1);
  }
};

// The periods of the job's and the workers' clocks. The defaults are those of real processes; a run
// of weeks has longer periods, so that it can be played in minutes.
struct Pace {
  Duration tick = std::chrono::milliseconds(100);  // of the job daemon
  std::optional<Duration> decide = {};             // none: as often as the controller wants
  std::optional<Duration> report = {};             // of a worker; none: as the monitor wants
};

class Player;

// Observes what the job daemon would write to its files, and may inject failures.
class Onlooker {
 public:
  virtual ~Onlooker() = default;
  // The job is placed and nothing has happened yet: the onlooker may schedule events.
  virtual void begin(Player& player) = 0;
  virtual void persist(const ctl::job::PersistRecord& record) = 0;
  virtual void remember(shard_server::history::Entry entry) = 0;
  // The end of a turn, when the job daemon would commit. The job stands still, and may be given
  // orders.
  virtual void end_turn() = 0;
};

struct Setup {
  ctl::JobMachineConfig machine;
  std::unique_ptr<ctl::Solution> solution;
  std::vector<std::string> hosts = {"host"};
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;  // processes of parameter servers
  std::uint64_t seed = 1;
  Costs costs;
  drill::Emulation emulation = {};  // the devices that the workers report
  // How the members of a collective share their steps; none: they do not.
  std::optional<worker::sharing::ShareRules> sharing = {};
  Duration limit = std::chrono::hours(24 * 365);  // of virtual time
  const Clock* stopwatch = nullptr;               // measures the controller's decisions
  Pace pace = {};
  Onlooker* onlooker = nullptr;  // null: nobody observes
};

struct Played {
  bool ended = false;     // within the limit
  ctl::JobReport report;  // the same report as a real job's
  double seconds = 0;     // in training phases
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;       // of workers, to the job
  std::uint64_t journal_bytes = 0;  // that a daemon would have written to its journal
  std::uint64_t decisions = 0;      // of the controller
  double longest_decision_s = 0;    // by the stopwatch
  double all_decisions_s = 0;
};

// How the workers of a job train together.
class Group {
 public:
  virtual ~Group() = default;
  virtual void hear(Worker& worker, Generation generation, const ctl::job::WorkerMessage& body) = 0;
  virtual void joined(Worker& worker) = 0;  // the worker's process is ready
  virtual void gone(Worker& worker) = 0;    // its process has ended
  // The records of the steps of `generation` up to this one are in the run's history.
  virtual void recorded(Generation generation, Step step) = 0;
  [[nodiscard]] virtual Step step() const = 0;
  [[nodiscard]] virtual const char* activity(const Worker& worker) const = 0;
};

class Player {
 public:
  Player(Setup setup, const Speeds& speeds);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // May be called once.
  [[nodiscard]] Result<Played> play();

  // For groups.
  [[nodiscard]] sim::World& world() { return world_; }
  [[nodiscard]] MonoTime now() const { return world_.now(); }
  [[nodiscard]] const Costs& costs() const { return setup_.costs; }
  // What a step costs now beside its slowest member's own work; a pull or a push.
  [[nodiscard]] double exchange_s(std::size_t members) const;
  [[nodiscard]] double round_trip_s() const;
  [[nodiscard]] const ctl::JobSpec& spec() const { return setup_.machine.spec; }
  // A worker or a parameter server.
  [[nodiscard]] Worker& worker(WorkerId id) {
    return (id.role == 's' ? servers_ : workers_)[id.index];
  }
  [[nodiscard]] const drill::Emulation& emulation() const { return setup_.emulation; }
  void say(Worker& worker, ctl::job::WorkerBody body, std::uint64_t seq = 0);
  void fetch(Worker& worker);  // fetches the records that the worker's feed wants, if any
  // The worker sends its bye, and its process ends.
  void leave(Worker& worker, std::uint32_t code);
  // Whether the worker's micro-batch fits its device. A worker that tries a larger one dies of it.
  [[nodiscard]] bool fits(const Worker& worker) const;
  void out_of_memory(Worker& worker);
  // The worker's own time for `records` according to the speeds; the records count as trained.
  [[nodiscard]] double work(Worker& worker, std::uint64_t records);
  [[nodiscard]] const std::optional<ctl::job::StoreCheckpoint>& newest_checkpoint() const {
    return newest_checkpoint_;
  }

  [[nodiscard]] const std::optional<worker::sharing::ShareRules>& sharing() const {
    return setup_.sharing;
  }
  [[nodiscard]] bool is_recorded() const { return setup_.onlooker != nullptr; }

  // For the onlooker.
  [[nodiscard]] ctl::JobMachine& machine() { return *machine_; }
  [[nodiscard]] const std::vector<Worker>& workers() const { return workers_; }
  // An input from the onlooker, such as an operator's order.
  void order(ctl::job::Input input) { feed(std::move(input)); }
  // Ends the worker's process in this way; does nothing if it does not run.
  void kill(WorkerId worker, const wire::ProcessExited& how);
  // The host is lost with everything that runs on it, until it is welcomed again.
  void lose(const std::string& host);
  void welcome(const std::string& host);
  // The job daemon dies between two turns, and the next incarnation replays its journal. kCorrupt:
  // the replay gives another state.
  [[nodiscard]] Status restart_job_daemon(const shard_server::JournalContent& journal,
                                          std::unique_ptr<ctl::Solution> solution);

 private:
  void feed(ctl::job::Input input);
  void pump();
  void end_turn();
  [[nodiscard]] ctl::job::HostWelcomed welcome_of(const std::string& host) const;
  void carry_out(ctl::job::Effect& output);
  void start(Member member, const std::string& host);
  void stop(Member member, Duration grace);
  void ended(Worker& worker, const wire::ProcessExited& exit);
  void store(const ctl::job::StoreCheckpoint& order);
  void begin();
  void every(Duration period, const std::function<void()>& what);
  void decide();
  void report_some();
  void report_servers();
  [[nodiscard]] std::vector<Worker*> processes();  // servers and workers
  // What was measured of a step's cost at this moment of training, if anything was.
  [[nodiscard]] std::optional<double> measured_cost_s() const;

  Setup setup_;
  const Speeds& speeds_;
  sim::World world_;
  std::optional<ctl::JobMachine> machine_;
  std::vector<Worker> workers_;
  std::vector<Worker> servers_;
  std::unique_ptr<Group> group_;
  std::deque<ctl::job::Input> inbox_;
  bool pumping_ = false;
  std::optional<MonoTime> first_work_;
  std::size_t next_report_ = 0;
  std::set<std::string> lost_hosts_;
  std::optional<ctl::job::StoreCheckpoint> newest_checkpoint_;
  std::optional<ctl::Outcome> outcome_;
  Played played_;
};

}  // namespace antdt::fleet
