// Accounts that a test tells what a ledger might have written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {

inline const Member kMember{{'w', 0}, Attempt{1}};

// Records as a ledger might have written them, correctly or not.
class AccountsTest : public testing::Test {
 protected:
  template <class R>
  void apply(const R& record) {
    const Status applied = accounts_.apply(encode_record(record));
    ASSERT_TRUE(applied) << applied.error().message;
  }
  void begin(std::uint32_t epochs = 1, bool uses_ledger = true) {
    apply(ledger::JobDeclared{epochs, 100, uses_ledger});
    if (!uses_ledger) return;
    apply(ledger::MemberAdmitted{kMember, {}});
    apply(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  }
  static ledger::FetchAnswered answered(std::uint64_t place, std::vector<Range> granted) {
    return {kMember, 1, place, AnswerStatus::kGranted, 0, std::move(granted), {}};
  }
  Accounts accounts_;
};

}  // namespace antdt::shard_server
