// One client of `antdt bench shards`: a process of its own that commits its last shards and fetches
// the next, as fast as answers come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::bench {

struct ClientOptions {
  std::uint64_t batch = 1;  // shards in each request
  std::uint64_t shard_records = 1;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC: answers from this moment on are counted
  double seconds = 0;         // how long answers are counted
};

struct ClientResult {
  std::uint64_t pairs = 0;
  std::uint64_t shards = 0;
  std::vector<std::uint32_t> latency_us;  // of each counted pair of commit and fetch
};

// Joins as the loose member that the environment names (ANTDT_SOCKET, …).
[[nodiscard]] Result<ClientResult> run_client(const ClientOptions& options);

// A result as lines, which the bench reads back from the client's output.
[[nodiscard]] std::string to_line(const ClientResult& result);
[[nodiscard]] Result<ClientResult> from_line(const std::string& text);

}  // namespace antdt::bench
