// A shared step of a training phase (trainer/worker/sharing).
#include <algorithm>
#include <utility>

#include "core/check.h"
#include "trainer/worker/habits.h"
#include "trainer/worker/member/train_phase.h"

namespace antdt::worker {
namespace {

std::uint32_t clamped_us(Duration d) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(us, 0, UINT32_MAX));
}

}  // namespace

sharing::ShareSeat& TrainPhase::seat() { return member_.sharing->seat; }

// To: taking part; or asking, without a part of its own.
void TrainPhase::begin_shared_step(MonoTime now, Effects& out) {
  const std::uint32_t records = member_.training.share.samples();
  if (records == 0) return offer_part(now, out);
  state_ = State::kTakingPart;
  out.emplace_back(SpendTime{TimeUse::kData});
  out.emplace_back(TakePart{records, kDataPatience});
}

// From: taking part. To: computing; or asking, if there were no records.
TrainPhase::End TrainPhase::on(const PartTaken& input, MonoTime now, Effects& out) {
  expect(State::kTakingPart);
  own_.times.data += input.data;
  own_.slot.has_data = input.status == client::TakeStatus::kData;
  own_.slot.records = own_.slot.has_data ? input.records : 0;
  offer_part(now, out);
  return {};
}

void TrainPhase::offer_part(MonoTime now, Effects& out) {
  const Share& share = member_.training.share;
  out.emplace_back(
      OfferPart{seat().begin(member_.training.step, own_.slot.records, share.micro_batch)});
  compute_run(seat().first_run(), now, out);
}

// To: computing; else asking, or reducing if nothing is left.
void TrainPhase::compute_run(const sharing::Run& run, MonoTime now, Effects& out) {
  if (run.records() > 0) {
    run_ = run;
    state_ = State::kComputing;
    out.emplace_back(ComputeRun{member_.training.step, run});
    return;
  }
  const auto ask = seat().ready();
  if (!ask) return reduce(now, out);
  state_ = State::kAsking;
  began_ = now;
  out.emplace_back(SpendTime{TimeUse::kCollectiveWait});
  out.emplace_back(AskForRun{*ask});
}

// From: computing. To: asking; reducing, if nothing is left.
TrainPhase::End TrainPhase::run_computed(const MicroBatchComputed& input, MonoTime now,
                                         Effects& out) {
  own_.times.data += input.data;
  own_.times.compute += input.compute;
  own_.slot.weight += input.weight;
  own_.slot.loss += input.loss;
  own_.computed += input.records;
  if (run_.owner == seat().offer().member) {
    tell_skips(place_ + run_.from, input.skipped, out);
  } else {
    own_.of_others += input.records;
  }
  compute_run({}, now, out);
  return {};
}

// From: asking. To: computing; reducing, if nothing is left.
TrainPhase::End TrainPhase::on(const RunAnswered& input, MonoTime now, Effects& out) {
  expect(State::kAsking);
  const auto run = seat().hear(input.answer);
  ANTDT_CHECK(run.has_value(), "phase {} at {}: an answer to another ask", start_.phase,
              member_.training.step);
  own_.asked += now - began_;
  own_.times.wait += now - began_;
  compute_run(*run, now, out);
  return {};
}

// ---------------------------------------------------------- whether steps are shared

// Of rank 0 it counts: what kind the next step is.
void TrainPhase::say_kind() {
  if (!member_.sharing) return;
  own_.slot.shares = member_.sharing->trial.shares();
  own_.slot.asked_us = clamped_us(own_.asked);
}

// What steps of either kind take decides whether members go on sharing them.
void TrainPhase::compare_kinds(MonoTime now) {
  const Duration took = now - std::exchange(concluded_, now);
  const bool undisturbed = std::exchange(undisturbed_, true);
  if (!member_.sharing) return;
  SharingState& sharing = *member_.sharing;
  sharing.shares = agreed_.shares;
  const bool whole = own_.slot.records >= member_.training.share.samples() && !own_.empty;
  if (member_.rank != 0 || !undisturbed || plan_changed_ || !whole) return;
  sharing.trial.concluded({own_.shared, took, agreed_.asked});
}

// What a trial of steps of both kinds has found.
std::optional<wire::StepKinds> TrainPhase::compared_kinds() const {
  if (!member_.sharing || !member_.sharing->trial.newest()) return {};
  const sharing::Choice& choice = *member_.sharing->trial.newest();
  return wire::StepKinds{choice.shares, clamped_us(choice.shared), clamped_us(choice.alone)};
}

}  // namespace antdt::worker
