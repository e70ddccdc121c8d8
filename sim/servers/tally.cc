#include "sim/servers/tally.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::sim {

wire::PsOpen tally_tables(SyncStrategy sync) {
  wire::PsOpen open;
  for (const char* const name : {"tally", "centre"}) {
    wire::PsTable& table = open.tables.emplace_back();
    table.name = name;
    table.rule = "sum";
    table.init = "zero";
  }
  if (has_mean(sync)) {
    open.tables[kCentreTable].rule = "mean";
    open.tables[kCentreTable].learning_rate = sync == SyncStrategy::kShadowMa ? 1 : kEta;
  }
  return open;
}

std::vector<std::uint64_t> keys_of(std::vector<Record> records) {
  std::ranges::sort(records);
  std::vector<std::uint64_t> keys;
  for (const Record record : records) {
    for (std::uint64_t i = 0; i < kRowsOfRecord; ++i) keys.push_back(record * kRowsOfRecord + i);
  }
  return keys;
}

const std::vector<std::uint64_t>& centre_keys() {
  static const std::vector<std::uint64_t> kKeys = [] {
    std::vector<std::uint64_t> keys(24);
    std::iota(keys.begin(), keys.end(), 0);
    return keys;
  }();
  return kKeys;
}

namespace {

ps::Store store_of(const PsSlices& slices, bool& whole) {
  // The slices of a table with rule "mean" look the same.
  ps::TableSpec tally, centre;
  tally.name = "tally";
  centre.name = "centre";
  tally.rule.kind = centre.rule.kind = ps::UpdateRule::Kind::kSum;
  ps::Store store({tally, centre}, 0);
  whole = slices.size() == ps::kSlices;
  for (const auto& [slice, image] : slices) {
    whole = whole && ps::decode_slice(store, slice, image).has_value();
  }
  return store;
}

std::uint64_t exchanges_in(const PsSlices& slices) {
  bool whole = false;
  ps::Store store = store_of(slices, whole);
  std::vector<float> rows(centre_keys().size());
  store.read(kCentreTable, centre_keys(), reinterpret_cast<char*>(rows.data()));
  const auto [least, most] = std::ranges::minmax(rows);
  return whole && least == most ? static_cast<std::uint64_t>(std::llround(least)) : kTornCentre;
}

}  // namespace

RowTally row_tally_of(const PsSlices& slices, std::uint64_t records) {
  bool whole = false;
  ps::Store store = store_of(slices, whole);
  std::vector<std::uint64_t> keys(records * kRowsOfRecord);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> rows(keys.size());
  store.read(0, keys, reinterpret_cast<char*>(rows.data()));
  RowTally tally;
  for (std::uint64_t r = 0; r < records; ++r) {
    const float* row = rows.data() + r * kRowsOfRecord;
    const auto [least, most] = std::ranges::minmax({row[0], row[1], row[2]});
    tally.least.push_back(whole ? static_cast<std::uint8_t>(std::lround(least)) : kTorn);
    tally.most.push_back(whole ? static_cast<std::uint8_t>(std::lround(most)) : kTorn);
  }
  return tally;
}

Model tally_of(const PsSlices& slices, std::uint64_t records) {
  const RowTally rows = row_tally_of(slices, records);
  Model model;
  for (std::uint64_t r = 0; r < records; ++r) {
    model.tally.push_back(rows.least[r] == rows.most[r] ? rows.least[r] : kTorn);
  }
  model.exchanges = exchanges_in(slices);
  return model;
}

}  // namespace antdt::sim
