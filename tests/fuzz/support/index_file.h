// Makes an index file around a description, in which everything that is checked is right.
#pragma once

#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "trainer/data/index/index.h"

namespace antdt::fuzz {

// `words` are the offsets of `records` records, then vocabulary keys; `points` the access points of
// the packed files.
inline std::string index_file(std::string_view words, std::uint64_t records, std::string_view meta,
                              std::string_view points = "") {
  const std::string inside = std::string(words).append(points).append(meta);
  const std::string hash = data::fingerprint_of(inside);
  std::array<std::uint64_t, 5> footer{records, words.size() / 8 - records, points.size(),
                                      meta.size(), 0};
  std::from_chars(hash.data(), hash.data() + hash.size(), footer[4], 16);
  std::string file(data::kIndexMagic);
  file.append(inside);
  file.append(reinterpret_cast<const char*>(footer.data()), sizeof footer);
  return file.append(data::kIndexMagic);
}

}  // namespace antdt::fuzz
