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
constexpr std::size_t kDeviceChunkBytes = 64 * 1024 * 1024;  // some milliseconds between devices

// Numbers in this machine's byte order, like the parts themselves. The first has two bits.
constexpr std::uint64_t kHasState = 1, kOnDevice = 2;
using SlotBytes = std::array<std::uint64_t, 7>;
SlotBytes encode(const HealSlot& slot) {
  const std::uint64_t bits = (slot.has_state ? kHasState : 0) | (slot.on_device ? kOnDevice : 0);
  return {bits,
          slot.step.value,
          slot.meta_bytes,
          slot.parts,
          slot.part_bytes,
          slot.part_sizes,
          slot.consolidated.value};
}
HealSlot decode(const SlotBytes& bytes) {
  return {(bytes[0] & kHasState) != 0,
          Step{bytes[1]},
          bytes[2],
          bytes[3],
          bytes[4],
          bytes[5],
          Generation{bytes[6]},
          (bytes[0] & kOnDevice) != 0};
}

// The bytes of each part. Nothing is copied.
std::vector<std::size_t> part_sizes(Engine& engine) {
  std::vector<std::size_t> sizes;
  DeviceState* const there = engine.device_state();
  if (there != nullptr) {
    for (const DeviceBytes& array : there->arrays()) sizes.push_back(array.size);
  }
  const auto others = there != nullptr ? there->rest() : engine.state_parts();
  for (const auto& part : others) sizes.push_back(part.size());
  return sizes;
}

HealSlot slot_of(const worker::CompareStates& own, Engine& engine) {
  const auto sizes = part_sizes(engine);
  HealSlot slot{own.has_state,
                own.step,
                own.meta.size(),
                sizes.size(),
                0,
                0xcbf29ce484222325,
                own.consolidated,
                engine.device_state() != nullptr};
  for (const std::size_t size : sizes) {
    slot.part_bytes += size;
    slot.part_sizes = (slot.part_sizes ^ size) * 0x100000001b3;  // FNV-1a over the sizes
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

// The same for bytes in a device's memory.
Status pass_on(DeviceCollective& devices, DeviceStream stream, const HealPlan& plan,
               DeviceBytes bytes, const std::function<void(std::size_t)>& passed) {
  for (std::size_t at = 0; at < bytes.size; at += kDeviceChunkBytes) {
    const DeviceBytes chunk{static_cast<std::byte*>(bytes.data) + at,
                            std::min(kDeviceChunkBytes, bytes.size - at)};
    if (plan.receives) ANTDT_RETURN_IF_ERROR(devices.enqueue_receive_left(chunk, stream));
    if (plan.sends) ANTDT_RETURN_IF_ERROR(devices.enqueue_send_right(chunk, stream));
    ANTDT_RETURN_IF_ERROR(devices.finish());
    passed(chunk.size);
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

// Passes parts in the host's memory on; with `keeps_own`, they change only once all have arrived.
Status pass_parts(Collective& collective, const worker::PassState& pass,
                  const std::vector<std::span<std::byte>>& parts,
                  const std::function<void(std::size_t)>& passed) {
  Aside aside;
  const bool beside = pass.plan.receives && pass.keeps_own;
  const auto through = beside ? aside.like(parts) : parts;
  for (const auto& part : through) {
    ANTDT_RETURN_IF_ERROR(pass_on(collective, pass.plan, part, passed));
  }
  for (std::size_t i = 0; i < parts.size() && beside; ++i) {
    std::copy(through[i].begin(), through[i].end(), parts[i].begin());
  }
  return {};
}

// The same from device to device. A state that is kept meanwhile is in the host's memory.
Status pass_arrays(Collective& collective, DeviceCollective& devices, DeviceState& state,
                   const worker::PassState& pass, const std::function<void(std::size_t)>& passed) {
  const bool keeps = pass.plan.receives && pass.keeps_own;
  if (keeps) state.keep();
  const auto pass_all = [&]() -> Status {
    for (const DeviceBytes& array : state.arrays()) {
      ANTDT_RETURN_IF_ERROR(pass_on(devices, state.stream(), pass.plan, array, passed));
    }
    return pass_parts(collective, pass, state.rest(), passed);
  };
  const Status done = pass_all();
  // After kInternal something may still write to the arrays, and the process ends.
  if (!done && keeps && done.error().kind != ErrorKind::kInternal) state.give_back();
  return done;
}

}  // namespace

Result<std::vector<HealSlot>> compare_states(Collective& collective, Engine& engine,
                                             const worker::CompareStates& own) {
  const SlotBytes mine = encode(slot_of(own, engine));
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
  std::string meta = plan.receives ? std::string(plan.meta_bytes, '\0') : pass.meta;
  std::uint64_t so_far = 0;
  const auto passed = [&](std::size_t bytes) {
    so_far += bytes;
    if (received && plan.receives) received(so_far, pass.all_bytes);
  };
  passed(0);
  ANTDT_RETURN_IF_ERROR(pass_on(collective, plan, std::as_writable_bytes(std::span(meta)), passed));
  DeviceCollective* const devices = plan.on_device ? collective.device() : nullptr;
  if (devices != nullptr) {
    DeviceState& state = *engine.device_state();
    ANTDT_RETURN_IF_ERROR(pass_arrays(collective, *devices, state, pass, passed));
    if (plan.receives) state.replaced();
  } else {
    ANTDT_RETURN_IF_ERROR(pass_parts(collective, pass, engine.state_parts(), passed));
    if (plan.receives) engine.state_replaced();
  }
  return meta;
}

Result<std::uint64_t> hash_of_state(Engine& engine, const worker::HashState& of,
                                    const Hashed& hashed) {
  if (!of.on_device) return state_hash(engine, of.step, hashed);
  return device_state_hash(*engine.device_state(), of.step);
}

Result<SettledHash> settle_differences(Collective& collective, Engine& engine,
                                       const worker::HashState& of, std::uint64_t own,
                                       const Received& received) {
  std::vector<std::uint64_t> hashes(collective.size());
  ANTDT_RETURN_IF_ERROR(collective.allgather(std::as_bytes(std::span(&own, 1)),
                                             std::as_writable_bytes(std::span(hashes))));
  worker::PassState pass;
  pass.plan = worker::settle_plan(hashes, collective.rank(), of.on_device);
  if (!pass.plan.receives && !pass.plan.sends) return SettledHash{own};
  for (const std::size_t size : part_sizes(engine)) pass.all_bytes += size;
  pass.keeps_own = true;
  ANTDT_RETURN_IF_ERROR(pass_state(collective, engine, pass, received));
  if (!pass.plan.receives) return SettledHash{own};
  ANTDT_TRY(const std::uint64_t hash, hash_of_state(engine, of));
  return SettledHash{hash, true};
}

}  // namespace antdt::trainer
