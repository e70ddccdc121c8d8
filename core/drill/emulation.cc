#include "core/drill/emulation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/permutation.h"

namespace antdt::drill {

const Device* Emulation::device_of(WorkerId worker) const {
  const std::string id = to_string(worker);
  const auto named = std::ranges::find_if(devices, [&](const Device& d) {
    return std::ranges::find(d.workers, id) != d.workers.end();
  });
  if (named != devices.end()) return &*named;
  const auto rest =
      std::ranges::find_if(devices, &std::vector<std::string>::empty, &Device::workers);
  return rest == devices.end() ? nullptr : &*rest;
}

// A normal deviate by the method of Box and Muller.
double Emulation::noise_of(std::uint64_t seed, WorkerId worker, std::uint64_t n) const {
  if (noise <= 0) return 1;
  const std::uint64_t mine =
      combine_seed(combine_seed(seed, static_cast<unsigned char>(worker.role)), worker.index);
  const std::uint64_t bits = combine_seed(mine, n);
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(mix64(bits) >> 11) * 0x1p-53;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return std::max(0.2, 1 + noise * normal);
}

}  // namespace antdt::drill
