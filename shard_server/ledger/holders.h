// What each worker holds of the open phase: its grants, how far it has committed them (its place),
// and the last answer it got. Records that a worker gives back are returned to the caller, which
// puts them back into the supply.
//
// A value, a part of the ledger's state. Everything in it is durable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "shard_server/ledger/records.h"
#include "shard_server/pins/pins.h"

namespace antdt::shard_server {

// The last answer to a worker, kept so that a retry of the same request gets the same answer.
struct Answer {
  std::uint64_t seq = 0;  // 0: no answer yet
  std::uint64_t phase = 0;
  AnswerStatus status = AnswerStatus::kWait;
  std::uint32_t retry_ms = 0;
  std::vector<Interval> granted;
};

// How many committed ranges of a member are kept, at least. A checkpoint may be of a step that
// training has passed while it was written, and needs them.
inline constexpr std::size_t kRecentRanges = 32;

struct Holder {
  Attempt attempt;
  Generation generation;
  DomainNumber domain;  // the records that it may be granted, if records are pinned
  bool active = false;  // false: the member is lost; it is kept so that its attempt stays fenced
  std::uint64_t place = 0;    // records committed since the phase or the generation began
  std::uint64_t end = 0;      // records granted since then
  std::vector<Range> grants;  // end - place records, in the order of consumption
  // The last ranges that were committed, up to `place`: kRecentRanges or, since they are dropped
  // many at a time, up to twice as many.
  std::vector<Range> recent;
  std::uint64_t step_records = 0;  // see MemberShare
  std::uint64_t hold_records = 0;
  Answer last;
  std::uint64_t recalls = 0;  // number of the newest recall
  // recall number `recalls` is not answered, so the holder gets no more grants
  bool recall_pending = false;
  std::uint64_t recall_keep_to = 0;
  [[nodiscard]] std::uint64_t outstanding() const { return end - place; }
};

class Holders {
 public:
  // Records that all holders together have and have not committed.
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  [[nodiscard]] std::uint64_t committed() const { return committed_; }
  // Sums over the active members of one domain. Without pins all members are in domain 0.
  struct Sums {
    std::uint64_t outstanding = 0;
    std::uint64_t members = 0;
    std::uint64_t step_records = 0;
  };
  [[nodiscard]] Sums sums_of(DomainNumber domain) const {
    return domain.value < sums_.size() ? sums_[domain.value] : Sums{};
  }
  [[nodiscard]] Sums sums_of_all() const;
  [[nodiscard]] const std::map<WorkerId, Holder>& all() const { return holders_; }
  // Null where the worker never was a member.
  [[nodiscard]] const Holder* find(WorkerId worker) const;
  // Null if `member` is not active in this generation with this attempt.
  [[nodiscard]] const Holder* find_current(Member member, Generation generation) const;

  // A phase begins: all places and grants begin at 0 and nothing is committed.
  void begin_phase();
  // These are the members from now on, and they hold nothing. `domains`: of each of them; empty: of
  // none.
  void admit(const std::vector<Member>& members, const std::vector<DomainNumber>& domains,
             Generation generation);
  void deactivate(WorkerId worker);
  void deactivate_all();
  void set_shares(const std::vector<MemberShare>& shares);
  // A holder commits up to `place`, and is answered with the ranges that it is granted.
  void answer(WorkerId worker, std::uint64_t place, Answer answer,
              const std::vector<Range>& granted);
  void commit(WorkerId worker, std::uint64_t place);
  // Moves a holder back to `place`, which must be within Holder::recent.
  void uncommit(WorkerId worker, std::uint64_t place);
  void issue_recall(WorkerId worker, std::uint64_t number, std::uint64_t keep_to);
  // Cuts the holder's grants at `end`. Returns what was cut off, the last range first.
  [[nodiscard]] std::vector<Range> settle_recall(WorkerId worker, std::uint64_t end);
  // Removes the first `records` records behind the place, as if the worker had never held them.
  // Nobody may have been told a place beyond the committed one. `dropped`: the records count as
  // committed.
  [[nodiscard]] std::vector<Range> take_late(WorkerId worker, std::uint64_t records, bool dropped);
  // Takes everything that the holder has. `suspect`: the holder was lost, perhaps because of the
  // records it was working on. These are its last two steps, which may not be stable, and the step
  // after them; if its steps are not known, its first grant. Each suspect range gets one more retry
  // counted.
  [[nodiscard]] std::vector<Range> take_all(WorkerId worker, bool suspect);
  // Takes over the holders of another state, with their attempts, but without what they hold. None
  // of them is active.
  void replace_fenced(Holders fenced);

 private:
  friend class LedgerImage;
  static void reset(Holder& holder);
  void commit(Holder& holder, std::uint64_t place);
  void hold(const Holder& holder, std::uint64_t records);
  void release(const Holder& holder, std::uint64_t records);
  void count_members();
  [[nodiscard]] Sums& sums(DomainNumber domain);

  std::map<WorkerId, Holder> holders_;
  std::uint64_t committed_ = 0;
  // Computed from the holders.
  std::uint64_t outstanding_ = 0;
  std::vector<Sums> sums_;  // by domain
};

}  // namespace antdt::shard_server
