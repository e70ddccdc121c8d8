// What the ledger hears. The events that are written down as they are heard are in records.h.
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

// The answer to a SendRecall: the holder has given up the last `records` of its grants, or, where
// that is not said, what is behind place `end`. `number` is that of the recall (the envelope's
// seq), 0 from a client that does not repeat it. A holder answers only when it waits for no fetch:
// otherwise the lost or late answer to that fetch would bring grants behind those. It is asked
// again.
struct RecallAnswered {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> records = {};
};

using Input = std::variant<JobDeclared, JobFinished, PhaseOpened, MemberAdmitted, MemberLost,
                           GenerationSettled, FetchRequested, ProgressReported, SharesPlanned,
                           RecallAnswered, SkipDeclared, MemberLeft, DeliveryChosen>;

}  // namespace antdt::shard_server::ledger
