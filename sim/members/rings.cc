#include "sim/members/rings.h"

#include "sim/hosts/hosts.h"
#include "sim/network.h"

namespace antdt::sim {

Ring& Rings::at(std::uint64_t key, const std::vector<WorkerId>& members) {
  auto& ring = rings_[key];
  if (!ring) {
    ring = std::make_unique<Ring>(world_, members.size(), reach_of(members), runs(members),
                                  withheld(members));
  }
  return *ring;
}

Ring::Reaches Rings::reach_of(const std::vector<WorkerId>& members) const {
  const auto place = [this, members](std::size_t rank) -> std::string {
    for (const auto& worker : hosts_.living()) {
      if (worker->member().worker == members[rank]) return worker->host();
    }
    return {};
  };
  return [this, place](std::size_t a, std::size_t b) {
    return network_.whole() || network_.reaches(place(a), place(b));
  };
}

Ring::Runs Rings::runs(const std::vector<WorkerId>& members) const {
  return [this, members](std::size_t rank) {
    const auto at = hosts_.worker(members[rank]);
    return at && at->alive() && !at->stopped();
  };
}

Ring::Withheld Rings::withheld(const std::vector<WorkerId>& members) const {
  return {[this, members](std::size_t rank) {
            if (!script_.withholds_step) return false;
            const auto at = hosts_.worker(members[rank]);
            return at && script_.withholds_step(*at);
          },
          [this, members](std::size_t rank, std::size_t from) {
            if (!script_.withholds_state) return false;
            const auto at = hosts_.worker(members[rank]);
            return at && script_.withholds_state(*at, members[from]);
          }};
}

}  // namespace antdt::sim
