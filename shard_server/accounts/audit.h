// `antdt data audit`: a run's accounts, reported with an exit code.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/journal/journal.h"

namespace antdt::shard_server {

struct AuditReport {
  std::vector<EpochAccount> epochs;
  bool finished = false;
  bool uses_ledger = true;
  Delivery delivery = Delivery::kExactlyOnce;
  // 0 the delivery promise is kept, 1 broken, 5 not finished, 6 unaccounted.
  int exit_code = 0;
};

[[nodiscard]] AuditReport audit(const Accounts& accounts);
// The accounts in a journal's content; `name` says which journal an error is about.
[[nodiscard]] Result<Accounts> accounts_of(const JournalContent& content, const std::string& name);

[[nodiscard]] std::string audit_table(const AuditReport& report);
// {"schema":1,"delivery":…,"finished":…,"exit_code":…,"epochs":[{"epoch","records","once",
// "repeated","lost","skipped","unaccounted","remaining",
// "skipped_by_program":[{"reason","records"}]}]}; if records are pinned to domains, each epoch also
// has "domains":[{"name","records","trained"}] and "elsewhere".
[[nodiscard]] std::string audit_json(const AuditReport& report);

}  // namespace antdt::shard_server
