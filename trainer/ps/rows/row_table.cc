#include "trainer/ps/rows/row_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"

namespace antdt::ps {
namespace {

constexpr std::uint64_t kFirstEntries = 64;
constexpr std::size_t kBlockRows = 256;
constexpr std::size_t kBlockBytes = 65536;  // a block has fewer rows if they would be larger

constexpr std::uint32_t tag_of(std::uint64_t h) { return static_cast<std::uint32_t>(h >> 32); }

}  // namespace

RowTable::Blocks::Blocks(std::uint32_t stride)
    : stride_(stride),
      shift_(static_cast<std::uint32_t>(std::bit_width(
                 std::clamp<std::size_t>(kBlockBytes / (stride * sizeof(float)), 1, kBlockRows))) -
             1),
      mask_((1U << shift_) - 1) {}

RowTable::Blocks::~Blocks() {
  for (float* const block : at_) memory_.deallocate(block, floats());
}

void RowTable::Blocks::add() {
  at_.push_back(nullptr);
  at_.back() = memory_.allocate(floats());
  std::fill_n(at_.back(), floats(), 0.0F);
}

RowTable::RowTable(std::uint32_t width, std::uint32_t state)
    : width_(width),
      state_(state),
      blocks_((width + state + 3) & ~1U),  // an even number keeps every key aligned
      mask_(kFirstEntries - 1),
      index_(kFirstEntries) {}

std::uint64_t RowTable::bytes() const { return blocks_.bytes() + index_.size() * sizeof(Entry); }

std::uint64_t RowTable::key(std::uint32_t row) const {
  std::uint64_t key = 0;
  std::memcpy(&key, floats(row) - 2, sizeof(key));
  return key;
}

std::uint32_t RowTable::find(std::uint64_t key, std::uint64_t h) const {
  for (std::uint64_t at = h & mask_;; at = (at + 1) & mask_) {
    const Entry& entry = index_[at];
    if (entry.row == kNone) return kNone;
    if (entry.tag == tag_of(h) && this->key(entry.row) == key) return entry.row;
  }
}

void RowTable::prefetch_row(std::uint64_t h) const {
  for (std::uint64_t at = h & mask_;; at = (at + 1) & mask_) {
    const Entry& entry = index_[at];
    if (entry.row == kNone) return;
    if (entry.tag != tag_of(h)) continue;
    const float* row = floats(entry.row) - 2;
    __builtin_prefetch(row);
    __builtin_prefetch(row + 16);
    return;
  }
}

std::uint32_t RowTable::add(std::uint64_t key, std::uint64_t h) {
  ANTDT_CHECK(count_ < kNone, "a table of 2^32 rows in one slice");
  if ((count_ + 1) * 10ULL > index_.size() * 7ULL) grow();
  const std::uint32_t row = count_++;
  if (row == blocks_.rows()) blocks_.add();
  std::memcpy(floats(row) - 2, &key, sizeof(key));
  std::uint64_t at = h & mask_;
  while (index_[at].row != kNone) at = (at + 1) & mask_;
  index_[at] = {row, tag_of(h)};
  return row;
}

void RowTable::grow() {
  std::pmr::vector<Entry> bigger(index_.size() * 2, index_.get_allocator());
  mask_ = bigger.size() - 1;
  for (std::uint32_t row = 0; row < count_; ++row) {
    const std::uint64_t h = hash(key(row));
    std::uint64_t at = h & mask_;
    while (bigger[at].row != kNone) at = (at + 1) & mask_;
    bigger[at] = {row, tag_of(h)};
  }
  index_ = std::move(bigger);
}

}  // namespace antdt::ps
