// What every member tells every other at the end of a step, and what all of them conclude from it.
// Pure.
//
// The last collective of the step gathers the slots, so all members see the same ones and decide
// the same: to apply the step, to switch plans, to write a checkpoint, to end the phase.
// ARCHITECTURE.md, "The collective step".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"

namespace antdt::worker {

// What a visit found on records of this member, or of all (docs/synchronisation/gaia.md): how two
// replicas do on the same records, that of the member's domain and that of another one.
struct VisitSums {
  std::uint64_t records = 0;
  std::uint64_t own_right = 0, guest_right = 0;
  double own_loss = 0, guest_loss = 0;
  VisitSums& operator+=(const VisitSums& more) {
    records += more.records;
    own_right += more.own_right;
    guest_right += more.guest_right;
    own_loss += more.own_loss;
    guest_loss += more.guest_loss;
    return *this;
  }
  bool operator==(const VisitSums&) const = default;
};

struct StepSlot {
  std::uint64_t place = 0;       // records consumed since the phase began, this step's included
  std::uint32_t records = 0;     // how many of them in this step
  double weight = 0;             // sum of the weights of this step's records
  double loss = 0;               // weighted loss sum
  PlanVersion plan;              // highest version that this member holds
  std::uint64_t checkpoint = 0;  // highest checkpoint number that was ordered
  bool has_data = false;         // the member has more records
  bool leaving = false;          // all must stop together after the step
  bool all_well = true;          // false: this member cannot apply the step
  bool wants_hop = false;        // it wants its hop in the ring measured
  bool shares = false;           // from rank 0: the members share the next step
  std::uint32_t asked_us = 0;    // how long it waited for answers of its desk in this step
  // From the leader of a domain: of this step's exchange of updates (UpdatesExchanged).
  std::uint64_t sent_bytes = 0;
  std::uint64_t dense_bytes = 0;
  VisitSums visit = {};  // if the step has one

  bool operator==(const StepSlot&) const = default;
};

inline constexpr std::size_t kStepSlotBytes = 108;
using StepSlotBytes = std::array<std::byte, kStepSlotBytes>;

[[nodiscard]] StepSlotBytes encode(const StepSlot& slot);  // little-endian
[[nodiscard]] StepSlot decode_step_slot(std::span<const std::byte, kStepSlotBytes> bytes);
// Decodes the slots of all ranks, as they were gathered.
[[nodiscard]] std::vector<StepSlot> decode_step_slots(std::span<const std::byte> gathered);

// What the members agree on.
struct Agreement {
  std::uint64_t records = 0;  // of all members in this step
  double weight = 0;
  double loss = 0;
  // The newest plan that every member holds; 0 while the members' newest plans differ, because a
  // member with a later version may have missed an earlier one.
  PlanVersion plan;
  std::uint64_t checkpoint = 0;  // the number that every member was told
  bool any_has_data = false;
  bool any_leaving = false;
  bool all_well = true;
  bool measure_hop = false;  // every member wants it
  bool shares = false;       // the next step
  Duration asked{};          // how long a member waited for its desk in this step, on average
  std::uint64_t sent_bytes = 0, dense_bytes = 0;
  VisitSums visit = {};
  std::vector<std::uint64_t> places;  // by rank
  std::vector<std::uint64_t> taken;   // records in this step, by rank

  // A step without records changes nothing, and a step that some member could not compute must
  // change nothing anywhere.
  [[nodiscard]] bool applies() const { return all_well && records > 0 && weight > 0; }
};

[[nodiscard]] Agreement agree(std::span<const StepSlot> slots);

}  // namespace antdt::worker
