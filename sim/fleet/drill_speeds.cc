#include "sim/fleet/drill_speeds.h"

#include "core/permutation.h"

namespace antdt::fleet {

Result<DrillSpeeds> DrillSpeeds::make(drill::Emulation emulation,
                                      const std::vector<drill::Rule>& rules,
                                      const drill::Traces& traces, std::uint32_t workers,
                                      const std::vector<std::string>& hosts, std::uint64_t seed) {
  DrillSpeeds speeds(std::move(emulation), seed);
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    const WorkerId model{'w', i % workers};
    const drill::Device* device = speeds.emulation_.device_of(model);
    if (device == nullptr) {
      return fail(ErrorKind::kUsage,
                  "[emulated] gives {} no device: how fast it is cannot be simulated; add an "
                  "[[emulated.device]] that names it, or one without workers for all others",
                  model);
    }
    BatchTime time;
    time.flat_s = to_seconds(device->flat);
    time.flat_until = device->flat_until;
    time.per_sample_s = to_seconds(device->per_sample);
    time.memory = device->memory;
    const std::uint64_t copy = i / workers;
    speeds.workers_.push_back(
        {time, drill::Injection(rules, {model, hosts[i], Attempt{1}},
                                copy == 0 ? seed : combine_seed(seed, copy), traces)});
  }
  return speeds;
}

// A rule's effect is linear in the time and in the samples of a batch, so three questions determine
// it.
BatchTime DrillSpeeds::at(std::uint32_t worker, double at_s, std::uint64_t step) const {
  const Worker& w = workers_[worker];
  if (w.injection.empty()) return w.undisturbed;
  constexpr std::uint64_t kSamples = 1000;
  const Duration took = std::chrono::seconds(1);
  const Duration began = from_seconds(at_s);
  const auto added = [&](Duration batch, std::uint64_t samples) {
    return to_seconds(w.injection.delay({began, batch, step, samples}));
  };
  BatchTime time = w.undisturbed;
  const double nothing = added({}, 0);
  time.slowdown = added(took, 0) + to_seconds(took) - nothing;
  time.delay_s = nothing / time.slowdown;
  time.delay_per_sample_s =
      (added({}, kSamples) - nothing) / static_cast<double>(kSamples) / time.slowdown;
  return time;
}

double DrillSpeeds::noise(std::uint32_t worker, std::uint64_t batch) const {
  return emulation_.noise_of(seed_, {'w', worker}, batch);
}

}  // namespace antdt::fleet
