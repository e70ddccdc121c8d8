// Converts values into a model's inputs.
//
// A number gives a dense feature, its log1p (mirrored below zero, 0 if missing), and the id of its
// size class: whole numbers up to 8 have one class each, and above that there are four classes for
// each doubling, so that a linear model can fit curves. A category gives an id. Ids come from
// 64-bit keys, either by hashing all fields into one table (field and key together) or by a
// vocabulary. These functions are part of a model's meaning, so the tests contain golden values.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace antdt::data {

inline constexpr std::uint64_t kMissingKey = 0x8000'0000'0000'0001ULL;

[[nodiscard]] float dense_value(double number);               // NaN: missing
[[nodiscard]] std::uint64_t number_key(double number);        // its size class
[[nodiscard]] std::uint64_t text_key(std::string_view text);  // XXH3

// A vocabulary: for each field, the keys that have an id of their own, rising.
using Vocabulary = std::vector<std::vector<std::uint64_t>>;

// Maps (field, key) to an embedding row.
class IdMap {
 public:
  [[nodiscard]] static IdMap hashing(std::size_t fields, std::uint64_t buckets);
  // Each field has one row for unknown keys, then one for each known key.
  [[nodiscard]] static IdMap vocabulary(const Vocabulary& vocabulary);

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t id(std::size_t field, std::uint64_t key) const;

 private:
  struct Field {
    std::uint64_t salt = 0;
    std::uint64_t base = 0;  // the row of unknown keys
    std::unordered_map<std::uint64_t, std::uint64_t> row_of;
  };
  bool hashes_ = true;
  std::uint64_t rows_ = 0;
  std::vector<Field> fields_;
};

// Counts keys while the index is built.
class VocabularyCounter {
 public:
  explicit VocabularyCounter(std::size_t fields) : counts_(fields) {}
  void add(std::size_t field, std::uint64_t key) { ++counts_[field][key]; }
  [[nodiscard]] Vocabulary finish(std::uint32_t min_count) const;

 private:
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> counts_;
};

}  // namespace antdt::data
