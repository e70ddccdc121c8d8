// One job on its hosts: everything wired together, with messages that may be
// lost, late, twice or in another order, and faults that come when the seed says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/checks.h"
#include "sim/daemon.h"
#include "sim/hosts/disk.h"
#include "sim/hosts/host.h"
#include "sim/members/ring.h"
#include "sim/members/worker.h"
#include "sim/options.h"
#include "sim/surroundings.h"
#include "sim/world.h"

namespace antdt::sim {

// What a scripted case makes happen; each may be empty.
struct Script {
  // An exchange does not complete at this member yet.
  std::function<bool(const Worker&)> withholds_step;
  // The state does not arrive at this member yet.
  std::function<bool(const Worker&, WorkerId from)> withholds_state;
  // A message to the daemon is kept for release_messages().
  std::function<bool(const ToDaemon&)> holds_back;
  // The daemon crashes: what is durable was not said to anybody.
  std::function<bool(const ctl::JobMachine&)> daemon_dies;
  // A checkpoint is in place, and the journal does not know it yet.
  std::function<void()> stored;
};

class Cluster final : public Surroundings {
 public:
  Cluster(World& world, const Options& options);

  void begin();
  [[nodiscard]] bool ended() const { return outcome_.has_value(); }
  // Who does what now: for the transcript of a run that does not end.
  [[nodiscard]] std::string describe() const;
  // What an operator's stop ended, and what goes on when the run is resumed.
  [[nodiscard]] bool over() const { return ended() || stopped_; }

  // For scripted cases.
  Script script;
  [[nodiscard]] std::vector<std::shared_ptr<Program>> programs() const;  // that live
  // Of these, the workers in a collective.
  [[nodiscard]] std::vector<std::shared_ptr<Worker>> living() const;
  // Its newest attempt, if that lives.
  [[nodiscard]] std::shared_ptr<Worker> worker(WorkerId id) const;
  [[nodiscard]] Daemon* daemon() const;  // the newest incarnation that runs, if one does
  [[nodiscard]] const ctl::JobMachine* machine() const;
  [[nodiscard]] Disk& disk() { return disk_; }
  [[nodiscard]] SharedFiles& files() { return files_; }
  [[nodiscard]] const std::optional<ctl::Outcome>& outcome() const { return outcome_; }
  void make_daemon();
  void start_daemon_after(Duration pause);  // unless one runs then
  void release_messages();

  // Of processes.
  void to_agent(Program& from, Said message) override;
  void exited(Program& program, int code, int signal) override;
  Ring& ring(std::uint64_t key, const std::vector<WorkerId>& members) override;
  std::string write_checkpoint(const std::string& directory, const Trained& state) override;
  const Trained* read_checkpoint(const std::string& directory) override;
  void took(const Worker& worker, Record record) override { checks_->took(worker, record); }
  void trained(const Worker& worker, Record record) override {
    check_data(worker);
    checks_->trained(worker, record);
  }
  void phase_done(const Worker& worker) override { checks_->phase_done(worker); }
  // cluster_servers.cc
  std::uint64_t new_socket(const Program& of) override;
  void ask(const Program& from, const std::string& endpoint, PsPacket packet) override;
  void answer(const Program& from, PsAnswer answer) override;
  std::string write_slices(const std::string& directory, const PsSlices& slices) override;
  const PsSlices* read_slices(const std::string& directory) override;
  [[nodiscard]] bool loses_child() override;
  void group_began(Generation generation, const std::string& restore) override;
  void pushed(const PsWorker& worker, std::uint64_t number,
              const std::vector<Record>& records) override {
    check_data(worker);
    checks_->pushed(worker, number, records);
  }
  void decided(Generation generation, std::uint32_t home,
               const wire::PsDecision& decision) override {
    checks_->decided(generation, home, decision);
  }
  void phase_done(const PsWorker& worker) override { checks_->phase_done(worker); }

 private:
  void shape_job();
  void shape_servers();
  void check_data(const Program& who);
  [[nodiscard]] std::shared_ptr<Program> make_program(Host& at, Member member, std::uint32_t pid);
  [[nodiscard]] ctl::JobMachineConfig machine_config() const;
  [[nodiscard]] Host& host(const std::string& name);
  [[nodiscard]] HostClock clock();
  [[nodiscard]] MonoTime clock_base();

  [[nodiscard]] Daemon::Outside outside_of_daemon();
  void to_daemons(const ToDaemon& message);
  void daemon_said_end(const ctl::Outcome& outcome);
  void resume();

  // The network: cluster.cc
  void send(const std::string& link, const std::string& host, World::Action deliver,
            const std::string& what);
  [[nodiscard]] Ring::Withheld withheld(const std::vector<WorkerId>& members);
  [[nodiscard]] bool reaches(const std::string& a, const std::string& b) const;
  void cut(const std::string& a, const std::string& b, Duration how_long);

  using Deliver = std::function<void(Program&)>;
  void carry(const Program& from, const std::shared_ptr<Program>& to, const std::string& what,
             Deliver deliver);

  // faults.cc
  void schedule_fault();
  void fault();
  void kill_workers();
  void hang_a_worker();
  void slow_a_worker();
  void crash_the_daemon();
  void crash_an_agent();
  void crash_a_host();
  void cut_a_link();
  void black_out();
  void suspend_a_machine();
  void start_a_second_daemon();
  void fill_the_journals_disk();
  void fill_the_checkpoints_disk();
  void spoil_a_checkpoint();
  void wish();
  [[nodiscard]] std::shared_ptr<Program> some_program(std::string_view roles = "sw");
  void stop_faults();

  World& world_;
  Options options_;
  JobShape shape_;
  JobShape other_shape_;    // as it is where the data are others
  std::string other_host_;  // empty: nowhere
  std::uint32_t workers_ = 0;
  std::uint32_t slots_ = 0;  // of all hosts
  SharedFiles files_;
  std::unique_ptr<Checks> checks_;
  std::vector<std::unique_ptr<Host>> hosts_;
  Disk disk_;
  std::vector<std::unique_ptr<Daemon>> daemons_;  // every incarnation
  std::map<std::uint64_t, std::unique_ptr<Ring>> rings_;
  std::map<std::string, MonoTime> last_delivery_;  // by link
  std::vector<Member> sockets_;                    // whose each is
  std::set<std::pair<std::string, std::string>> cuts_;
  std::optional<ctl::Outcome> outcome_;
  std::vector<ToDaemon> held_back_;
  std::uint32_t calm_ = 1;  // faults are so much further apart
  bool placed_ = false;     // the first process was started
  bool faults_over_ = false;
  bool stopped_ = false;  // by an operator, and not resumed yet
};

}  // namespace antdt::sim
