// Records and grants: between a worker and the job daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/named_sums.h"

namespace antdt::wire {

// A part of a shard in the shard's own order. Position p of a shard (0 <= p < shard_records) is
// record shard_first + Permutation(shard_records, order_seed)(p) of the data set if `shuffled`,
// else shard_first + p.
struct Piece {
  std::uint64_t shard = 0;          // index of the shard, in file order
  std::uint64_t shard_first = 0;    // its first record
  std::uint64_t shard_records = 0;  // its size, in records
  std::uint64_t from = 0;           // positions [from, to) of its order
  std::uint64_t to = 0;
  std::uint64_t order_seed = 0;
  bool shuffled = false;
  ANTDT_PART {
    v("i", m.shard);
    v("b", m.shard_first);
    v("n", m.shard_records);
    v("f", m.from);
    v("t", m.to);
    v("o", m.order_seed);
    v("x", m.shuffled);
  }
};

// A partial evaluation of some records, merged by addition. Scores of binary tasks are counted in
// kScoreBins bins of the predicted probability.
struct EvalPartial {
  static constexpr std::uint32_t kScoreBins = 16384;
  std::uint64_t records = 0;
  double loss_sum = 0;                   // natural-log loss, summed over the records
  std::uint64_t correct = 0;             // for classification: right at argmax (or 0.5)
  std::vector<std::uint32_t> bins;       // which bins are not empty, rising
  std::vector<std::uint64_t> negatives;  // for each listed bin
  std::vector<std::uint64_t> positives;
  NamedSums named = {};  // the program's own sums
  ANTDT_PART {
    v("records", m.records);
    v("loss_sum", m.loss_sum);
    v("correct", m.correct);
    v("bins", m.bins);
    v("negatives", m.negatives);
    v("positives", m.positives);
    v("named", m.named);
  }
};

// Records that a program could not use: places [from, to) of the worker, counted as Fetch::place.
struct SkippedRecords {
  static constexpr std::size_t kMaxReason = 200;  // bytes
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;
  bool operator==(const SkippedRecords&) const = default;
  ANTDT_PART {
    v("f", m.from);
    v("t", m.to);
    v("r", m.reason);
  }
};

// Worker to job daemon: commits the stable records and asks for more. One is outstanding for each
// (worker, attempt); a retry repeats the envelope's seq.
struct Fetch {
  std::uint64_t phase = 0;  // number of the phase that this concerns (PhaseStart)
  // how many records were consumed, in order, since the phase or the generation began
  std::uint64_t place = 0;
  std::uint64_t want = 0;  // how many records are wanted now; 0: it only commits
  std::vector<EvalPartial>
      partials;  // evaluation: results of the records up to `place` since the last fetch
  // A step was closed without this push (backup workers): `late` records from `place` on are given
  // back, to be granted to another worker first. Once this is answered, the records behind them
  // have their places; until then, nothing behind them may be committed.
  std::uint64_t late = 0;
  // Training: records that this worker holds, or commits with this message, and that its program
  // skipped. They count as skipped once they are committed. Once this is answered, the job daemon
  // has stored it; until then no step of a collective that contains them may complete.
  static constexpr std::size_t kMaxSkipped = 256;
  std::vector<SkippedRecords> skipped = {};
  static constexpr bool kLeavesOutZeros = true;
  ANTDT_MESSAGE("fetch") {
    v("phase", m.phase);
    v("place", m.place);
    v("want", m.want);
    v("partials", m.partials);
    v("late", m.late);
    v("skipped", m.skipped);
  }
};

enum class GrantStatus : std::uint8_t {
  kGranted,  // `pieces` is not empty
  kWait,     // others hold records that may be given back: ask again after retry_ms
  kEnd,      // every record of the phase is committed; a later phase may already be open
  kStale,    // the request was of another generation or attempt, and changed nothing
};
constexpr auto names_of(GrantStatus) { return names("granted", "wait", "end", "stale"); }

// The answer to Fetch.
struct Grants {
  std::uint64_t phase = 0;
  GrantStatus status = GrantStatus::kGranted;
  std::vector<Piece> pieces;
  std::uint32_t retry_ms = 0;
  // To members of a collective: the history of the steps of this generation is recorded up to this
  // one, so it need not be sent again (StepHistory). 0: none.
  Step recorded{};
  // Recalls up to this number are over, answered or not. A recall that arrives late must be
  // ignored, because it does not count what was granted since.
  std::uint64_t recalls_over = 0;
  static constexpr bool kLeavesOutZeros = true;
  ANTDT_MESSAGE("grants") {
    v("phase", m.phase);
    v("status", m.status);
    v("pieces", m.pieces);
    v("retry_ms", m.retry_ms);
    v("recorded", m.recorded);
    v("recalls_over", m.recalls_over);
  }
};

// Job daemon to worker: give back the records that you have not begun, past `keep_to` (records
// since the generation began). The answer is Recalled, with the same seq; it says where the
// worker's grants end now, which is never before what it has begun, and how many records at the end
// that takes away. A worker must not answer while a Fetch is outstanding, because the answer to
// that may bring grants that neither side counts. It must not answer either if Grants said that the
// recall is over. The recall is repeated.
struct Recall {
  std::uint64_t phase = 0;
  std::uint64_t keep_to = 0;
  ANTDT_MESSAGE("recall") {
    v("phase", m.phase);
    v("keep_to", m.keep_to);
  }
};

struct Recalled {
  std::uint64_t phase = 0;
  std::uint64_t end = 0;
  // If this is set, it counts and not the end (a client of an earlier release sends only the end),
  // because it stays true when records are given back from before the end (Fetch::late).
  std::optional<std::uint64_t> records = {};
  ANTDT_MESSAGE("recalled") {
    v("phase", m.phase);
    v("end", m.end);
    v("records", m.records);
  }
};

}  // namespace antdt::wire
