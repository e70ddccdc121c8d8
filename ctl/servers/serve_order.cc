#include "ctl/servers/serve_order.h"

namespace antdt::ctl::servers {
namespace {

// Not the keys of those that leave: nothing more is heard from them. A primary is let in as the
// server that it is.
std::vector<wire::PsKey> keys_to_tell(const Placement& placement, const GroupWorkers& workers,
                                      const Roll& roll) {
  std::vector<Member> primaries;
  for (const GroupServer& s : placement.joined()) {
    const ServerSeat* const seat = placement.seat_with(s.member());
    if (seat != nullptr && seat->primary == s.worker) primaries.push_back(s.member());
  }
  std::vector<wire::PsKey> keys = roll.keys_of(primaries);
  for (wire::PsKey& k : keys) k.worker = WorkerId{'s', placement.seat_of(k.worker)};
  for (wire::PsKey& k : roll.keys_of(workers.present())) keys.push_back(std::move(k));
  return keys;
}

}  // namespace

wire::PsServe serve_order(const GroupServer& server, const ServeTerms& terms,
                          const Placement& placement, const GroupWorkers& workers,
                          const RowSource& rows, const Roll& roll) {
  wire::PsServe serve;
  serve.number = terms.number;
  serve.index = placement.seat_of(server.worker);
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
  const ServerSeat& seat = placement.seats().at(serve.index);
  serve.view = seat.view;
  if (seat.other()) {
    const bool primary = server.worker == seat.primary;
    const GroupServer& other = placement.process(primary ? *seat.other() : seat.primary);
    serve.replica = primary       ? wire::ReplicaRole::kPrimary
                    : seat.backup ? wire::ReplicaRole::kBackup
                                  : wire::ReplicaRole::kJoining;
    serve.other = other.endpoint;
    serve.other_key = roll.key_of(other.member());
  }
  return serve;
}

}  // namespace antdt::ctl::servers
