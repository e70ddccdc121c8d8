// Which records are in which domain's replica under Gaia, where all domains conclude each step
// together. Pure.
//
// Before a step is computed, domains send one another what is significant of their updates, or, in
// a whole exchange, everything (update.h). After an exchange that is not whole, a record of another
// domain may be in a replica in part. So of another domain's records, those count that were trained
// before a whole exchange: they are entirely in each replica. Of the own domain's, all do, as its
// members have summed their gradients, and have the same replica.
//
// That is all to be known: as all conclude the same steps, there is one whole exchange that all
// replicas contain, and one place of each rank at that moment. Domains that run ahead of one
// another need more (flush_ledger.h).
//
// When a step counts, who holds the model when members were lost, and when records are committed,
// is as in merge_ledger.h: members are one version apart at most, those with the highest version go
// on, and a member that has concluded a step knows that all had concluded the one before. So the
// records before a whole exchange are `committable` once the step has been concluded that follows
// the one with the exchange.
//
// A domain is lost if none of its members holds the model. It gives back what its members have
// trained since the last whole exchange (`merged`). Each holder first withdraws what it has of
// these in part, which it has kept the sum of, so that they can be trained again: exactly once
// relative to the merged model.
//
// Memory, and time for each step: in proportion to the number of members. All have the same, from
// the same steps. Nothing is durable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace antdt::sync::gaia {

class StepLedger {
 public:
  // All replicas are equal, and the places of all ranks are 0. `domains`: by rank, the number of
  // its domain.
  explicit StepLedger(std::vector<std::uint32_t> domains);

  // ------------------------------------------------------- what the step did that was concluded
  // Domains exchanged updates, all that was pending if `whole`, and then each added what its
  // members have trained: by rank, up to `places`, which are not less than in the last step.
  void applied(bool whole, std::span<const std::uint64_t> places);
  // What was exchanged was taken back. Records that need no update count with their domain's.
  void dropped(std::span<const std::uint64_t> places);
  // Before the step is concluded, all members made their replicas equal.
  void consolidated();

  // ------------------------------------------------------------------ what that means; in records
  // Up to which place of a rank its records are entirely in the replica of every member that may
  // hold the model later, whoever is lost and whatever step is under way then.
  [[nodiscard]] std::uint64_t committable(std::uint32_t rank) const { return safe_[rank]; }
  // Up to which place of a rank, whatever became of it, its records are in the model that
  // `holders`, one at least, go on with when they have withdrawn the parts of lost domains.
  [[nodiscard]] std::uint64_t merged(std::uint32_t rank,
                                     std::span<const std::uint32_t> holders) const;

  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(safe_.size()); }
  void check_invariants() const;

 private:
  // Concluding a step says that all have concluded the one before.
  void conclude(std::span<const std::uint64_t> places);

  std::vector<std::uint32_t> domains_;  // by rank
  bool one_ = false;                    // there is one domain, whose replica is that of all
  // By rank: its place after the last concluded step; at the last whole exchange or consolidation;
  // and what is committable.
  std::vector<std::uint64_t> places_;
  std::vector<std::uint64_t> whole_;
  std::vector<std::uint64_t> safe_;
};

}  // namespace antdt::sync::gaia
