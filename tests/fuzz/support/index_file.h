// Makes an index file around a description, in which everything that is checked is right.
#pragma once

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "trainer/data/index/index.h"

namespace antdt::fuzz {

// `words` are the offsets of `records` records, then vocabulary keys.
inline std::string index_file(std::string_view words, std::uint64_t records,
                              std::string_view meta) {
  const std::string hash = data::fingerprint_of(meta);
  std::array<std::uint64_t, 4> footer{records, words.size() / 8 - records, meta.size(), 0};
  std::from_chars(hash.data(), hash.data() + hash.size(), footer[3], 16);
  std::string file(data::kIndexMagic);
  file.append(words).append(meta);
  file.append(reinterpret_cast<const char*>(footer.data()), sizeof footer);
  return file.append(data::kIndexMagic);
}

}  // namespace antdt::fuzz
