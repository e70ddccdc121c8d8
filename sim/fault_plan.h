// Decides what fails in a simulated cluster and when, and what its operators order.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "sim/daemon/daemons.h"
#include "sim/files.h"
#include "sim/hosts/disk.h"
#include "sim/hosts/hosts.h"
#include "sim/job_shape.h"
#include "sim/network.h"
#include "sim/options.h"

namespace antdt::sim {

class FaultPlan {
 public:
  // The objects that faults are applied to.
  struct Targets {
    Faults& faults;  // the faults that may happen now
    Hosts& hosts;
    Clocks& clocks;
    Network& network;
    SharedFiles& files;
    Disk& disk;
    Daemons& daemons;
  };
  FaultPlan(World& world, const Options& options, const DrawnJob& job, Targets targets);

  void begin();
  // From here on everything that can work does. A stopped process stays stopped: the job must find
  // and replace it.
  void end();
  // The first process was started. If a host is lost before that, the job ends, as it should.
  void placed() { placed_ = true; }

 private:
  void schedule();
  void strike();
  void kill_workers();
  void kill_a_domain();
  // Those that run and are among these.
  void kill_all(const std::function<bool(const Program&)>& victims);
  void hang_a_worker();
  void slow_a_worker();
  void crash_the_daemon();
  void crash_an_agent();
  void crash_a_host();
  void cut_a_link();
  void cut_off_a_domain();
  void black_out();
  void suspend_a_machine();
  void start_a_second_daemon();
  void stand_the_store_still();
  void fill_the_journals_disk();
  void fill_the_checkpoints_disk();
  void take_the_checkpoints_away();
  void spoil_a_checkpoint();
  void wish();
  // If records are pinned: an operator raises the number of workers as long as a domain has none.
  void help_domains();
  [[nodiscard]] std::shared_ptr<Program> some_program(std::string_view roles = "sw");

  World& world_;
  Rng& rng_;
  const Faults chances_;
  const JobShape shape_;
  const std::uint32_t calm_;
  const std::uint32_t slots_;  // of all hosts, for processes
  Targets on_;
  bool over_ = false;
  bool placed_ = false;
};

}  // namespace antdt::sim
