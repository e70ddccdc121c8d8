#include "trainer/loop/state/healing.h"

#include <algorithm>
#include <array>
#include <span>

#include "trainer/loop/state/state_hash.h"

namespace antdt::trainer {
namespace {

using worker::HealPlan;
using worker::HealSlot;

constexpr std::size_t kChunkBytes = 1024 * 1024;

// Numbers in this machine's byte order, like the parts themselves.
using SlotBytes = std::array<std::uint64_t, 7>;
SlotBytes encode(const HealSlot& slot) {
  return {slot.has_state ? 1U : 0U, slot.step.value, slot.meta_bytes,        slot.parts,
          slot.part_bytes,          slot.part_sizes, slot.consolidated.value};
}
HealSlot decode(const SlotBytes& bytes) {
  return {bytes[0] != 0, Step{bytes[1]},      bytes[2], bytes[3], bytes[4],
          bytes[5],      Generation{bytes[6]}};
}

HealSlot slot_of(const worker::CompareStates& own, std::span<const std::span<std::byte>> parts) {
  HealSlot slot{own.has_state,      own.step,        own.meta.size(), parts.size(), 0,
                0xcbf29ce484222325, own.consolidated};
  for (const auto& part : parts) {
    slot.part_bytes += part.size();
    slot.part_sizes = (slot.part_sizes ^ part.size()) * 0x100000001b3;  // FNV-1a over the sizes
  }
  return slot;
}

// One member's part in passing `bytes` along the ring; `passed` is called after each piece.
Status pass_on(Collective& collective, const HealPlan& plan, std::span<std::byte> bytes,
               const std::function<void(std::size_t)>& passed) {
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const auto chunk = bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at));
    if (plan.receives) ANTDT_RETURN_IF_ERROR(collective.receive_left(chunk));
    if (plan.sends) ANTDT_RETURN_IF_ERROR(collective.send_right(chunk));
    passed(chunk.size());
  }
  return {};
}

// Memory for a second state beside the one in the engine.
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

}  // namespace

Result<std::vector<HealSlot>> compare_states(Collective& collective, Engine& engine,
                                             const worker::CompareStates& own) {
  const SlotBytes mine = encode(slot_of(own, engine.state_parts()));
  std::vector<SlotBytes> all(collective.size());
  ANTDT_RETURN_IF_ERROR(
      collective.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  std::vector<HealSlot> slots;
  for (const SlotBytes& bytes : all) slots.push_back(decode(bytes));
  return slots;
}

Result<std::string> pass_state(Collective& collective, Engine& engine,
                               const worker::PassState& pass, const Received& received) {
  const HealPlan& plan = pass.plan;
  const auto parts = engine.state_parts();
  Aside aside;
  const bool beside = plan.receives && pass.keeps_own;
  const auto through = beside ? aside.like(parts) : parts;
  std::string meta = plan.receives ? std::string(plan.meta_bytes, '\0') : pass.meta;
  std::uint64_t so_far = 0;
  const auto passed = [&](std::size_t bytes) {
    so_far += bytes;
    if (received && plan.receives) received(so_far, pass.all_bytes);
  };
  passed(0);
  ANTDT_RETURN_IF_ERROR(pass_on(collective, plan, std::as_writable_bytes(std::span(meta)), passed));
  for (const auto& part : through) ANTDT_RETURN_IF_ERROR(pass_on(collective, plan, part, passed));
  if (!plan.receives) return meta;
  for (std::size_t i = 0; i < parts.size() && beside; ++i) {
    std::copy(through[i].begin(), through[i].end(), parts[i].begin());
  }
  engine.state_replaced();
  return meta;
}

Result<SettledHash> settle_differences(Collective& collective, Engine& engine, Step step,
                                       std::uint64_t own, const Received& received) {
  std::vector<std::uint64_t> hashes(collective.size());
  ANTDT_RETURN_IF_ERROR(collective.allgather(std::as_bytes(std::span(&own, 1)),
                                             std::as_writable_bytes(std::span(hashes))));
  worker::PassState pass;
  pass.plan = worker::settle_plan(hashes, collective.rank());
  if (!pass.plan.receives && !pass.plan.sends) return SettledHash{own};
  for (const auto& part : engine.state_parts()) pass.all_bytes += part.size();
  pass.keeps_own = true;
  ANTDT_RETURN_IF_ERROR(pass_state(collective, engine, pass, received));
  if (!pass.plan.receives) return SettledHash{own};
  return SettledHash{state_hash(engine, step), true};
}

}  // namespace antdt::trainer
