// Emulated devices of different speeds ([emulated] in job.toml): how long each takes for a
// micro-batch, and how much fits its memory. Pure. The emulated model waits for that time, and the
// simulation computes with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"

namespace antdt::drill {

// A class of devices whose time is constant for small micro-batches, then linear.
struct Device {
  std::string name;                  // of the class
  std::vector<std::string> workers;  // ids; empty: all workers that no other class names
  Duration flat{};
  std::uint32_t flat_until = 0;  // in samples
  Duration per_sample{};
  std::uint32_t memory = 0;  // samples of a micro-batch that fit; 0: any number

  // The time of a micro-batch of `samples` samples, without noise.
  [[nodiscard]] Duration time(std::uint64_t samples) const {
    const std::uint64_t more = samples > flat_until ? samples - flat_until : 0;
    return flat + per_sample * static_cast<std::int64_t>(more);
  }
  [[nodiscard]] bool fits(std::uint64_t samples) const { return memory == 0 || samples <= memory; }

  bool operator==(const Device&) const = default;
};

struct Emulation {
  double noise = 0;              // relative standard deviation of a micro-batch's time
  std::uint32_t parameters = 1;  // floats that are summed over the workers in each step
  std::vector<Device> devices;

  // The class that names the worker, else the first without names; null if there is none.
  [[nodiscard]] const Device* device_of(WorkerId worker) const;
  // The factor for the time of this worker's n-th micro-batch: 1 on average, never less than a
  // fifth.
  [[nodiscard]] double noise_of(std::uint64_t seed, WorkerId worker, std::uint64_t n) const;
};

}  // namespace antdt::drill
