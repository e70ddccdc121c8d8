// The machines of a simulated cluster, and the processes on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/hosts/host.h"
#include "sim/members/worker.h"
#include "sim/rng.h"

namespace antdt::sim {

// Monotonic clocks of machines. `apart`: they began anywhere and run at their own pace.
class Clocks {
 public:
  Clocks(World& world, bool apart) : world_(world), apart_(apart) {}

  [[nodiscard]] HostClock make();
  // Where one begins whose machine is started now.
  [[nodiscard]] MonoTime base();

 private:
  World& world_;
  const bool apart_;
};

class Hosts {
 public:
  // The seed says how many there are, with room for `processes` or a few more.
  Hosts(World& world, Clocks& clocks, std::uint32_t processes, const Host::Outside& outside);

  [[nodiscard]] std::vector<std::unique_ptr<Host>>& all() { return hosts_; }
  [[nodiscard]] Host& at(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const;
  // Processes that all of them take in.
  [[nodiscard]] std::uint32_t slots() const;

  [[nodiscard]] std::vector<std::shared_ptr<Program>> programs() const;  // that live
  // The first of them for which it is so, or null.
  template <class Condition>
  [[nodiscard]] std::shared_ptr<Program> find(Condition condition) const {
    for (const auto& host : hosts_) {
      if (auto found = host->find(condition)) return found;
    }
    return nullptr;
  }
  // Of these, the workers in a collective.
  [[nodiscard]] std::vector<std::shared_ptr<Worker>> living() const;
  // Its newest attempt, if that lives.
  [[nodiscard]] std::shared_ptr<Worker> worker(WorkerId id) const;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace antdt::sim
