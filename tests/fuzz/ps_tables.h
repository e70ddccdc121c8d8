// The tables of the model that slices of parameters are fuzzed with.
#pragma once

#include <vector>

#include "trainer/ps/store.h"

namespace antdt::fuzz {

inline constexpr std::uint32_t kSlice = 5;

inline std::vector<ps::TableSpec> ps_tables() {
  ps::TableSpec embedding;
  embedding.name = "embedding";
  embedding.width = 2;
  embedding.rule.kind = ps::UpdateRule::Kind::kAdam;
  ps::TableSpec dense;
  dense.name = "dense";
  dense.width = 4;
  dense.rule.kind = ps::UpdateRule::Kind::kSgd;
  return {embedding, dense};
}

}  // namespace antdt::fuzz
