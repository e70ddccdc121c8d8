#include "ctl/servers/serve_order.h"

namespace antdt::ctl::servers {
namespace {

// Keys of workers that leave are left out, because nothing more is accepted from them. A primary is
// admitted by its server's key.
std::vector<wire::PsKey> keys_to_tell(const Placement& placement, const GroupWorkers& workers,
                                      const Roll& roll) {
  std::vector<Member> primaries;
  for (const GroupServer& s : placement.joined()) {
    const ReplicaSet* const set = placement.replica_set_with(s.member());
    if (set != nullptr && set->primary == s.worker) primaries.push_back(s.member());
  }
  std::vector<wire::PsKey> keys = roll.keys_of(primaries);
  for (wire::PsKey& k : keys) k.worker = WorkerId{'s', placement.index_of(k.worker)};
  for (wire::PsKey& k : roll.keys_of(workers.present())) keys.push_back(std::move(k));
  return keys;
}

}  // namespace

wire::PsServe serve_order(const GroupServer& server, const ServeTerms& terms,
                          const Placement& placement, const GroupWorkers& workers,
                          const RowSource& rows, const Roll& roll) {
  wire::PsServe serve;
  serve.number = terms.number;
  serve.index = placement.index_of(server.worker);
  serve.servers = placement.endpoints();
  serve.sync = terms.sync;
  serve.backups = terms.backups;
  serve.rate = terms.rate;
  serve.last_cut = terms.last_cut;
  serve.keep = rows.keeps(server.member());
  serve.workers = all_to_wire(workers.present());
  serve.leaving = all_to_wire(workers.leaving());
  serve.restore = rows.restore();
  serve.version = rows.version();
  serve.keys = keys_to_tell(placement, workers, roll);
  const ReplicaSet& set = placement.replica_sets().at(serve.index);
  serve.view = set.view;
  if (set.other()) {
    const bool primary = server.worker == set.primary;
    const GroupServer& other = placement.process(primary ? *set.other() : set.primary);
    serve.replica = primary      ? wire::ReplicaRole::kPrimary
                    : set.backup ? wire::ReplicaRole::kBackup
                                 : wire::ReplicaRole::kJoining;
    serve.other = other.endpoint;
    serve.other_key = roll.key_of(other.member());
  }
  return serve;
}

}  // namespace antdt::ctl::servers
