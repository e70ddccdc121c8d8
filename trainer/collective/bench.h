// Measures the all-reduce between processes of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/options.h"

namespace antdt::trainer {

struct AllreduceBenchOptions {
  std::uint32_t ranks = 2;
  std::size_t bytes = 4U << 20U;  // reduced by each call
  Duration duration = std::chrono::seconds(2);
  bool encrypt = false;
  Backend backend = Backend::kTcp;
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
  // What all ranks together take to copy the bytes that an all-reduce must move: each copies
  // 2 (ranks-1) / ranks of the size, all at once on the same CPUs. Median.
  double copies_us = 0;
  bool encrypted = false;
  Backend backend = Backend::kTcp;
};

// Forks the ranks, so the caller must have one thread. The numbers are rank 0's.
[[nodiscard]] Result<AllreduceBenchResult> bench_allreduce(const AllreduceBenchOptions& options);

[[nodiscard]] std::string to_json(const AllreduceBenchResult& result);

}  // namespace antdt::trainer
