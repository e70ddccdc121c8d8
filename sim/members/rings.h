// The collectives of all generations, over the network of a simulated cluster.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/members/ring.h"
#include "sim/script.h"
#include "sim/world.h"

namespace antdt::sim {

class Hosts;
class Network;

class Rings {
 public:
  Rings(World& world, const Hosts& hosts, const Network& network, const Script& script)
      : world_(world), hosts_(hosts), network_(network), script_(script) {}

  // The first member that comes makes the generation's ring.
  [[nodiscard]] Ring& at(std::uint64_t key, const std::vector<WorkerId>& members);

 private:
  [[nodiscard]] Ring::Reaches reach_of(const std::vector<WorkerId>& members) const;
  [[nodiscard]] Ring::Runs runs(const std::vector<WorkerId>& members) const;
  [[nodiscard]] Ring::Withheld withheld(const std::vector<WorkerId>& members) const;

  World& world_;
  const Hosts& hosts_;
  const Network& network_;
  const Script& script_;
  std::map<std::uint64_t, std::unique_ptr<Ring>> rings_;
};

}  // namespace antdt::sim
