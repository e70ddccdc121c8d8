#include "trainer/loop/healing.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/wire/codec.h"

namespace antdt::trainer {
namespace {

constexpr std::size_t kChunkBytes = 1024 * 1024;
// A member has a place of some 20 bytes in it, and the history of steps is
// bounded, so that this is never reached.
constexpr std::uint64_t kMaxMetaBytes = 64 * 1024 * 1024;

// What belongs to the state beside the engine's parts.
struct StateMeta {
  Step step;
  std::uint64_t phase = 0;
  std::vector<wire::MemberPlace> places;
  double loss_sum = 0;
  double weight_sum = 0;
  std::uint64_t checkpoint = 0;
  wire::StepHistory history{};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("step", m.step);
    v("phase", m.phase);
    v("places", m.places);
    v("loss_sum", m.loss_sum);
    v("weight_sum", m.weight_sum);
    v("checkpoint", m.checkpoint);
    v("history", m.history);
  }
};

StateMeta meta_of(const TrainingState& state) {
  return {state.step,       state.phase,      state.places,       state.loss_sum,
          state.weight_sum, state.checkpoint, state.log.history()};
}

void take_over(const StateMeta& meta, TrainingState& state) {
  state.step = meta.step;
  state.phase = meta.phase;
  state.places = meta.places;
  state.loss_sum = meta.loss_sum;
  state.weight_sum = meta.weight_sum;
  state.checkpoint = meta.checkpoint;
  state.log = StepLog(meta.history);
}

// As numbers, in the byte order of the machine, as the parts are themselves.
using SlotBytes = std::array<std::uint64_t, 6>;
SlotBytes encode(const HealSlot& slot) {
  return {slot.has_state ? 1U : 0U, slot.step.value, slot.meta_bytes, slot.parts,
          slot.part_bytes,          slot.part_sizes};
}
HealSlot decode(const SlotBytes& bytes) {
  return {bytes[0] != 0, Step{bytes[1]}, bytes[2], bytes[3], bytes[4], bytes[5]};
}

HealSlot slot_of(bool has_state, Step step, std::size_t meta_bytes,
                 std::span<const std::span<std::byte>> parts) {
  HealSlot slot{has_state, step, meta_bytes, parts.size(), 0, 0xcbf29ce484222325};
  for (const auto& part : parts) {
    slot.part_bytes += part.size();
    slot.part_sizes = (slot.part_sizes ^ part.size()) * 0x100000001b3;  // FNV-1a, by size
  }
  return slot;
}

Result<std::vector<HealSlot>> gather(Collective& collective, const HealSlot& own) {
  const SlotBytes mine = encode(own);
  std::vector<SlotBytes> all(collective.size());
  ANTDT_RETURN_IF_ERROR(
      collective.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  std::vector<HealSlot> slots;
  for (const SlotBytes& bytes : all) slots.push_back(decode(bytes));
  return slots;
}

// One member's part in passing `bytes` along; `passed` hears of each piece.
Status pass(Collective& collective, const HealPlan& plan, std::span<std::byte> bytes,
            const std::function<void(std::size_t)>& passed) {
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const auto chunk = bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at));
    if (plan.receives) ANTDT_RETURN_IF_ERROR(collective.receive_left(chunk));
    if (plan.sends) ANTDT_RETURN_IF_ERROR(collective.send_right(chunk));
    passed(chunk.size());
  }
  return {};
}

// Room for a state beside the one in the engine.
class Aside {
 public:
  std::vector<std::span<std::byte>> like(std::span<const std::span<std::byte>> parts) {
    std::size_t bytes = 0;
    for (const auto& part : parts) bytes += part.size();
    memory_.resize(bytes);
    std::vector<std::span<std::byte>> result;
    std::size_t at = 0;
    for (const auto& part : parts) {
      result.push_back(std::span(memory_).subspan(at, part.size()));
      at += part.size();
    }
    return result;
  }

 private:
  std::vector<std::byte> memory_;
};

bool lacks(const HealSlot& slot, Step target) { return !slot.has_state || slot.step < target; }

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

Result<HealPlan> heal_plan(std::span<const HealSlot> slots, std::uint32_t rank) {
  ANTDT_RETURN_IF_ERROR(check_parts(slots));
  HealPlan plan;
  bool any = false;
  for (const HealSlot& slot : slots) {
    if (!slot.has_state) continue;
    any = true;
    plan.step = std::max(plan.step, slot.step);
  }
  if (!any) {
    return fail(ErrorKind::kAborted,
                "none of the {} members holds the training state that is to go on", slots.size());
  }
  const std::size_t size = slots.size();
  plan.receives = lacks(slots[rank], plan.step);
  plan.sends = lacks(slots[(rank + 1) % size], plan.step);
  std::size_t source = rank;
  while (lacks(slots[source], plan.step)) source = (source + size - 1) % size;
  plan.meta_bytes = slots[source].meta_bytes;
  if (plan.meta_bytes > kMaxMetaBytes) {
    return fail(ErrorKind::kCorrupt, "rank {} wants to send {} bytes before the training state",
                source, plan.meta_bytes);
  }
  return plan;
}

Status heal(Collective& collective, Engine& engine, TrainingState& state, bool has_state,
            Generation base, const Received& received) {
  const auto parts = engine.state_parts();
  std::string meta = wire::encode(meta_of(state));
  ANTDT_TRY(const auto slots,
            gather(collective, slot_of(has_state, state.step, meta.size(), parts)));
  ANTDT_TRY(const HealPlan plan, heal_plan(slots, collective.rank()));
  Aside aside;
  std::vector<std::span<std::byte>> through = parts;
  if (plan.receives) {
    meta.assign(plan.meta_bytes, '\0');
    if (has_state) {
      through = aside.like(parts);
    } else {
      state.settled = {};
      state.pristine = false;
    }
  }
  const std::uint64_t all = slots[collective.rank()].part_bytes + plan.meta_bytes;
  std::uint64_t so_far = 0;
  const auto passed = [&](std::size_t bytes) {
    so_far += bytes;
    if (received && plan.receives) received(so_far, all);
  };
  if (plan.receives) passed(0);
  ANTDT_RETURN_IF_ERROR(pass(collective, plan, std::as_writable_bytes(std::span(meta)), passed));
  for (const auto& part : through) ANTDT_RETURN_IF_ERROR(pass(collective, plan, part, passed));
  if (!plan.receives) return {};
  ANTDT_TRY(const StateMeta new_meta, wire::decode<StateMeta>(meta));
  for (std::size_t i = 0; i < parts.size() && has_state; ++i) {
    std::copy(through[i].begin(), through[i].end(), parts[i].begin());
  }
  state.pristine = false;
  engine.state_replaced();
  take_over(new_meta, state);
  state.settled = base;
  return {};
}

}  // namespace antdt::trainer
