#include "trainer/data/formats/features.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/permutation.h"

namespace antdt::data {
namespace {

__extension__ using Wide = unsigned __int128;

// log1p of the whole numbers below its size: most numbers of clicks are counts, and small.
using SmallLogarithms = std::array<float, 1024>;
SmallLogarithms small_logarithms() {
  SmallLogarithms of{};
  for (std::size_t i = 0; i < of.size(); ++i) of[i] = std::log1p(static_cast<float>(i));
  return of;
}

float log1p_of(double magnitude) {
  static const SmallLogarithms kSmall = small_logarithms();
  if (magnitude < static_cast<double>(kSmall.size())) {
    const auto whole = static_cast<std::size_t>(magnitude);
    if (static_cast<double>(whole) == magnitude) return kSmall[whole];
  }
  return std::log1p(static_cast<float>(magnitude));
}

}  // namespace

float dense_value(double number) {
  if (std::isnan(number)) return 0;
  const float magnitude = log1p_of(std::fabs(number));
  return number < 0 ? -magnitude : magnitude;
}

std::uint64_t number_key(double number) {
  if (std::isnan(number)) return kMissingKey;
  if (number == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(number), &exponent);  // [0.5, 1)
  const auto quarter = static_cast<std::int64_t>((mantissa - 0.5) * 8);
  const std::int64_t size_class = (static_cast<std::int64_t>(exponent) + 2048) * 4 + quarter;
  return static_cast<std::uint64_t>(size_class) * 2 + (number < 0 ? 1 : 0);
}

std::uint64_t text_key(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

IdMap IdMap::hashing(std::size_t fields, std::uint64_t buckets) {
  IdMap map;
  map.rows_ = buckets;
  map.fields_.resize(fields);
  for (std::size_t i = 0; i < fields; ++i) map.fields_[i].salt = mix64(i + 1);
  return map;
}

IdMap IdMap::vocabulary(const Vocabulary& vocabulary) {
  IdMap map;
  map.hashes_ = false;
  for (const std::vector<std::uint64_t>& keys : vocabulary) {
    Field& field = map.fields_.emplace_back();
    field.base = map.rows_++;
    field.row_of.reserve(keys.size());
    for (const std::uint64_t key : keys) field.row_of.emplace(key, map.rows_++);
  }
  return map;
}

std::int64_t IdMap::id(std::size_t field, std::uint64_t key) const {
  const Field& f = fields_[field];
  if (hashes_) {
    // The high half of hash x rows is as uniform as a remainder, without a division.
    const auto product = static_cast<Wide>(mix64(key ^ f.salt)) * rows_;
    return static_cast<std::int64_t>(product >> 64);
  }
  const auto found = f.row_of.find(key);
  return static_cast<std::int64_t>(found == f.row_of.end() ? f.base : found->second);
}

Vocabulary VocabularyCounter::finish(std::uint32_t min_count) const {
  Vocabulary vocabulary(counts_.size());
  for (std::size_t field = 0; field < counts_.size(); ++field) {
    for (const auto& [key, count] : counts_[field]) {
      if (count >= min_count) vocabulary[field].push_back(key);
    }
    std::sort(vocabulary[field].begin(), vocabulary[field].end());
  }
  return vocabulary;
}

}  // namespace antdt::data
