// The parameter servers of a collective whose members' embedding rows they hold (sync = "hybrid").
// They serve as soon as they are told, and their part of a checkpoint is of the same step as the
// members'. What their answers cost is part of a step's cost.
#pragma once

#include <cstdint>
#include <map>

#include "sim/fleet/player.h"

namespace antdt::fleet {

class RowServers {
 public:
  explicit RowServers(Player& player) : player_(player) {}

  void joined(Worker& server);
  void hear(Worker& server, Generation generation, const ctl::job::WorkerMessage& body);
  // The members have written their part of that checkpoint.
  void written(std::uint64_t number, Step step);

 private:
  void on(Worker& server, Generation generation, const wire::PsServe& serve);
  void on(Worker& server, Generation generation, const wire::PsCut& cut);
  void on(Worker& server, Generation generation, const wire::Leave& leave);
  template <class Other>  // messages for workers
  void on(Worker&, Generation, const Other&) {}
  void save(Worker& server);

  Player& player_;
  std::map<Member, std::uint64_t> ordered_;  // the newest checkpoint that each was to write
  std::uint64_t number_ = 0;                 // of the newest checkpoint of the members
  Step step_;
};

}  // namespace antdt::fleet
