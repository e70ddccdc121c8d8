#include "trainer/worker/member/heal_plan.h"

#include <algorithm>

namespace antdt::worker {
namespace {

// The metadata has some 20 bytes for each member's place, and the history of steps is bounded, so
// this limit is never reached.
constexpr std::uint64_t kMaxMetaBytes = 64 * 1024 * 1024;

bool lacks(const HealSlot& slot, const sync::ReplicaVersion& target) {
  return !slot.has_state || slot.version() < target;
}

Status check_parts(std::span<const HealSlot> slots) {
  const HealSlot& first = slots.front();
  for (std::size_t rank = 1; rank < slots.size(); ++rank) {
    const HealSlot& slot = slots[rank];
    if (slot.parts == first.parts && slot.part_bytes == first.part_bytes &&
        slot.part_sizes == first.part_sizes) {
      continue;
    }
    return fail(ErrorKind::kUsage,
                "the training state of rank 0 has {} parts with {} bytes and that of rank {} has "
                "{} with {}{}: their models or optimizers differ",
                first.parts, first.part_bytes, rank, slot.parts, slot.part_bytes,
                slot.part_bytes == first.part_bytes ? ", of other sizes" : "");
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> holders_of(std::span<const HealSlot> slots) {
  std::vector<std::uint32_t> ranks;
  std::vector<sync::ReplicaVersion> versions;
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    if (!slots[rank].has_state) continue;
    ranks.push_back(rank);
    versions.push_back(slots[rank].version());
  }
  std::vector<std::uint32_t> holders;
  for (const std::uint32_t i : sync::furthest(versions)) holders.push_back(ranks[i]);
  return holders;
}

Result<HealPlan> heal_plan(std::span<const HealSlot> slots, std::uint32_t rank) {
  ANTDT_RETURN_IF_ERROR(check_parts(slots));
  HealPlan plan;
  plan.on_device = std::ranges::all_of(slots, &HealSlot::on_device);
  const auto holders = holders_of(slots);
  if (holders.empty()) {
    return fail(ErrorKind::kAborted,
                "none of the {} members holds the training state that is to go on", slots.size());
  }
  plan.version = slots[holders.front()].version();
  const std::size_t size = slots.size();
  plan.receives = lacks(slots[rank], plan.version);
  plan.sends = lacks(slots[(rank + 1) % size], plan.version);
  std::size_t source = rank;
  while (lacks(slots[source], plan.version)) source = (source + size - 1) % size;
  plan.meta_bytes = slots[source].meta_bytes;
  if (plan.meta_bytes > kMaxMetaBytes) {
    return fail(ErrorKind::kCorrupt, "rank {} wants to send {} bytes before the training state",
                source, plan.meta_bytes);
  }
  return plan;
}

HealPlan settle_plan(std::span<const std::uint64_t> hashes, std::uint32_t rank, bool on_device) {
  HealPlan plan;
  plan.on_device = on_device;
  plan.receives = hashes[rank] != hashes.front();
  plan.sends = hashes[(rank + 1) % hashes.size()] != hashes.front();
  return plan;
}

}  // namespace antdt::worker
