// What each worker holds of the open phase: its grants, how far it has committed them (its place),
// and what it was told last. What was given back is passed to the caller, which returns it to the
// supply.
//
// A value, a part of the ledger's state. Everything in it is durable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "shard_server/ledger/records.h"

namespace antdt::shard_server {

// What a worker was last told, for the retry of the same request.
struct Answer {
  std::uint64_t seq = 0;  // 0: none
  std::uint64_t phase = 0;
  AnswerStatus status = AnswerStatus::kWait;
  std::uint32_t retry_ms = 0;
  std::vector<Interval> granted;
};

// How much of what a member committed is kept, for checkpoints of steps that
// were passed while they were written.
inline constexpr std::size_t kRecentRanges = 32;

struct Holder {
  Attempt attempt;
  Generation generation;
  bool active = false;             // false: lost; kept so that its attempt stays fenced
  std::uint64_t place = 0;         // committed, since the phase or the generation began
  std::uint64_t end = 0;           // granted, since then
  std::vector<Range> grants;       // end - place records, in the order of consumption
  std::vector<Range> recent;       // the last kRecentRanges committed, up to `place`
  std::uint64_t step_records = 0;  // see MemberShare
  std::uint64_t hold_records = 0;
  Answer last;
  std::uint64_t recalls = 0;    // numbers recalls
  bool recall_pending = false;  // number `recalls` is not answered: it gets no more grants
  std::uint64_t recall_keep_to = 0;
  [[nodiscard]] std::uint64_t outstanding() const { return end - place; }
};

class Hands {
 public:
  // Records that all holders together have and have not committed.
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  [[nodiscard]] std::uint64_t committed() const { return committed_; }
  [[nodiscard]] std::uint64_t active_members() const { return active_members_; }
  [[nodiscard]] std::uint64_t share_sum() const { return share_sum_; }  // of active members
  [[nodiscard]] const std::map<WorkerId, Holder>& holders() const { return holders_; }
  // Null where the worker never was a member.
  [[nodiscard]] const Holder* find(WorkerId worker) const;
  // Null where `member` is not active in this generation with this attempt.
  [[nodiscard]] const Holder* find_current(Member member, Generation generation) const;

  // A phase begins: all places and grants begin at 0, and nothing is committed.
  void begin_phase();
  // These are members from now on, with nothing in hand.
  void admit(const std::vector<Member>& members, Generation generation);
  void deactivate(WorkerId worker);
  void deactivate_all();
  void set_shares(const std::vector<MemberShare>& shares);
  void grant(WorkerId worker, const Range& range);
  void commit(WorkerId worker, std::uint64_t place);
  // Back to a place that Holder::recent reaches.
  void uncommit(WorkerId worker, std::uint64_t place);
  void set_answer(WorkerId worker, Answer answer);
  void issue_recall(WorkerId worker, std::uint64_t number, std::uint64_t keep_to);
  // The grants end at `end` now; answers what was cut off, the last first.
  [[nodiscard]] std::vector<Range> settle_recall(WorkerId worker, std::uint64_t end);
  // Removes the first `records` grants behind the place: as if they had never been in this hand.
  // No place after the committed one was said to anybody yet. `dropped`: they count as committed.
  [[nodiscard]] std::vector<Range> take_late(WorkerId worker, std::uint64_t records, bool dropped);
  // Empties the hand. `suspect`: the holder was lost, and what it was working on may be why: its
  // last two steps, which may not be stable, and the one after them; of a member whose steps are
  // not known its first grant. The ranges of those have one retry more.
  [[nodiscard]] std::vector<Range> take_all(WorkerId worker, bool suspect);
  // Another state's holders take the place of these; their hands are emptied, and nobody is active.
  void replace_fenced(Hands fenced);

 private:
  friend class LedgerImage;
  static void reset(Holder& holder);
  void count_members();

  std::map<WorkerId, Holder> holders_;
  std::uint64_t committed_ = 0;
  // These follow from the holders.
  std::uint64_t outstanding_ = 0;
  std::uint64_t active_members_ = 0;
  std::uint64_t share_sum_ = 0;
};

}  // namespace antdt::shard_server
