// The data sets of the fuzzed ledgers; the seeds use the same.
#pragma once

#include <array>

#include "shard_server/ledger/ledger.h"

namespace antdt::fuzz {

inline shard_server::LedgerConfig ledger_config() {
  shard_server::LedgerConfig config;
  config.train = {100, 7, shard_server::Shuffle::kFull, 1};
  config.eval = {20, 7, shard_server::Shuffle::kNone, 1};
  return config;
}

// Its training records are pinned to two domains, and the evaluation is for all workers.
inline shard_server::LedgerConfig pinned_ledger_config() {
  shard_server::LedgerConfig config = ledger_config();
  config.train.pins.add(35, "eu");
  config.train.pins.add(40, "us");
  config.train.pins.add(25, "eu");
  return config;
}

// Each input is read by a ledger of each kind.
inline std::array<shard_server::LedgerConfig, 2> ledger_configs() {
  return {ledger_config(), pinned_ledger_config()};
}

}  // namespace antdt::fuzz
