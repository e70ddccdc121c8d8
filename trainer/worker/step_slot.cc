#include "trainer/worker/step_slot.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace antdt::worker {
namespace {

constexpr std::uint32_t kHasData = 1;
constexpr std::uint32_t kLeaving = 2;
constexpr std::uint32_t kAllWell = 4;
constexpr std::uint32_t kWantsHop = 8;
constexpr std::uint32_t kShares = 16;

class Writer {
 public:
  template <class T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_[at_++] = static_cast<std::byte>(value >> (8 * i));
    }
  }
  [[nodiscard]] StepSlotBytes done() const {
    ANTDT_CHECK(at_ == kStepSlotBytes, "a slot of {} bytes", at_);
    return bytes_;
  }

 private:
  StepSlotBytes bytes_{};
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte, kStepSlotBytes> bytes) : bytes_(bytes) {}
  template <class T>
  [[nodiscard]] T get() {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<T>(bytes_[at_++]) << (8 * i);
    }
    return value;
  }

 private:
  std::span<const std::byte, kStepSlotBytes> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

StepSlotBytes encode(const StepSlot& slot) {
  Writer out;
  out.put(slot.place);
  out.put(slot.records);
  out.put(std::bit_cast<std::uint64_t>(slot.weight));
  out.put(std::bit_cast<std::uint64_t>(slot.loss));
  out.put(slot.plan.value);
  out.put(slot.checkpoint);
  out.put((slot.has_data ? kHasData : 0) | (slot.leaving ? kLeaving : 0) |
          (slot.all_well ? kAllWell : 0) | (slot.wants_hop ? kWantsHop : 0) |
          (slot.shares ? kShares : 0));
  static_assert(kStepSlotBytes == 8 + 4 + 8 + 8 + 8 + 8 + 4 + 4 + 7 * 8);
  out.put(slot.asked_us);
  out.put(slot.sent_bytes);
  out.put(slot.dense_bytes);
  out.put(slot.visit.records);
  out.put(slot.visit.own_right);
  out.put(slot.visit.guest_right);
  out.put(std::bit_cast<std::uint64_t>(slot.visit.own_loss));
  out.put(std::bit_cast<std::uint64_t>(slot.visit.guest_loss));
  return out.done();
}

StepSlot decode_step_slot(std::span<const std::byte, kStepSlotBytes> bytes) {
  Reader in(bytes);
  StepSlot slot;
  slot.place = in.get<std::uint64_t>();
  slot.records = in.get<std::uint32_t>();
  slot.weight = std::bit_cast<double>(in.get<std::uint64_t>());
  slot.loss = std::bit_cast<double>(in.get<std::uint64_t>());
  slot.plan = PlanVersion{in.get<std::uint64_t>()};
  slot.checkpoint = in.get<std::uint64_t>();
  const auto flags = in.get<std::uint32_t>();
  slot.has_data = (flags & kHasData) != 0;
  slot.leaving = (flags & kLeaving) != 0;
  slot.all_well = (flags & kAllWell) != 0;
  slot.wants_hop = (flags & kWantsHop) != 0;
  slot.shares = (flags & kShares) != 0;
  slot.asked_us = in.get<std::uint32_t>();
  slot.sent_bytes = in.get<std::uint64_t>();
  slot.dense_bytes = in.get<std::uint64_t>();
  slot.visit.records = in.get<std::uint64_t>();
  slot.visit.own_right = in.get<std::uint64_t>();
  slot.visit.guest_right = in.get<std::uint64_t>();
  slot.visit.own_loss = std::bit_cast<double>(in.get<std::uint64_t>());
  slot.visit.guest_loss = std::bit_cast<double>(in.get<std::uint64_t>());
  return slot;
}

std::vector<StepSlot> decode_step_slots(std::span<const std::byte> gathered) {
  ANTDT_CHECK(gathered.size() % kStepSlotBytes == 0, "slots of {} bytes", gathered.size());
  std::vector<StepSlot> slots;
  slots.reserve(gathered.size() / kStepSlotBytes);
  for (std::size_t at = 0; at < gathered.size(); at += kStepSlotBytes) {
    slots.push_back(decode_step_slot(gathered.subspan(at).first<kStepSlotBytes>()));
  }
  return slots;
}

Agreement agree(std::span<const StepSlot> slots) {
  ANTDT_CHECK(!slots.empty(), "an agreement of no members");
  Agreement result;
  result.plan = slots.front().plan;
  result.checkpoint = slots.front().checkpoint;
  result.measure_hop = true;
  result.shares = slots.front().shares;
  std::uint64_t asked_us = 0;
  for (const StepSlot& slot : slots) {
    result.records += slot.records;
    result.weight += slot.weight;
    result.loss += slot.loss;
    if (slot.plan != slots.front().plan) result.plan = {};
    result.checkpoint = std::min(result.checkpoint, slot.checkpoint);
    result.any_has_data = result.any_has_data || slot.has_data;
    result.any_leaving = result.any_leaving || slot.leaving;
    result.all_well = result.all_well && slot.all_well;
    result.measure_hop = result.measure_hop && slot.wants_hop;
    asked_us += slot.asked_us;
    result.sent_bytes += slot.sent_bytes;
    result.dense_bytes += slot.dense_bytes;
    result.visit += slot.visit;
    result.places.push_back(slot.place);
    result.taken.push_back(slot.records);
  }
  result.asked = std::chrono::microseconds(asked_us / slots.size());
  return result;
}

}  // namespace antdt::worker
