// The records that the ledger writes to the journal. Each one is one change of its state.
//
// Most records are events as they were heard, once they were found valid. A fetch is not: its
// record is FetchAnswered or LateReturned, which hold what was decided.
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
#include "shard_server/pins/pins.h"

namespace antdt::shard_server {

// Positions that were granted together, and how many of their holders were lost before.
struct Range {
  Interval at;
  std::uint32_t retries = 0;
  bool operator==(const Range&) const = default;
};

struct MemberShare {
  WorkerId worker;
  std::uint64_t step_records = 0;  // records that it computes per global step in the newest plan
  std::uint64_t hold_records = 0;  // records that it should hold in advance; 0: as many as it wants
  bool operator==(const MemberShare&) const = default;
};

struct OldPlace {
  Member member;
  // how many of its records are in the model, applied by every member of the new generation
  std::uint64_t place = 0;
  bool lost = false;  // it died, so the records that it was working on are suspect
  bool operator==(const OldPlace&) const = default;
};

enum class AnswerStatus : std::uint8_t { kGranted, kWait, kEnd };

namespace ledger {

inline constexpr std::uint32_t kMostEpochs = 1'000'000;  // the same bound as in job.toml

// What the job promises. This is the first record of a journal, for the audit.
struct JobDeclared {
  std::uint32_t epochs = 0;
  std::uint64_t records = 0;  // records of the training data; 0: not known
  bool uses_ledger = true;    // false: torchrun and exec programs read data by themselves
};

// To which domains the training records are pinned. It precedes the first PhaseOpened, and again
// one for which records were added. The ledger is configured with the same; the accounts read it.
struct DataPinned {
  Pins pins;
};

// Follows JobDeclared if the job promises something else than exactly once.
struct DeliveryChosen {
  Delivery delivery = Delivery::kExactlyOnce;
};

// Every phase is done, and nothing more will come.
struct JobFinished {};

// Opens a phase. `phase` must be above the last one, which must be complete. The members stay;
// their places and grants begin at 0 again.
struct PhaseOpened {
  std::uint64_t phase = 0;
  PhaseKind kind = PhaseKind::kTrain;
  Epoch epoch;
  // How many the data had when the phase was opened. 0 in a record of an earlier release, whose
  // data could not grow.
  std::uint64_t records = 0;
};

// A loose member, or a new attempt of one. An older attempt is lost with what it held (as by
// MemberLost), and everything that it still says is answered "stale".
struct MemberAdmitted {
  Member member;
  Generation generation;
  DomainNumber domain = {};  // in which it is, if records are pinned
};

// Nothing is known to be applied past the last commit, so [committed, end) of the member's grants
// is granted again next. This is not for members of a collective, whose last steps the survivors
// may have applied: for them GenerationSettled says what was applied.
struct MemberLost {
  Member member;
};

// The same, but the records that the member was working on are not why it left, or that is judged
// elsewhere. No loss is counted for any range.
struct MemberLeft {
  Member member;
};

// A new generation is ready. Each old member's records are committed up to its place, and the rest
// is granted again next. Only `members` are members from now on; they start with place 0 and hold
// nothing. An old member that is not listed counts with its last committed place.
struct GenerationSettled {
  Generation generation;
  std::vector<OldPlace> places;
  std::vector<Member> members;
  // In which each of them is, if records are pinned; otherwise empty.
  std::vector<DomainNumber> domains = {};
};

// One-way. A place that is lower than the known one changes nothing.
struct ProgressReported {
  Member member;
  Generation generation;
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
};

// The part of the newest plan that grants depend on. It replaces the last one.
struct SharesPlanned {
  std::vector<MemberShare> shares;
};

// An operator lets the job go on without positions [from, to) of this phase's stream. Committed
// records stay committed. A record that somebody holds is skipped only if it is given back.
struct SkipDeclared {
  std::uint64_t phase = 0;
  Interval at;
  std::string reason;
};

// The program ends the training in this phase: nobody is granted anything more of it. Committed
// records stay committed. What somebody holds is left out if it is given back.
struct PhaseCut {
  std::uint64_t phase = 0;
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

// A fetch was answered whose member pushed too late to its step. First the `records` records behind
// its place were taken from it, to be granted to another member. If the job drops late records
// (at-most-once), they count as committed here, and the accounts count them as lost.
struct LateReturned {
  FetchAnswered answered;
  std::uint64_t records = 0;
  bool dropped = false;
};

// A member's program skipped these records, which the member holds. They count as skipped if the
// same holder commits them; if it gives them back, this is forgotten. For the accounts: for the
// ledger a skipped record is committed like any other.
struct RecordsSkipped {
  Member member;
  std::vector<wire::SkippedRecords> records;
};

// A holder was asked to give back the records past `keep_to`, unless it has begun them.
struct RecallIssued {
  Member member;
  std::uint64_t number = 0;
  std::uint64_t keep_to = 0;
};

// A holder's grants now end at `end`.
struct RecallSettled {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
};

// Training began again from a checkpoint, and both images are of that moment. If the remaining
// servers keep their rows (docs/delivery.md), the image of the accounts also says which records may
// be in a part of the model; under at-most-once both images are of the present.
struct LedgerRewound {
  Lineage lineage;
  std::string ledger_image;
  std::string accounts_image;
};

// A record's kind in the journal is its position in this list plus one, so a new kind must go last.
using Record = std::variant<JobDeclared, JobFinished, PhaseOpened, MemberAdmitted, MemberLost,
                            GenerationSettled, FetchAnswered, ProgressReported, SharesPlanned,
                            RecallIssued, RecallSettled, SkipDeclared, LedgerRewound, MemberLeft,
                            DeliveryChosen, LateReturned, RecordsSkipped, DataPinned, PhaseCut>;

}  // namespace ledger
}  // namespace antdt::shard_server
