#include "shard_server/ledger/stream.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"

namespace antdt::shard_server {

EpochStream::EpochStream(const DataSet& data, Epoch epoch, PhaseKind kind)
    : records_(data.records),
      shard_records_(data.shard_records),
      shuffle_(kind == PhaseKind::kEval ? Shuffle::kNone : data.shuffle),
      epoch_seed_(combine_seed(data.seed, epoch.value)) {
  ANTDT_CHECK(shard_records_ > 0, "a data set with shards of no record");
  const Pins pins = data.pins.first(records_);
  ANTDT_CHECK(pins.empty() || pins.records() == records_, "{} of {} records are pinned",
              pins.records(), records_);
  std::uint64_t first = 0;
  for (const PinnedRun& run : pins.runs) {
    add_run(first, run);
    first += run.records;
  }
  if (pins.empty()) add_run(0, {records_, {}});
  std::uint64_t position = 0;
  for (Section& section : sections_) {
    const std::uint64_t seed = combine_seed(epoch_seed_, 0);
    const DomainNumber domain = section.part.domain;
    order(section, domain.value == 0 ? seed : combine_seed(seed, domain.value));
    const std::uint64_t size = section.part.positions.to;
    section.part.positions = {position, position + size};
    position += size;
  }
}

// Until all runs are known, a section's positions count from 0.
void EpochStream::add_run(std::uint64_t first_record, const PinnedRun& run) {
  auto section = std::ranges::lower_bound(sections_, run.domain, {},
                                          [](const Section& s) { return s.part.domain; });
  if (section == sections_.end() || section->part.domain != run.domain) {
    section = sections_.insert(section, Section{});
    section->part.domain = run.domain;
  }
  section->runs.push_back({first_record, run.records, shards_, section->shards});
  const std::uint64_t shards =
      run.records / shard_records_ + (run.records % shard_records_ != 0 ? 1 : 0);
  section->part.positions.to += run.records;
  section->shards += shards;
  shards_ += shards;
}

void EpochStream::order(Section& section, std::uint64_t seed) {
  section.order = Permutation(section.shards, seed);
  for (const Run& run : section.runs) {
    if (run.records % shard_records_ == 0) continue;
    const std::uint64_t shard = run.in_section + run.records / shard_records_;
    const std::uint64_t slot = shuffle_ == Shuffle::kNone ? shard : section.order.inverse(shard);
    section.short_slots.push_back({slot, shard_records_ - run.records % shard_records_, 0});
  }
  std::ranges::sort(section.short_slots, {}, &ShortSlot::slot);
  std::uint64_t missing = 0;
  for (ShortSlot& is_short : section.short_slots) {
    is_short.missing = missing += is_short.missing;
    is_short.end = (is_short.slot + 1) * shard_records_ - missing;
  }
}

std::vector<EpochStream::Part> EpochStream::parts() const {
  std::vector<Part> parts;
  parts.reserve(sections_.size());
  for (const Section& section : sections_) parts.push_back(section.part);
  return parts;
}

const EpochStream::Section& EpochStream::section_of(std::uint64_t position) const {
  const auto behind = std::ranges::upper_bound(
      sections_, position, {}, [](const Section& s) { return s.part.positions.from; });
  return *std::prev(behind);
}

std::uint64_t EpochStream::slot_begin(const Section& section, std::uint64_t slot) const {
  const auto behind = std::ranges::lower_bound(section.short_slots, slot, {}, &ShortSlot::slot);
  const std::uint64_t missing =
      behind == section.short_slots.begin() ? 0 : std::prev(behind)->missing;
  return section.part.positions.from + slot * shard_records_ - missing;
}

std::uint64_t EpochStream::slot_of(const Section& section, std::uint64_t position) const {
  const std::uint64_t at = position - section.part.positions.from;
  const auto behind = std::ranges::upper_bound(section.short_slots, at, {}, &ShortSlot::end);
  const std::uint64_t missing =
      behind == section.short_slots.begin() ? 0 : std::prev(behind)->missing;
  return (at + missing) / shard_records_;
}

std::uint64_t EpochStream::shard_in(const Section& section, std::uint64_t slot) const {
  return shuffle_ == Shuffle::kNone ? slot : section.order(slot);
}

wire::Piece EpochStream::whole_shard_in(const Section& section, std::uint64_t slot) const {
  const std::uint64_t shard = shard_in(section, slot);
  const Run& run = *std::prev(std::ranges::upper_bound(section.runs, shard, {}, &Run::in_section));
  const std::uint64_t begins = (shard - run.in_section) * shard_records_;  // in the run
  wire::Piece piece;
  piece.shard = run.first_shard + (shard - run.in_section);
  piece.shard_first = run.first_record + begins;
  piece.shard_records = std::min(shard_records_, run.records - begins);
  piece.to = piece.shard_records;
  piece.shuffled = shuffle_ == Shuffle::kFull;
  if (piece.shuffled) piece.order_seed = combine_seed(epoch_seed_, piece.shard + 1);
  return piece;
}

void EpochStream::append_within(const Section& section, Interval interval,
                                std::vector<wire::Piece>& out) const {
  std::uint64_t slot = slot_of(section, interval.from);
  std::uint64_t begin = slot_begin(section, slot);
  for (std::uint64_t position = interval.from; position < interval.to; ++slot) {
    wire::Piece& piece = out.emplace_back(whole_shard_in(section, slot));
    const std::uint64_t end = begin + piece.shard_records;
    piece.from = position - begin;
    piece.to = std::min(end, interval.to) - begin;
    position = begin = end;
  }
}

void EpochStream::append_pieces(Interval interval, std::vector<wire::Piece>& out) const {
  ANTDT_CHECK(interval.from <= interval.to && interval.to <= size(), "[{}, {}) of a stream of {}",
              interval.from, interval.to, size());
  while (!interval.empty()) {
    const Section& section = section_of(interval.from);
    const std::uint64_t to = std::min(interval.to, section.part.positions.to);
    append_within(section, {interval.from, to}, out);
    interval.from = to;
  }
}

std::vector<wire::Piece> EpochStream::pieces(std::uint64_t from, std::uint64_t to) const {
  std::vector<wire::Piece> out;
  append_pieces({from, to}, out);
  return out;
}

std::uint64_t EpochStream::shards_in(Interval interval) const {
  std::uint64_t shards = 0;
  while (!interval.empty()) {
    const Section& section = section_of(interval.from);
    const std::uint64_t to = std::min(interval.to, section.part.positions.to);
    shards += slot_of(section, to - 1) - slot_of(section, interval.from) + 1;
    interval.from = to;
  }
  return shards;
}

std::uint64_t EpochStream::reach(std::uint64_t from, std::uint64_t count) const {
  const Section& section = section_of(from);
  const std::uint64_t slot = slot_of(section, from);
  return slot_begin(section, slot + std::min(count, section.shards - slot));
}

}  // namespace antdt::shard_server
