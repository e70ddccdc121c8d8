// `antdt data audit`: a run's accounts, reported with an exit code.
#pragma once

#include <cstdint>
#include <optional>
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
  // Set if the newest checkpoint contains records that the journal does not say to be trained.
  struct Ahead {
    std::string checkpoint;
    std::uint64_t records = 0;
  };
  std::optional<Ahead> ahead = {};
  std::uint64_t rows_put_aside = 0;  // malformed rows of the data, which are no records
};

[[nodiscard]] AuditReport audit(const Accounts& accounts);
// Compares with the accounts of the newest checkpoint of a run that does not run.
void compare(AuditReport& report, const std::string& checkpoint, const Accounts& in_checkpoint);
// The accounts in a journal's content; `name` says which journal an error is about.
[[nodiscard]] Result<Accounts> accounts_of(const JournalContent& content, const std::string& name);

[[nodiscard]] std::string audit_table(const AuditReport& report);
// {"schema":1,"delivery":…,"finished":…,"exit_code":…,"epochs":[{"epoch","records","once",
// "repeated","lost","skipped","unaccounted","remaining",
// "skipped_by_program":[{"reason","records"}]}]}; if records are pinned to domains, each epoch also
// has "domains":[{"name","records","trained"}] and "elsewhere"; if the checkpoint is ahead, there
// is "checkpoint_ahead":{"name","records"}. Beside the epochs is "rows_put_aside", if there are
// any.
[[nodiscard]] std::string audit_json(const AuditReport& report);

}  // namespace antdt::shard_server
