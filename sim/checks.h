// What must hold, looked at after every event that could break it.
//
//   one hand          a record is in at most one hand: nobody takes what another
//                     member of the same generation took; what the ledger has
//                     granted, got back and not yet touched does not overlap
//   monotone          committed never goes back within a lineage
//   exactly once      a record enters a model once an epoch
//   model and ledger  when a generation settles, the model of its members is
//                     what the ledger says is committed; later every living
//                     holder of that state contains what is committed
//   saved             a checkpoint's model is what its ledger says is committed
//   end               nobody hears "end" before all is committed
//   accounts          at the end every record was trained once in each epoch
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/job/job_machine.h"
#include "sim/daemon.h"
#include "sim/worker.h"
#include "sim/world.h"

namespace antdt::sim {

class Checks {
 public:
  Checks(World& world, shard_server::LedgerConfig ledger, const JobShape& shape);

  void took(const Worker& worker, Record record);
  void trained(const Worker& worker, Record record);
  void phase_done(const Worker& worker);
  void said_end(const ctl::JobMachine& machine, std::uint64_t phase);
  void stored(const SharedFiles::Checkpoint& checkpoint);
  void durable(const ctl::JobMachine& machine, const std::vector<std::shared_ptr<Worker>>& living,
               const SharedFiles& files);
  void ended(const ctl::JobMachine& machine, const SharedFiles& files, const ctl::Outcome& outcome);

 private:
  // How often each record must be in a model that contains what is committed.
  [[nodiscard]] std::vector<std::uint8_t> committed(const shard_server::Ledger& ledger);
  const std::vector<Record>& order_of(Epoch epoch);
  void check_hands(const shard_server::Ledger& ledger);
  void check_monotone(const ctl::JobMachine& machine);
  void check_models(const ctl::JobMachine& machine,
                    const std::vector<std::shared_ptr<Worker>>& living, const SharedFiles& files);
  void contains(const std::string& who, const Model& model, const std::vector<std::uint8_t>& least,
                bool exactly, const char* invariant);

  World& world_;
  const shard_server::LedgerConfig ledger_;
  const JobShape shape_;
  std::map<Epoch, std::vector<Record>> orders_;
  std::map<std::pair<Generation, std::uint64_t>, std::map<Record, Member>> taken_;
  Lineage lineage_;
  std::uint64_t phase_ = 0;
  shard_server::IntervalSet committed_;
  Generation settled_;
};

}  // namespace antdt::sim
