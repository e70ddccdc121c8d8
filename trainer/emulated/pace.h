// Makes each micro-batch take as long as on the emulated device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/clock.h"
#include "core/drill/emulation.h"
#include "core/ids.h"
#include "core/result.h"
#include "trainer/data/dataset.h"

namespace antdt::trainer {

class Pace {
 public:
  using Wait = std::function<void(MonoTime)>;  // returns at that time
  // kUsage if the emulation has no device for `worker`.
  [[nodiscard]] static Result<Pace> of(const drill::Emulation& emulation, WorkerId worker,
                                       std::uint64_t seed, const Clock& clock, Wait wait);

  // An error if `samples` do not fit the device. It uses the words of real devices' programs, so
  // that the worker's end is classed like theirs.
  [[nodiscard]] Status check(std::uint64_t samples) const;
  // Waits until the device would be done with a micro-batch that began at `began`. The wait is
  // until that moment, so it includes what was done since.
  void finish(MonoTime began, std::uint64_t samples);

  [[nodiscard]] MonoTime now() const { return clock_->now(); }

 private:
  Pace(drill::Emulation emulation, drill::Device device, WorkerId worker, std::uint64_t seed,
       const Clock& clock, Wait wait);

  drill::Emulation emulation_;
  drill::Device device_;
  WorkerId worker_;
  std::uint64_t seed_;
  const Clock* clock_;
  Wait wait_;
  std::uint64_t done_ = 0;  // number of micro-batches
};

// Waits by sleeping, as precisely as the system can.
[[nodiscard]] Pace::Wait sleeping();

// Folds the data onto `parameters` records: record r becomes r modulo `parameters`.
[[nodiscard]] data::DataShape folded(data::DataShape shape, std::uint32_t parameters);
void fold(const data::Examples& batch, std::uint32_t parameters, data::Examples& out);

}  // namespace antdt::trainer
