// Where the parameter servers of a job are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sync_strategy.h"
#include "core/wire/message.h"

namespace antdt::wire {

// Job daemon to a worker: the servers of its generation. A PhaseStart follows the first one. When
// processes of servers were replaced, it is sent again with a higher number.
struct PsRoster {
  std::vector<std::string> servers;  // end points, by index, as in PsServe
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint64_t staleness = 0;         // with ps-ssp
  std::vector<std::string> keys = {};  // public keys of the servers, by index
  // By index, for a server of two processes: its backup, which answers when the primary is lost.
  // Empty: it has none.
  std::vector<std::string> others = {};
  std::vector<std::string> other_keys = {};
  std::uint64_t number = 0;  // as in PsServe
  ANTDT_MESSAGE("ps-roster") {
    v("servers", m.servers);
    v("sync", m.sync);
    v("staleness", m.staleness);
    v("keys", m.keys);
    v("others", m.others);
    v("other_keys", m.other_keys);
    v("number", m.number);
  }
};

}  // namespace antdt::wire
