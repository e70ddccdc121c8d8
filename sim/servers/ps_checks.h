// The invariants of a model on servers, in addition to those of sim/checks.h.
//
//   exactly once      a home decides each record once an epoch
//   model and ledger  what the ledger calls committed is decided; who hears that a
//                     phase is over hears it of a model that has all of it
//   exchange          a worker that has heard that its phase is over has exchanged all that its
//                     replica was trained; the centre of a checkpoint has each exchange on
//                     all servers or on none, and that of the last one each once (where
//                     exchanges add to the centre: shadow-easgd)
//   mean              where servers average replicas: mean_checks.h
//   torn              a checkpoint has every record on all its servers, or on none
//
// Decisions of a group that is over are in no later group: a later group begins with a checkpoint,
// whose content its ledger describes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/model.h"
#include "sim/servers/mean_checks.h"
#include "sim/servers/ps_packets.h"
#include "sim/servers/ps_worker.h"
#include "sim/servers/tally.h"
#include "sim/world.h"

namespace antdt::sim {

class PsChecks {
 public:
  PsChecks(World& world, std::uint64_t records, SyncStrategy sync)
      : world_(world), records_(records), sync_(sync), means_(world, sync) {}

  // `from`: null if the group begins at the start.
  void group_began(Generation generation, const Model* from);
  // `exchange`: what it carries for each row of the centre.
  void pushed(const PsWorker& worker, std::uint64_t number, const std::vector<Record>& records,
              std::optional<float> exchange);
  void phase_done(const PsWorker& worker);
  // A server refused the worker. One of a group that is over may: its checkpoint may be pruned.
  void refused(const PsWorker& worker, const std::string& why);
  void stored(const Model& model);
  // The last checkpoint of the job.
  void ended(const Model& model);
  // How often (at least, at most) a record may be in the model by this epoch.
  using Bounds = std::function<std::pair<unsigned, unsigned>(std::uint32_t epoch, Record)>;
  void decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision,
               const Bounds& bounds);
  // A server's process has made a step.
  void stepped(Generation generation, const Program& who, const ps::ServerNode& node,
               MeanChecks::Seen& seen) {
    if (has_mean(sync_)) means_.look(generation, who, node, seen);
  }
  // Null if the group has not begun.
  [[nodiscard]] const Model* model_of(Generation generation) const;

 private:
  struct Push {
    std::uint32_t epoch = 0;
    std::vector<Record> records;
    std::optional<float> exchange;
  };
  World& world_;
  const std::uint64_t records_;
  const SyncStrategy sync_;
  MeanChecks means_;
  std::map<Generation, Model> models_;                                     // the decided records of
                                                                           // each group
  std::map<std::pair<Generation, std::uint32_t>, std::uint64_t> decided_;  // by home: the newest
                                                                           // decision
  std::map<std::tuple<Generation, Member, std::uint64_t>, Push> pushes_;
};

}  // namespace antdt::sim
