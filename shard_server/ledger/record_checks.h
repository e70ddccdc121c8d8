// Whether an event or a record fits the state of the ledger. The error is a sentence for its
// sender. Events of peers and records of a journal must pass these checks before anything is
// changed.
#pragma once

#include "core/result.h"
#include "shard_server/ledger/inputs.h"
#include "shard_server/ledger/ledger_state.h"

namespace antdt::shard_server {

// These concern the accounts only.
inline Status check(const LedgerState&, const ledger::JobDeclared&) { return {}; }
inline Status check(const LedgerState&, const ledger::DeliveryChosen&) { return {}; }
inline Status check(const LedgerState&, const ledger::JobFinished&) { return {}; }
inline Status check(const LedgerState&, const ledger::SharesPlanned&) { return {}; }
[[nodiscard]] Status check(const LedgerState& state, const ledger::DataPinned& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::PhaseOpened& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::MemberAdmitted& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::MemberLost& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::MemberLeft& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::GenerationSettled& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::FetchRequested& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::FetchAnswered& record);
[[nodiscard]] Status check(const LedgerState& state, const ledger::LateReturned& record);
[[nodiscard]] Status check(const LedgerState& state, const ledger::RecordsSkipped& record);
[[nodiscard]] Status check(const LedgerState& state, const ledger::ProgressReported& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::RecallIssued& record);
[[nodiscard]] Status check(const LedgerState& state, const ledger::RecallSettled& record);
[[nodiscard]] Status check(const LedgerState& state, const ledger::SkipDeclared& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::PhaseCut& event);
[[nodiscard]] Status check(const LedgerState& state, const ledger::LedgerRewound& record);

}  // namespace antdt::shard_server
