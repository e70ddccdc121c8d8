// How far a worker of parameter servers is in a training phase, as reported to the ledger and the
// job: its place, the sums over what is applied, and how many records it holds.
#pragma once

#include <cstdint>
#include <utility>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/training_messages.h"
#include "trainer/worker/hold.h"
#include "trainer/worker/servers/ps_effects.h"
#include "trainer/worker/servers/ps_state.h"

namespace antdt::worker::ps_worker {

class PhaseAccount {
 public:
  PhaseAccount(const PsState& worker, std::uint64_t phase) : worker_(worker), phase_(phase) {}

  void begin(MonoTime now, Effects& out) {
    out.emplace_back(Send{client::SetHold{hold_.begin(worker_.share.samples(), now)}});
  }
  // The share of this worker has changed.
  void take_up_share(MonoTime now, Effects& out) {
    out.emplace_back(Send{client::SetHold{hold_.set(place_, worker_.share.samples(), now)}});
  }
  // The next batch is applied, or had nothing to apply.
  void conclude(const client::BatchTimes& times, double loss, double weight, MonoTime now,
                Effects& out) {
    place_ += times.samples;
    loss_sum_ += loss;
    weight_sum_ += weight;
    out.emplace_back(Send{client::Commit{place_, {}}});
    out.emplace_back(Send{times});
    send_progress(false, out);
    const auto hold = hold_.update(place_, worker_.share.samples(), now);
    if (hold) out.emplace_back(Send{client::SetHold{*hold}});
  }
  void send_progress(bool done, Effects& out) const {
    wire::Progress progress;
    progress.phase = phase_;
    progress.step = Step{worker_.version};
    progress.place = place_;
    progress.samples = place_;
    progress.loss_sum = loss_sum_;
    progress.weight_sum = weight_sum_;
    progress.plan = worker_.share.version;
    progress.done = done;
    out.emplace_back(Send{std::move(progress)});
  }
  // How many records of this worker are applied.
  [[nodiscard]] std::uint64_t place() const { return place_; }

 private:
  const PsState& worker_;
  const std::uint64_t phase_;
  std::uint64_t place_ = 0;
  double loss_sum_ = 0, weight_sum_ = 0;
  Hold hold_;
};

}  // namespace antdt::worker::ps_worker
