// One job on its hosts, with everything wired together. Messages may be lost, delayed, duplicated
// or reordered, and faults come when the seed says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/checks.h"
#include "sim/daemon/daemons.h"
#include "sim/fault_plan.h"
#include "sim/files.h"
#include "sim/hosts/disk.h"
#include "sim/hosts/hosts.h"
#include "sim/job_shape.h"
#include "sim/members/rings.h"
#include "sim/network.h"
#include "sim/options.h"
#include "sim/script.h"
#include "sim/surroundings.h"
#include "sim/world.h"

namespace antdt::sim {

class Cluster {
 public:
  Cluster(World& world, const Options& options);

  void begin();
  [[nodiscard]] bool ended() const { return daemons_.ended(); }
  // What each process is doing now, for the transcript of a run that does not end.
  [[nodiscard]] std::string describe() const;

  // What a scripted case makes happen.
  Script script;
  // The live workers that are in a collective.
  [[nodiscard]] std::vector<std::shared_ptr<Worker>> living() const { return hosts_.living(); }
  [[nodiscard]] std::shared_ptr<Worker> worker(WorkerId id) const { return hosts_.worker(id); }
  [[nodiscard]] Daemons& daemons() { return daemons_; }
  [[nodiscard]] Daemon* daemon() const { return daemons_.newest(); }
  [[nodiscard]] const ctl::JobMachine* machine() const { return daemons_.machine(); }
  [[nodiscard]] Disk& disk() { return disk_; }
  [[nodiscard]] SharedFiles& files() { return files_; }
  [[nodiscard]] const std::optional<ctl::Outcome>& outcome() const { return daemons_.outcome(); }

 private:
  [[nodiscard]] bool wrong_domains() const { return options_.sabotage == Sabotage::kWrongDomain; }
  [[nodiscard]] Host::Outside outside_of_host();
  [[nodiscard]] Daemon::Outside outside_of_daemon();
  [[nodiscard]] std::shared_ptr<Program> make_program(Host& at, Member member, std::uint32_t pid);
  void job_ended(const ctl::Outcome& outcome);

  World& world_;
  const Options options_;
  const DrawnJob job_;
  Faults faults_;  // the faults that may happen now
  SharedFiles files_;
  Checks checks_;
  Clocks clocks_;
  Hosts hosts_;
  const std::string other_host_;  // the host whose data differs; empty: none
  Network network_;
  Disk disk_;
  Daemons daemons_;
  Rings rings_;
  Surroundings around_;
  FaultPlan plan_;
};

}  // namespace antdt::sim
