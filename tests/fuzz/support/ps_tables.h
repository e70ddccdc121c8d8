// The model and the group of the fuzzed parameter server.
#pragma once

#include <vector>

#include "trainer/ps/rows/store.h"
#include "trainer/ps/server_node.h"

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

inline constexpr Member kPsWorker{{'w', 0}, Attempt{1}};

// The first of two servers, where a step takes the pushes of both workers.
inline ps::node::Start ps_start() {
  ps::node::Start start;
  start.servers = 2;
  start.workers = {kPsWorker, {{'w', 1}, Attempt{1}}};
  return start;
}

}  // namespace antdt::fuzz
