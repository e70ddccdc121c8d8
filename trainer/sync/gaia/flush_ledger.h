// Which domains' records are in which domain's replica under Gaia, where parts of updates are sent.
// Pure.
//
// A message carries the significant part of what a domain has trained. The rest follows when it is
// significant, or with the next whole message (update.h). So after a message that is not whole,
// some of a record's update may be in another replica and some not. Whole messages are the only
// moments at which a record is in another replica entirely, and at which accounts can be exact:
//
//   - A record counts once a survivor has applied its domain's first whole message after it
//     (`merged`).
//   - Committed is what every survivor has entirely: the records before a whole message that all
//     have applied (`committable`). Whoever is lost, they are in the model.
//   - A lost domain gives back the records after its furthest whole message that a survivor has
//     applied. Some of their updates are in survivors in part. Each survivor withdraws the messages
//     that it has applied after that whole message, which it kept for this, and applies those up to
//     it that it lacks, which another survivor has (`repair`). Then the records that are given back
//     are in no replica, and can be trained again: exactly once relative to the merged model.
//
// Withdrawing subtracts what was added. What survivors have computed meanwhile from replicas that
// contained these parts stays, as it does where a replica is lost under DS-Sync: a record is in one
// update, and updates depend on the replicas at which they were computed.
//
// What is kept: of each domain the messages after its last whole message that all survivors have
// applied (`kept_after`). How often messages are whole bounds that, and how much is trained again.
//
// While survivors repair, another may be lost, so `merged` may go back until all have repaired:
// what is given back must not be told to anybody before (as in merge_ledger.h).
//
// The same at all domains, from the same events: they tell one another which messages they have
// applied. What is not told yet makes `committable` smaller and `kept_after` longer; before a lost
// domain is judged, the survivors tell what they have applied. Memory: domains squared, and what is
// in `kept_after`. Nothing is durable.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace antdt::sync::gaia {

class FlushLedger {
 public:
  // All replicas are equal, with nothing pending. `places`: how many records of each domain are in
  // them, in the order in which the domain trained them.
  explicit FlushLedger(const std::vector<std::uint64_t>& places);

  // The domain has sent its next message, after which it has trained `place` records, which is not
  // less than before.
  void sent(std::uint32_t domain, std::uint64_t place, bool whole);
  // `holder`, another domain, has applied the messages of `origin` up to this one, which it sent.
  void applied(std::uint32_t holder, std::uint32_t origin, std::uint64_t clock);

  // The domain is lost, with its replica and everything pending.
  void lose(std::uint32_t domain);

  struct Repair {
    std::uint64_t until = 0;  // the replica must contain the messages up to here, and none after
    std::uint64_t has = 0;    // it has applied those up to here
    [[nodiscard]] bool withdraws() const { return has > until; }
    [[nodiscard]] bool fetches() const { return has < until; }
    bool operator==(const Repair&) const = default;
  };
  // What `holder`, a survivor, does about the messages of `origin`, which is lost.
  [[nodiscard]] Repair repair(std::uint32_t holder, std::uint32_t origin) const;
  // The holder has done that.
  void repaired(std::uint32_t holder, std::uint32_t origin);

  // ------------------------------------------------------------------------------ in records
  // Up to which place the records of `origin` are entirely in the replica of every survivor.
  [[nodiscard]] std::uint64_t committable(std::uint32_t origin) const;
  // Up to which place they are entirely in the replica of some survivor other than `origin`: what a
  // lost domain does not give back.
  [[nodiscard]] std::uint64_t merged(std::uint32_t origin) const;
  // How many of the records after `merged` are in some other survivor in part, unless that is
  // repaired: so many count more than once, in part, if they are trained again without repair.
  [[nodiscard]] std::uint64_t in_part(std::uint32_t origin) const;
  // Messages of `origin` after this one are kept by those who have applied them.
  [[nodiscard]] std::uint64_t kept_after(std::uint32_t origin) const;

  [[nodiscard]] bool lost(std::uint32_t domain) const { return lost_[domain]; }
  [[nodiscard]] std::uint32_t domains() const { return static_cast<std::uint32_t>(lost_.size()); }

 private:
  struct Sent {
    std::uint64_t clock = 0;
    std::uint64_t place = 0;
    bool whole = true;
  };
  // The least and the greatest clock of `origin` that survivors other than it have applied.
  [[nodiscard]] std::uint64_t least(std::uint32_t origin) const;
  [[nodiscard]] std::uint64_t greatest(std::uint32_t origin) const;
  // The last whole message up to this clock, which is not before those that are forgotten.
  [[nodiscard]] const Sent& whole_until(std::uint32_t origin, std::uint64_t clock) const;
  void forget(std::uint32_t origin);

  std::vector<std::deque<Sent>> sent_;  // by domain, from the last whole one that all have
  std::vector<std::vector<std::uint64_t>> applied_;  // by holder, then origin; clocks
  std::vector<bool> lost_;
};

}  // namespace antdt::sync::gaia
