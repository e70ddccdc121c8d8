// The events that only the ledger hears. Events that are journaled as they are heard are in
// records.h.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/ids.h"
#include "core/wire/shard_messages.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server::ledger {

struct FetchRequested {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;  // from 1; a retry repeats it
  wire::Fetch request;
};

// The answer to SendRecall: the holder has given up the last `records` records of its grants or, if
// it does not say how many, everything behind place `end`. `number` is the number of the recall
// (the envelope's seq), or 0 from a client that does not repeat it. A holder answers only while it
// waits for no fetch, because a lost or late answer to that fetch would bring it grants behind
// those that it gave up. Until then the recall is repeated.
struct RecallAnswered {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> records = {};
};

using Input =
    std::variant<JobDeclared, JobFinished, PhaseOpened, MemberAdmitted, MemberLost,
                 GenerationSettled, FetchRequested, ProgressReported, SharesPlanned, RecallAnswered,
                 SkipDeclared, MemberLeft, DeliveryChosen, DataPinned, PhaseCut>;

}  // namespace antdt::shard_server::ledger
