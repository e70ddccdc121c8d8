#include "trainer/emulated/pace.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace antdt::trainer {

Result<Pace> Pace::of(const drill::Emulation& emulation, WorkerId worker, std::uint64_t seed,
                      const Clock& clock, Wait wait) {
  const drill::Device* device = emulation.device_of(worker);
  if (device != nullptr) return Pace(emulation, *device, worker, seed, clock, std::move(wait));
  return fail(ErrorKind::kUsage,
              "no [[emulated.device]] is for worker {}: name it in one's workers, or add one "
              "without workers",
              worker);
}

Pace::Pace(drill::Emulation emulation, drill::Device device, WorkerId worker, std::uint64_t seed,
           const Clock& clock, Wait wait)
    : emulation_(std::move(emulation)),
      device_(std::move(device)),
      worker_(worker),
      seed_(seed),
      clock_(&clock),
      wait_(std::move(wait)) {}

Status Pace::check(std::uint64_t samples) const {
  if (device_.fits(samples)) return {};
  return fail(ErrorKind::kInternal,
              "the emulated device is out of memory: a micro-batch has {} samples, and class '{}' "
              "holds no more than {}; bound it with batch.max, or let it accumulate",
              samples, device_.name, device_.memory);
}

void Pace::finish(MonoTime began, std::uint64_t samples) {
  const double noise = emulation_.noise_of(seed_, worker_, done_++);
  wait_(began + from_seconds(to_seconds(device_.time(samples)) * noise));
}

// By default the kernel lets a thread sleep up to 50 us longer.
Pace::Wait sleeping() {
  return [told = false](MonoTime until) mutable {
    if (!told) prctl(PR_SET_TIMERSLACK, 1UL);
    told = true;
    std::this_thread::sleep_until(until);
  };
}

data::DataShape folded(data::DataShape shape, std::uint32_t parameters) {
  if (shape.id_rows > 0) shape.id_rows = parameters;
  return shape;
}

void fold(const data::Examples& batch, std::uint32_t parameters, data::Examples& out) {
  out.count = batch.count;
  out.ids = batch.ids;
  for (std::int64_t& id : out.ids) id %= parameters;
}

}  // namespace antdt::trainer
