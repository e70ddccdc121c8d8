// `antdt bench shards`: the speed of the shard service of a real job daemon with its journal, with
// clients that are processes of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::bench {

struct ShardsOptions {
  std::uint32_t clients = 64;
  std::uint64_t batch = 1;  // shards in each request
  double seconds = 5;
  std::uint64_t shards = 1'000'000'000;  // shards in the data set
  bool through_agent = false;            // the clients' messages are relayed by an agent
  bool echo = false;                     // measure a server that does nothing instead: the limit
  std::vector<std::string> set;          // KEY=VALUE: changes of the job, as for antdt run
  std::string directory;  // where the run (and its journal) is made; empty: $TMPDIR or /tmp
};

struct ShardsResult {
  double pairs_per_second = 0;
  double shards_per_second = 0;
  std::uint32_t p50_us = 0;
  std::uint32_t p99_us = 0;
  std::uint64_t jobd_rss_bytes = 0;  // of the job daemon, at the end
};

[[nodiscard]] Result<ShardsResult> bench_shards(const ShardsOptions& options);
[[nodiscard]] std::string to_json(const ShardsOptions& options, const ShardsResult& result);
[[nodiscard]] std::string to_table(const ShardsOptions& options, const ShardsResult& result);

}  // namespace antdt::bench
