// Measures the ring between processes of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::trainer {

struct AllreduceBenchOptions {
  std::uint32_t ranks = 2;
  std::size_t bytes = 4U << 20U;  // reduced by each call
  Duration duration = std::chrono::seconds(2);
  bool encrypt = false;
};

struct AllreduceBenchResult {
  std::uint32_t ranks = 0;
  std::size_t bytes = 0;
  std::uint64_t calls = 0;
  double algorithm_bytes_per_s = 0;  // bytes / time of a call
  double bus_bytes_per_s = 0;        // that times 2 (ranks-1) / ranks: the load of each link
  double p50_us = 0;
  double p99_us = 0;
  double memcpy_bytes_per_s = 0;  // one thread that copies memory of that size, as the upper bound
  bool encrypted = false;
};

// Forks the ranks, so the caller must have one thread. The numbers are rank 0's.
[[nodiscard]] Result<AllreduceBenchResult> bench_allreduce(const AllreduceBenchOptions& options);

[[nodiscard]] std::string to_json(const AllreduceBenchResult& result);

}  // namespace antdt::trainer
