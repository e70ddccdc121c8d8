// What must hold of a model that is on servers, beside what sim/checks.h looks at.
//
//   exactly once      a home decides each record once an epoch
//   model and ledger  what the ledger calls committed is decided; who hears that a
//                     phase is over hears it of a model that has all of it
//   torn              a checkpoint has every record on all its servers, or on none
//
// What is decided in a group that is over is in no later one: that begins with a
// checkpoint, which is what its ledger says.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/model.h"
#include "sim/servers/ps_packets.h"
#include "sim/servers/ps_worker.h"
#include "sim/world.h"

namespace antdt::sim {

class PsChecks {
 public:
  explicit PsChecks(World& world, std::uint64_t records) : world_(world), records_(records) {}

  // `from`: null where it begins at the start.
  void group_began(Generation generation, const Model* from);
  void pushed(const PsWorker& worker, std::uint64_t number, const std::vector<Record>& records);
  // How often a record may be in the model by this epoch.
  using Bounds = std::function<std::pair<unsigned, unsigned>(std::uint32_t epoch, Record)>;
  void decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision,
               const Bounds& bounds);
  // Null: the group has not begun.
  [[nodiscard]] const Model* model_of(Generation generation) const;

 private:
  struct Push {
    std::uint32_t epoch = 0;
    std::vector<Record> records;
  };
  World& world_;
  const std::uint64_t records_;
  std::map<Generation, Model> models_;                                     // what was decided
  std::map<std::pair<Generation, std::uint32_t>, std::uint64_t> decided_;  // by home: the newest
  std::map<std::tuple<Generation, Member, std::uint64_t>, Push> pushes_;
};

}  // namespace antdt::sim
