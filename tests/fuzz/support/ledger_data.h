// The data set of the fuzzed ledgers; the seeds use the same.
#pragma once

#include "shard_server/ledger/ledger.h"

namespace antdt::fuzz {

inline shard_server::LedgerConfig ledger_config() {
  shard_server::LedgerConfig config;
  config.train = {100, 7, shard_server::Shuffle::kFull, 1};
  config.eval = {20, 7, shard_server::Shuffle::kNone, 1};
  return config;
}

}  // namespace antdt::fuzz
