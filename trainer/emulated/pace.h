// How long an emulated device takes for each micro-batch.
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
  using Wait = std::function<void(MonoTime)>;  // returns then
  // kUsage: the emulation has no device for `worker`.
  [[nodiscard]] static Result<Pace> of(const drill::Emulation& emulation, WorkerId worker,
                                       std::uint64_t seed, const Clock& clock, Wait wait);

  // An error where `samples` are more than fit the device. It says what the programs
  // of real devices say, so that the worker's end is classed as theirs.
  [[nodiscard]] Status check(std::uint64_t samples) const;
  // Waits until the device would be done with a micro-batch that began at `began`. To
  // a moment, not for a time: what else was done since is part of it.
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
  std::uint64_t done_ = 0;  // micro-batches
};

// Of a thread, so precisely as the system can.
[[nodiscard]] Pace::Wait sleeping();

// The shape of `parameters` records, and a batch of theirs: record r becomes
// r modulo `parameters`.
[[nodiscard]] data::DataShape folded(data::DataShape shape, std::uint32_t parameters);
void fold(const data::Examples& batch, std::uint32_t parameters, data::Examples& out);

}  // namespace antdt::trainer
