// All incarnations of the job daemon, and the state of the job. One incarnation crashes and the
// next begins, two may run at once, and an operator's stop is followed by a resume.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/daemon/daemon.h"
#include "sim/hosts/hosts.h"
#include "sim/options.h"
#include "sim/script.h"

namespace antdt::sim {

class Daemons {
 public:
  Daemons(World& world, Clocks& clocks, Daemon::Run run, const Script& script,
          Daemon::Outside outside);

  void make();
  void start_after(Duration pause);  // does nothing if a daemon runs by then
  void receive(const ToDaemon& message);
  // An operator wants the job to stop.
  void stop_asked(Duration grace);
  // Delivers the messages that the script held back to the newest incarnation.
  void release_messages();

  [[nodiscard]] Daemon* newest() const;  // null if none runs
  [[nodiscard]] const ctl::JobMachine* machine() const;
  [[nodiscard]] bool ended() const { return outcome_.has_value(); }
  [[nodiscard]] const std::optional<ctl::Outcome>& outcome() const { return outcome_; }
  // The job ended, or an operator stopped it and has not resumed it yet.
  [[nodiscard]] bool over() const { return ended() || stopped_; }

 private:
  void job_ended(const ctl::Outcome& outcome);
  void resume();

  World& world_;
  Clocks& clocks_;
  Daemon::Run run_;
  const Script& script_;
  Daemon::Outside outside_;
  std::vector<std::unique_ptr<Daemon>> daemons_;  // every incarnation
  std::vector<ToDaemon> held_back_;
  std::optional<ctl::Outcome> outcome_;
  bool stop_asked_ = false;
  bool stopped_ = false;
};

}  // namespace antdt::sim
