// Records and grants: between a worker and the job daemon.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/wire/message.h"

namespace antdt::wire {

// A part of a shard in the shard's own order. Position p of a shard (0 <= p <
// shard_records) is record shard_first + Permutation(shard_records,
// order_seed)(p) of the data set when `shuffled`, else shard_first + p.
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

// A partial evaluation of some records, merged by addition. Scores of binary
// tasks are counted in kScoreBins bins of the predicted probability.
struct EvalPartial {
  static constexpr std::uint32_t kScoreBins = 16384;
  std::uint64_t records = 0;
  double loss_sum = 0;                   // natural-log loss, summed over records
  std::uint64_t correct = 0;             // classification: right at argmax (or 0.5)
  std::vector<std::uint32_t> bins;       // which bins are not empty, rising
  std::vector<std::uint64_t> negatives;  // per listed bin
  std::vector<std::uint64_t> positives;
  ANTDT_PART {
    v("records", m.records);
    v("loss_sum", m.loss_sum);
    v("correct", m.correct);
    v("bins", m.bins);
    v("negatives", m.negatives);
    v("positives", m.positives);
  }
};

// Worker to job daemon: commits what is stable and asks for more. One is
// outstanding per (worker, attempt); a retry repeats the envelope's seq.
struct Fetch {
  std::uint64_t phase = 0;  // number of the phase this is about (PhaseStart)
  std::uint64_t place = 0;  // records consumed, in order, since the phase or the generation began
  std::uint64_t want = 0;   // records wanted now; 0: only commits
  std::vector<EvalPartial>
      partials;  // evaluation: what the records up to `place` gave since the last fetch
  // Of a step that was closed without them (backup workers): so many records from
  // `place` on go back, and to another worker first. Once it is answered those behind
  // them have their places; until then nothing behind them may be committed.
  std::uint64_t late = 0;
  ANTDT_MESSAGE("fetch") {
    v("phase", m.phase);
    v("place", m.place);
    v("want", m.want);
    v("partials", m.partials);
    v("late", m.late);
  }
};

enum class GrantStatus : std::uint8_t {
  kGranted,  // pieces hold something
  kWait,     // others hold records that may come back: ask again after retry_ms
  kEnd,      // every record of the phase is committed; a later phase may be open already
  kStale,    // the request was of another generation or attempt: it changed nothing
};
constexpr auto names_of(GrantStatus) { return names("granted", "wait", "end", "stale"); }

// The answer to Fetch.
struct Grants {
  std::uint64_t phase = 0;
  GrantStatus status = GrantStatus::kGranted;
  std::vector<Piece> pieces;
  std::uint32_t retry_ms = 0;
  // Members of a collective: which records made the steps of this generation up
  // to this one is kept; they need not be told again (StepHistory). 0: none.
  Step recorded{};
  // Recalls up to this number are over, answered or not: one that comes late is not
  // to be obeyed, because what was granted since is not counted against it.
  std::uint64_t recalls_over = 0;
  ANTDT_MESSAGE("grants") {
    v("phase", m.phase);
    v("status", m.status);
    v("pieces", m.pieces);
    v("retry_ms", m.retry_ms);
    v("recorded", m.recorded);
    v("recalls_over", m.recalls_over);
  }
};

// Job daemon to worker: give back what you have not started past `keep_to`
// (records since the generation began). Answered by Recalled, with the same
// seq, with where your grants end now, which is never less than what you have
// started, and how many records, the last of them, that takes away. Not answered
// while a Fetch is outstanding: its answer may bring grants that neither counts,
// nor after an answer that says it is over (Grants). It is sent again.
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
  // This is what counts, where it is there (a client of an earlier release has the end
  // alone): it stays true when records go back from before the end (Fetch::late).
  std::optional<std::uint64_t> records = {};
  ANTDT_MESSAGE("recalled") {
    v("phase", m.phase);
    v("end", m.end);
    v("records", m.records);
  }
};

}  // namespace antdt::wire
