// The speeds of some workers of a fleet, under new numbers: without the workers that are left out,
// or with more workers that are like the ones there.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/fleet/speeds.h"

namespace antdt::fleet {

class SomeWorkers final : public Speeds {
 public:
  // Worker i is worker `which[i]` of `all`, which must live as long as this.
  SomeWorkers(const Speeds& all, std::vector<std::uint32_t> which)
      : all_(all), which_(std::move(which)) {}

  [[nodiscard]] BatchTime at(std::uint32_t worker, double at_s, std::uint64_t step) const override {
    return all_.at(which_[worker], at_s, step);
  }
  [[nodiscard]] double noise(std::uint32_t worker, std::uint64_t batch) const override {
    return all_.noise(which_[worker], batch);
  }
  [[nodiscard]] std::optional<double> step_cost_s(double at_s) const override {
    return all_.step_cost_s(at_s);
  }

 private:
  const Speeds& all_;
  std::vector<std::uint32_t> which_;
};

}  // namespace antdt::fleet
