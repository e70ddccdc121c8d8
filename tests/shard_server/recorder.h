// A ledger with everything that a job daemon would write for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::shard_server {

class Recorder {
 public:
  explicit Recorder(const LedgerConfig& config) : config_(config), ledger_(config) {
    step(ledger::JobDeclared{1000, config.train.records, true});
  }

  // The effects except PersistRecord, which goes to the journal and the accounts.
  ledger::Effects step(const ledger::Input& event, MonoTime now = {}) {
    ledger::Effects effects, rest;
    ledger_.step(event, now, effects);
    for (ledger::Effect& effect : effects) {
      if (auto* persist = std::get_if<ledger::PersistRecord>(&effect)) {
        write(*persist);
      } else {
        rest.push_back(std::move(effect));
      }
    }
    return rest;
  }
  void write(const ledger::PersistRecord& persist) {
    journal_.push_back(persist.bytes);
    const auto applied = accounts_.apply(persist.bytes);
    EXPECT_TRUE(applied) << applied.error().message;
  }

  // A ledger that is replayed from all records, or from the first `records`.
  [[nodiscard]] Ledger replayed(std::size_t records = SIZE_MAX) const {
    return continued(Ledger(config_), 0, records);
  }
  // `ledger`, and the records from number `from` on.
  [[nodiscard]] Ledger continued(Ledger ledger, std::size_t from, std::size_t to = SIZE_MAX) const {
    for (std::size_t i = from; i < std::min(to, journal_.size()); ++i) {
      const auto applied = ledger.replay(journal_[i]);
      EXPECT_TRUE(applied) << applied.error().message;
    }
    return ledger;
  }
  // Continues as after a kill -9 of the job daemon.
  void restart() { ledger_ = replayed(); }

  [[nodiscard]] Ledger& ledger() { return ledger_; }
  [[nodiscard]] const Accounts& accounts() const { return accounts_; }
  [[nodiscard]] const std::vector<std::string>& journal() const { return journal_; }
  [[nodiscard]] const LedgerConfig& config() const { return config_; }

 private:
  LedgerConfig config_;
  Ledger ledger_;
  Accounts accounts_;
  std::vector<std::string> journal_;
};

template <class T>
[[nodiscard]] const T* find_effect(const ledger::Effects& effects) {
  for (const ledger::Effect& effect : effects) {
    if (const T* found = std::get_if<T>(&effect)) return found;
  }
  return nullptr;
}

}  // namespace antdt::shard_server
