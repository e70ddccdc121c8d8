#include "shard_server/ledger/stream.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::shard_server {
namespace {

std::uint64_t shards_of(const DataSet& data) {
  const std::uint64_t size = std::max<std::uint64_t>(data.shard_records, 1);
  return data.records / size + (data.records % size != 0);
}

}  // namespace

EpochStream::EpochStream(const DataSet& data, Epoch epoch, PhaseKind kind)
    : data_(data),
      shards_(shards_of(data)),
      missing_(shards_ * data.shard_records - data.records),
      epoch_seed_(combine_seed(data.seed, epoch.value)),
      order_(shards_, combine_seed(epoch_seed_, 0)) {
  ANTDT_CHECK(data.shard_records > 0, "a data set with shards of no record");
  if (kind == PhaseKind::kEval) data_.shuffle = Shuffle::kNone;
  if (shards_ == 0) {
    short_slot_ = 0;
  } else {
    short_slot_ = data_.shuffle == Shuffle::kNone ? shards_ - 1 : order_.inverse(shards_ - 1);
  }
}

std::uint64_t EpochStream::slot_begin(std::uint64_t slot) const {
  return slot * data_.shard_records - (slot > short_slot_ ? missing_ : 0);
}

std::uint64_t EpochStream::slot_of(std::uint64_t position) const {
  const std::uint64_t behind_short = slot_begin(short_slot_ + 1);
  return (position < behind_short ? position : position + missing_) / data_.shard_records;
}

wire::Piece EpochStream::whole_shard_in(std::uint64_t slot) const {
  wire::Piece piece;
  piece.shard = data_.shuffle == Shuffle::kNone ? slot : order_(slot);
  piece.shard_first = piece.shard * data_.shard_records;
  piece.shard_records = std::min(data_.shard_records, data_.records - piece.shard_first);
  piece.to = piece.shard_records;
  piece.shuffled = data_.shuffle == Shuffle::kFull;
  if (piece.shuffled) piece.order_seed = combine_seed(epoch_seed_, piece.shard + 1);
  return piece;
}

void EpochStream::append_pieces(Interval interval, std::vector<wire::Piece>& out) const {
  ANTDT_CHECK(interval.from <= interval.to && interval.to <= size(), "[{}, {}) of a stream of {}",
              interval.from, interval.to, size());
  if (interval.empty()) return;
  std::uint64_t slot = slot_of(interval.from);
  std::uint64_t begin = slot_begin(slot);
  for (std::uint64_t position = interval.from; position < interval.to; ++slot) {
    wire::Piece& piece = out.emplace_back(whole_shard_in(slot));
    const std::uint64_t end = begin + piece.shard_records;
    piece.from = position - begin;
    piece.to = std::min(end, interval.to) - begin;
    position = begin = end;
  }
}

std::vector<wire::Piece> EpochStream::pieces(std::uint64_t from, std::uint64_t to) const {
  std::vector<wire::Piece> out;
  append_pieces({from, to}, out);
  return out;
}

std::uint64_t EpochStream::shards_in(Interval interval) const {
  return interval.empty() ? 0 : slot_of(interval.to - 1) - slot_of(interval.from) + 1;
}

std::uint64_t EpochStream::reach(std::uint64_t from, std::uint64_t count) const {
  const std::uint64_t slot = slot_of(from);
  return slot_begin(slot + std::min(count, shards_ - slot));
}

}  // namespace antdt::shard_server
