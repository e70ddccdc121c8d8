// The machines of a simulated cluster, and the processes on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/hosts/host.h"
#include "sim/members/worker.h"
#include "sim/rng.h"

namespace antdt::sim {

// The monotonic clocks of machines. `apart`: they start at different values and run at different
// rates.
class Clocks {
 public:
  Clocks(World& world, bool apart) : world_(world), apart_(apart) {}

  [[nodiscard]] HostClock make();
  // The first value of the clock of a machine that is started now.
  [[nodiscard]] MonoTime base();

 private:
  World& world_;
  const bool apart_;
};

class Hosts {
 public:
  // The seed determines the number of hosts, which have room for `processes` or a few more.
  Hosts(World& world, Clocks& clocks, std::uint32_t processes, const Host::Outside& outside);

  [[nodiscard]] std::vector<std::unique_ptr<Host>>& all() { return hosts_; }
  [[nodiscard]] Host& at(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const;
  // The number of processes that all hosts can hold.
  [[nodiscard]] std::uint32_t slots() const;

  [[nodiscard]] std::vector<std::shared_ptr<Program>> programs() const;  // the live ones
  // The first one for which `condition` is true, or null.
  template <class Condition>
  [[nodiscard]] std::shared_ptr<Program> find(Condition condition) const {
    for (const auto& host : hosts_) {
      if (auto found = host->find(condition)) return found;
    }
    return nullptr;
  }
  // The live workers that are in a collective.
  [[nodiscard]] std::vector<std::shared_ptr<Worker>> living() const;
  // The newest attempt of the worker, if it is alive.
  [[nodiscard]] std::shared_ptr<Worker> worker(WorkerId id) const;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace antdt::sim
