#include "trainer/torch/batch_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {
namespace {

constexpr std::uint32_t kEmpty = 0xffffffff;
constexpr int kDigitBits = 11;  // the counters of a pass fit in the first-level cache
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// Sorts stably by the digit at `shift`.
void sort_by_digit(std::span<const std::uint64_t> from, std::span<std::uint64_t> to, int shift) {
  std::array<std::uint32_t, kDigits> next{};
  const auto digit = [&](std::uint64_t key) { return (key >> shift) & (kDigits - 1); };
  for (const std::uint64_t key : from) ++next[digit(key)];
  std::uint32_t before = 0;
  for (std::uint32_t& place : next) before += std::exchange(place, before);
  for (const std::uint64_t key : from) to[next[digit(key)]++] = key;
}

}  // namespace

std::vector<std::uint64_t> unique_keys(std::span<const std::int64_t> ids) {
  ANTDT_CHECK(ids.size() < kEmpty, "a batch of {} ids", ids.size());
  std::vector<std::uint64_t> keys(ids.begin(), ids.end());
  const std::uint64_t highest = keys.empty() ? 0 : *std::ranges::max_element(keys);
  std::vector<std::uint64_t> other(keys.size());
  const auto bits = static_cast<int>(std::bit_width(highest));
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    sort_by_digit(keys, other, shift);
    keys.swap(other);
  }
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

std::size_t KeyPositions::first_slot(std::uint64_t key) const {
  // Knuth's multiplicative hashing: the golden ratio spreads neighbours.
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
}

void KeyPositions::insert(std::span<const std::uint64_t> keys) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * keys.size(), 2));
  shift_ = 64 - std::countr_zero(slots);
  slots_.assign(slots, kEmpty);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::size_t slot = first_slot(keys[i]);
    while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<std::uint32_t>(i);
  }
}

Status KeyPositions::find(std::span<const std::uint64_t> keys, std::span<const std::int64_t> ids,
                          std::vector<std::int64_t>& positions) {
  insert(keys);
  positions.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto key = static_cast<std::uint64_t>(ids[i]);
    std::size_t slot = first_slot(key);
    while (slots_[slot] != kEmpty && keys[slots_[slot]] != key) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (slots_[slot] == kEmpty) {
      return fail(ErrorKind::kInternal, "id {} has no row among those of its batch", ids[i]);
    }
    positions[i] = slots_[slot];
  }
  return {};
}

}  // namespace antdt::trainer
