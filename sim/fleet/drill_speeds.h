// The speeds of a job file: [emulated] says how long devices take, [[inject]] how they
// are slowed down (core/drill). A fleet larger than the job's repeats its workers in
// their order; each copy has chances of its own.
#pragma once

#include <vector>

#include "core/drill/emulation.h"
#include "core/drill/injection.h"
#include "core/result.h"
#include "sim/fleet/speeds.h"

namespace antdt::fleet {

class DrillSpeeds final : public Speeds {
 public:
  // `workers` of the job file, `fleet` of the simulation; `hosts` by worker of the
  // fleet. The error (kUsage): a worker has no device.
  [[nodiscard]] static Result<DrillSpeeds> make(drill::Emulation emulation,
                                                const std::vector<drill::Rule>& rules,
                                                const drill::Traces& traces, std::uint32_t workers,
                                                const std::vector<std::string>& hosts,
                                                std::uint64_t seed);

  [[nodiscard]] BatchTime at(std::uint32_t worker, double at_s, std::uint64_t step) const override;
  [[nodiscard]] double noise(std::uint32_t worker, std::uint64_t batch) const override;

 private:
  struct Worker {
    BatchTime undisturbed;
    drill::Injection injection;
  };
  DrillSpeeds(drill::Emulation emulation, std::uint64_t seed)
      : emulation_(std::move(emulation)), seed_(seed) {}

  drill::Emulation emulation_;
  std::uint64_t seed_;
  std::vector<Worker> workers_;
};

}  // namespace antdt::fleet
