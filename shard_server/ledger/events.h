// What the ledger hears, and what it writes down.
//
// Most events are also records: what happened, once it has been found valid.
// A Fetch is not: its record is Answered, or Late, which hold the decision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/wire/messages.h"
#include "shard_server/ledger/interval_set.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {

// Positions that were handed out together, and how many holders were lost with
// them before.
struct Range {
  Interval at;
  std::uint32_t retries = 0;
  bool operator==(const Range&) const = default;
};

struct MemberShare {
  WorkerId worker;
  std::uint64_t step_records = 0;  // it computes per global step in the newest plan
  std::uint64_t hold_records = 0;  // it should have at hand; 0: as much as it wants
  bool operator==(const MemberShare&) const = default;
};

struct OldPlace {
  Member member;
  std::uint64_t place = 0;  // in the model: applied by every member of the new generation
  bool lost = false;        // it died: what it was working on is suspect
  bool operator==(const OldPlace&) const = default;
};

enum class AnswerStatus : std::uint8_t { kGranted, kWait, kEnd };

namespace event {

inline constexpr std::uint32_t kMostEpochs = 1'000'000;  // as job.toml allows

// What the job promises; first record of a journal, for the audit.
struct JobDeclared {
  std::uint32_t epochs = 0;
  std::uint64_t records = 0;  // of the training data; 0 where nobody knows
  bool uses_ledger = true;    // false: torchrun and exec programs read data by themselves
};
// Follows it where the promise is another one than exactly once.
struct DeliveryChosen {
  Delivery delivery = Delivery::kExactlyOnce;
};
// Every phase is done and nothing more will come.
struct JobFinished {};

// `phase` must be above the last one, which must be complete. Members stay;
// their places and grants begin at 0 again.
struct PhaseOpened {
  std::uint64_t phase = 0;
  PhaseKind kind = PhaseKind::kTrain;
  Epoch epoch;
};

// A loose member, or a new attempt of one: an older attempt is lost with what
// it held (as MemberLost), and whatever it says later is answered "stale".
struct MemberAdmitted {
  Member member;
  Generation generation;
};

// Nothing is known to be applied past the last commit: [committed, end) of its
// grants is handed out next. Not for members of a collective, whose last steps
// the survivors may have applied: for them Settled says what was.
struct MemberLost {
  Member member;
};

// The same, where what it was working on is not why it has gone, or is judged
// elsewhere: no range counts as lost with it.
struct MemberLeft {
  Member member;
};

// A new generation is ready. Up to its place each old member's records are
// committed, the rest is handed out next, and all of `members` (the only ones
// from now on) start with place 0 and nothing in hand. An old member that is
// not listed counts with its last committed place.
struct Settled {
  Generation generation;
  std::vector<OldPlace> places;
  std::vector<Member> members;
};

struct Fetch {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;  // from 1; a retry repeats it
  wire::Fetch request;
};

// One-way; a lower place than is known already changes nothing.
struct Progress {
  Member member;
  Generation generation;
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
};

// The newest plan, as far as grants follow from it; replaces the last one.
struct Shares {
  std::vector<MemberShare> shares;
};

// The answer to a SendRecall: the holder has given up the last `records` of its
// grants, or, where that is not said, what is behind place `end`. `number` is that of
// the recall (the envelope's seq), 0 from a client that does not repeat it. A holder
// answers only when it waits for no fetch: otherwise the lost or late answer to it brings
// grants behind those. It is asked again.
struct Recalled {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> records = {};
};

// An operator lets the job go on without positions [from, to) of this phase's
// stream. What is committed stays so; what is in somebody's hand is skipped
// only if it comes back.
struct SkipDeclared {
  std::uint64_t phase = 0;
  Interval at;
  std::string reason;
};

}  // namespace event

using Event =
    std::variant<event::JobDeclared, event::JobFinished, event::PhaseOpened, event::MemberAdmitted,
                 event::MemberLost, event::Settled, event::Fetch, event::Progress, event::Shares,
                 event::Recalled, event::SkipDeclared, event::MemberLeft, event::DeliveryChosen>;

namespace record {

// A fetch: what it committed and what it was given.
struct Answered {
  Member member;
  std::uint64_t seq = 0;
  std::uint64_t place = 0;
  AnswerStatus status = AnswerStatus::kWait;
  std::uint32_t retry_ms = 0;
  std::vector<Range> granted;
  std::vector<wire::EvalPartial> partials;
};
// The same, of a member whose push came too late to its step: behind its place, so many
// records were given back first, to be granted to another member, or, under at-most-once,
// dropped: then they count as committed, and are lost.
struct Late {
  Answered answered;
  std::uint64_t records = 0;
  bool dropped = false;
};
// A holder's grants end at `end` now.
struct Recalled {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
};
// A holder was asked to give back what it has not started past `keep_to`.
struct RecallIssued {
  Member member;
  std::uint64_t number = 0;
  std::uint64_t keep_to = 0;
};
// Training began again from a checkpoint: both images are of that moment. Where the
// servers that are left keep their rows (docs/delivery.md), that of the accounts also says
// what may be in a part of the model; under at-most-once both are of the present.
struct Rewound {
  Lineage lineage;
  std::string ledger_image;
  std::string accounts_image;
};

}  // namespace record

using Record =
    std::variant<event::JobDeclared, event::JobFinished, event::PhaseOpened, event::MemberAdmitted,
                 event::MemberLost, event::Settled, record::Answered, event::Progress,
                 event::Shares, record::RecallIssued, record::Recalled, event::SkipDeclared,
                 record::Rewound, event::MemberLeft, event::DeliveryChosen, record::Late>;

}  // namespace antdt::shard_server
