// The invariant "mean" of the replicas of workers under shadow-ma and shadow-bmuf, which servers
// average (trainer/ps/rows/replica_mean.h). After each step of a server's process its state is
// compared with what the homes have decided up to the decisions that it has applied:
//
//   - each exchange that is decided was made once, and no other;
//   - the mean has the newest decided replica of each worker, and none of a worker that has left; a
//     replica is missing only if it may be outdated;
//   - an exchange moves each row from where it is by its share of the way to the mean of these
//     replicas, computed here anew; without an exchange no row moves.
//
// A worker has one home, so how far a server has applied the decisions of each home determines the
// newest replica of each worker, whatever the order of the homes among one another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/sync_strategy.h"
#include "core/wire/servers/ps_messages.h"
#include "sim/hosts/program.h"
#include "sim/world.h"
#include "trainer/ps/server_node.h"

namespace antdt::sim {

class MeanChecks {
 public:
  MeanChecks(World& world, SyncStrategy sync) : world_(world), sync_(sync) {}

  // The next decision of a home, and the replicas that its pushes carry: each is the same number in
  // all rows.
  using Replicas = std::vector<std::pair<Member, float>>;
  void decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision,
               const Replicas& replicas);

  // The state of a process when it was last looked at, in one group.
  struct Seen {
    std::uint64_t decisions = 0;  // of all homes, that were applied
    std::uint64_t exchanges = 0;
    std::map<std::uint64_t, float> rows;
  };
  void look(Generation generation, const Program& who, const ps::ServerNode& node, Seen& seen);

 private:
  struct Sent {
    std::uint64_t decision = 0;
    std::uint64_t exchanges = 0;  // of this home so far, this one included
    float replica = 0;
  };
  struct OfWorker {
    std::vector<Sent> sent;
    std::uint64_t left = 0;  // the decision; 0: it has not left
  };
  struct OfHome {
    std::vector<std::uint64_t> exchanges{0};  // after each decision
    std::map<Member, OfWorker> workers;
  };
  using Homes = std::map<std::uint32_t, OfHome>;

  void look_at_replicas(const Homes& homes, const Program& who, const ps::Server& server,
                        const ps::ReplicaMean& mean);
  void look_at_rows(const Program& who, const ps::Store& store, const ps::ReplicaMean& mean,
                    std::uint64_t decisions, Seen& seen);

  World& world_;
  SyncStrategy sync_;
  std::map<Generation, Homes> decided_;
};

}  // namespace antdt::sim
