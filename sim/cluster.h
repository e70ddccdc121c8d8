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
#include "sim/host.h"
#include "sim/options.h"
#include "sim/ring.h"
#include "sim/worker.h"
#include "sim/world.h"

namespace antdt::sim {

class Cluster final : public Surroundings {
 public:
  Cluster(World& world, const Options& options);

  void begin();
  [[nodiscard]] bool ended() const { return outcome_.has_value(); }
  // Who does what now: for the transcript of a run that does not end.
  [[nodiscard]] std::string describe() const;

  // Of workers.
  void to_agent(Worker& from, client::Outbound message) override;
  void exited(Worker& worker, int code, int signal) override;
  Ring& ring(std::uint64_t key, const std::vector<WorkerId>& members) override;
  void write_checkpoint(const std::string& directory, const Trained& state) override;
  const Trained* read_checkpoint(const std::string& directory) override;
  void took(const Worker& worker, Record record) override { checks_->took(worker, record); }
  void trained(const Worker& worker, Record record) override { checks_->trained(worker, record); }
  void phase_done(const Worker& worker) override { checks_->phase_done(worker); }

 private:
  void shape_job();
  [[nodiscard]] ctl::JobMachineConfig machine_config() const;
  [[nodiscard]] Host& host(const std::string& name);
  [[nodiscard]] std::vector<std::shared_ptr<Worker>> living() const;

  // The network: cluster.cc
  void send(const std::string& link, const std::string& host, World::Action deliver,
            const std::string& what);
  [[nodiscard]] bool reaches(const std::string& a, const std::string& b) const;
  void cut(const std::string& a, const std::string& b, Duration how_long);

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
  void wish();
  void stop_faults();

  World& world_;
  Options options_;
  JobShape shape_;
  std::uint32_t workers_ = 0;
  std::uint32_t slots_ = 0;  // of all hosts
  SharedFiles files_;
  std::unique_ptr<Checks> checks_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::unique_ptr<Daemon> daemon_;
  std::map<std::uint64_t, std::unique_ptr<Ring>> rings_;
  std::map<std::string, MonoTime> last_delivery_;  // by link
  std::set<std::pair<std::string, std::string>> cuts_;
  std::optional<ctl::Outcome> outcome_;
  bool placed_ = false;  // the first process was started
  bool faults_over_ = false;
};

}  // namespace antdt::sim
