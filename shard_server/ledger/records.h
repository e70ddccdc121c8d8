// What the ledger writes down in the journal: each record is one change of its state.
//
// Most records are events as they were heard, once they have been found valid. A fetch is not: its
// record is FetchAnswered, or LateReturned, which hold what was decided.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/delivery.h"
#include "core/ids.h"
#include "core/wire/shard_messages.h"
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

namespace ledger {

inline constexpr std::uint32_t kMostEpochs = 1'000'000;  // as job.toml allows

// What the job promises; first record of a journal, for the audit.
struct JobDeclared {
  std::uint32_t epochs = 0;
  std::uint64_t records = 0;  // of the training data; 0 where nobody knows
  bool uses_ledger = true;    // false: torchrun and exec programs read data by themselves
};

// Follows JobDeclared where the job promises something else than exactly once.
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
// the survivors may have applied: for them GenerationSettled says what was.
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
struct GenerationSettled {
  Generation generation;
  std::vector<OldPlace> places;
  std::vector<Member> members;
};

// One-way; a lower place than is known already changes nothing.
struct ProgressReported {
  Member member;
  Generation generation;
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
};

// The newest plan, as far as grants follow from it; replaces the last one.
struct SharesPlanned {
  std::vector<MemberShare> shares;
};

// An operator lets the job go on without positions [from, to) of this phase's
// stream. What is committed stays so; what is in somebody's hand is skipped
// only if it comes back.
struct SkipDeclared {
  std::uint64_t phase = 0;
  Interval at;
  std::string reason;
};

// A fetch was answered: what it committed, and what was granted.
struct FetchAnswered {
  Member member;
  std::uint64_t seq = 0;
  std::uint64_t place = 0;
  AnswerStatus status = AnswerStatus::kWait;
  std::uint32_t retry_ms = 0;
  std::vector<Range> granted;
  std::vector<wire::EvalPartial> partials;
};

// A fetch was answered whose member pushed too late to its step: the first `records` records behind
// its place were taken from it before, to be granted to another member. Where the job drops what
// is late (at most once), they count as committed, and the accounts count them as lost.
struct LateReturned {
  FetchAnswered answered;
  std::uint64_t records = 0;
  bool dropped = false;
};

// A holder was asked to give back what it has not started past `keep_to`.
struct RecallIssued {
  Member member;
  std::uint64_t number = 0;
  std::uint64_t keep_to = 0;
};

// A holder's grants end at `end` now.
struct RecallSettled {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
};

// Training began again from a checkpoint: both images are of that moment. Where the
// servers that are left keep their rows (docs/delivery.md), that of the accounts also says
// what may be in a part of the model; under at-most-once both are of the present.
struct LedgerRewound {
  Lineage lineage;
  std::string ledger_image;
  std::string accounts_image;
};

// A record's kind in the journal is its place in this list plus one: a new kind goes last.
using Record = std::variant<JobDeclared, JobFinished, PhaseOpened, MemberAdmitted, MemberLost,
                            GenerationSettled, FetchAnswered, ProgressReported, SharesPlanned,
                            RecallIssued, RecallSettled, SkipDeclared, LedgerRewound, MemberLeft,
                            DeliveryChosen, LateReturned>;

}  // namespace ledger
}  // namespace antdt::shard_server
