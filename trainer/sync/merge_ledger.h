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
// before, members are one round apart at most, and one rule is enough (`undecided`):
//
//   - If a survivor has concluded the round, all survivors conclude it: they have all that is
//     needed.
//   - If none has, all survivors drop it, although a lost member may have concluded it.
//
// So all survivors are again after the same round. They then mix in one group of all, which is a
// round, too (it adds nothing), so that what happens if another member is lost meanwhile is the
// same rule again. After it all replicas are equal, and a newcomer gets a copy of one.
//
// What may be called committed: a member that has concluded a round knows that all had concluded
// the one before. Whoever survives will be after this round or after that one, and a replica after
// this round contains what it contained before. So the records that all replicas contained after
// the round before are in the replica of each survivor, whoever is lost: `committable`.
//
// What a lost member gives back: the records behind the furthest place that a survivor contains
// (`merged`). They are in no replica, so they can be trained again. This place may be told to
// anybody only after the survivors have all concluded the round in which they mix everything: if
// another is lost before, the place may go back.
//
// A record counts if it is in the model, and not as much as another: of the updates of the last
// rounds before a loss, those of survivors weigh more in the survivors' mean than those of the lost
// member. What all had mixed before has the same weight.
//
// Memory, and time for each round: in proportion to the square of the number of members (8 MB for
// 1000). All members have the same, from the same rounds. Nothing is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "trainer/sync/groups.h"

namespace antdt::sync {

class MergeLedger {
 public:
  // All replicas are equal; they contain the records of each rank up to `places[rank]`.
  explicit MergeLedger(const std::vector<std::uint64_t>& places);

  // ------------------------------------------------------ what the round did that was concluded
  // The members of each group mixed, and then each added what it had trained, up to
  // `places[rank]`, which is not less than in the last round. All members are in `groups`, except
  // for the lost ones, whose places are ignored.
  void applied(const Groups& groups, std::span<const std::uint64_t> places);
  // All members that are not lost mixed in one group. From now on their replicas are equal.
  void consolidated();
  // Replicas are as before: a member could not do its part, or there was nothing to train.
  void dropped();

  // The member is lost, with its replica. All survivors have resolved the last round (`undecided`)
  // and recorded the result here.
  void lose(std::uint32_t rank);

  // ------------------------------------------------------------------ what that means; in records
  // Up to which place of `origin` the replica of `holder`, which is not lost, contains its records.
  [[nodiscard]] std::uint64_t contained(std::uint32_t holder, std::uint32_t origin) const;
  // Up to which place of `origin` its records are in the replica of every survivor, whoever is lost
  // and whatever round is undecided then.
  [[nodiscard]] std::uint64_t committable(std::uint32_t origin) const { return safe_[origin]; }
  // Up to which place of `origin`, lost or not, its records are in the replica of some survivor.
  [[nodiscard]] std::uint64_t merged(std::uint32_t origin) const;

  [[nodiscard]] bool lost(std::uint32_t rank) const { return lost_[rank]; }
  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(lost_.size()); }
  void check_invariants() const;

 private:
  using Places = std::vector<std::uint64_t>;  // by origin

  void mix(const Groups& groups);
  // Concluding a round says that all have concluded the one before.
  void make_safe();

  std::vector<Places> contained_;  // by holder; empty: lost
  Places safe_;
  std::vector<bool> lost_;
};

// What a survivor does about the round that it has begun after the one that it concluded last.
enum class Undecided : std::uint8_t { kDrop, kConclude };
// The same at all survivors, once they have told one another which round each concluded last (`own`
// is among them). None if they are more than one round apart: then not all took part in the same
// rounds.
[[nodiscard]] std::optional<Undecided> undecided(Step own, std::span<const Step> survivors);

}  // namespace antdt::sync
