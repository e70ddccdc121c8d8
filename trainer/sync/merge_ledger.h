// Which records are in which member's replica, where replicas differ. Pure.
//
// A strategy of this kind works in rounds. In each, the members of a group replace their replicas
// by the mean of them (they mix), and then each member adds the update of the records that it has
// trained in the round. Records spread with the replicas: a replica contains an update if it, or
// one that was mixed into it since, has added it. This class counts that, for each pair of a holder
// and an origin: the holder's replica contains exactly the origin's records up to a place. (It is
// always a place, and not some other set: what spreads is a whole replica with all that it
// contains.)
//
// When a round counts. At its end each member tells all others that it could do its part, and
// concludes the round when it has heard that of all. The replica from before the round and the
// update stay with it until then. A member may be lost in between, after some have concluded and
// before others have. Since a member takes part in a round only after it has concluded the one
// before, members are one round apart at most. One rule is enough, that of versions
// (replica_version.h):
//
//   The replicas of the survivors with the highest version go on (they *hold* the model). A
//   survivor that is behind is treated as if it were lost: it gets a copy of another replica.
//
// The holders then make their replicas equal: they consolidate, which is a version of its own. If
// more are lost meanwhile, who has completed the consolidation is ahead of who has not, and the
// rule is the same again.
//
// What may be called committed: a member that has concluded a round knows that all had concluded
// the one before. Whoever holds the model later is after this round or after that one, and a
// replica after this round contains what it contained before. So the records that all replicas
// contained after the round before are in the replica of each holder, whoever is lost:
// `committable`.
//
// What a member gives back, lost or not: the records behind the furthest place that the replica of
// a holder contains (`merged`). They are in no replica that goes on, so they can be trained again.
// This place may be told to anybody only after all holders have completed the consolidation: if
// another is lost before, the place may go back.
//
// A record counts if it is in the model, and not as much as another: of the updates of the last
// rounds before a loss, those of holders weigh more in their mean than those of the others. What
// all had mixed before has the same weight.
//
// Memory, and time for each round: in proportion to the square of the number of members (8 MB and
// 1.4 ms for 1000). All members have the same, from the same rounds. Nothing is durable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/sync/groups.h"

namespace antdt::sync {

class MergeLedger {
 public:
  // All replicas are equal; they contain the records of each rank up to `places[rank]`.
  explicit MergeLedger(const std::vector<std::uint64_t>& places);

  // ------------------------------------------------------ what the round did that was concluded
  // The members of each group mixed, members in no group did not, and then each added what it had
  // trained, up to `places[rank]`, which is not less than in the last round.
  void applied(const Groups& groups, std::span<const std::uint64_t> places);
  // All members made their replicas equal.
  void consolidated();
  // Replicas are as before: a member could not do its part, or there was nothing to train.
  void dropped();

  // ------------------------------------------------------------------ what that means; in records
  // Up to which place of `origin` the replica of `holder` contains its records.
  [[nodiscard]] std::uint64_t contained(std::uint32_t holder, std::uint32_t origin) const {
    return contained_[holder][origin];
  }
  // Up to which place of `origin` its records are in the replica of every member that may hold the
  // model later, whoever is lost and whatever round is under way then.
  [[nodiscard]] std::uint64_t committable(std::uint32_t origin) const { return safe_[origin]; }
  // Up to which place of `origin`, whatever became of it, its records are in the model that
  // `holders`, one at least, go on with.
  [[nodiscard]] std::uint64_t merged(std::uint32_t origin,
                                     std::span<const std::uint32_t> holders) const;

  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(safe_.size()); }
  void check_invariants() const;

 private:
  using Places = std::vector<std::uint64_t>;  // by origin

  void mix(const Groups& groups);
  // Concluding a round says that all have concluded the one before.
  void make_safe();

  std::vector<Places> contained_;  // by holder
  Places safe_;
};

}  // namespace antdt::sync
