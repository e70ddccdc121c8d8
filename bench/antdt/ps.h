// `antdt bench ps`: the speed of parameter servers, with servers and workers that are processes of
// their own.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "core/sync_strategy.h"

namespace antdt::bench {

struct PsOptions {
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::uint64_t keys = 10'000;     // keys drawn for a batch; repeated ones count once
  std::uint64_t rows = 1'000'000;  // rows in the table
  std::uint32_t dim = 16;          // floats in each row
  std::string rule = "adagrad";
  SyncStrategy sync = SyncStrategy::kPsAsp;
  bool pull_only = false;
  bool pin = false;  // each server gets a core of its own
  double seconds = 5;
  // For one process of the bench:
  std::string directory;  // folder of the sockets
  std::uint32_t index = 0;
  std::int64_t start_ns = 0;
};

struct PsResult {
  double pulled_per_second = 0;  // rows a second
  double pushed_per_second = 0;
  std::uint32_t p50_us = 0;  // latency of a pull
  std::uint32_t p99_us = 0;
};

[[nodiscard]] Result<PsResult> bench_ps(const PsOptions& options);
[[nodiscard]] std::string to_json(const PsOptions& options, const PsResult& result);
[[nodiscard]] std::string to_table(const PsOptions& options, const PsResult& result);

// The bench's processes.
[[nodiscard]] Status run_ps_server(const PsOptions& options);
[[nodiscard]] Result<std::string> run_ps_worker(const PsOptions& options);  // a line of JSON

}  // namespace antdt::bench
