#include "trainer/worker/eval_phase.h"

#include <utility>

#include "trainer/worker/habits.h"
#include "trainer/worker/servers/ps_effects.h"

namespace antdt::worker {
namespace {

// How many batches are held: enough that the next pieces arrive while these are computed, few
// enough that the members end together.
constexpr std::uint64_t kHoldBatches = 4;

}  // namespace

EvalPhase::EvalPhase(const Heard& heard, wire::PhaseStart start, std::uint32_t batch)
    : heard_(heard), start_(std::move(start)), batch_(batch) {}

// From: nothing. To: evaluating.
template <class Out>
EvalPhase::End EvalPhase::begin(Out& out) {
  out.emplace_back(Send{client::BeginPhase{start_.phase}});
  out.emplace_back(StartReading{Data::kEval});
  out.emplace_back(Send{client::SetHold{kHoldBatches * batch_}});
  return next(TimeUse::kData, out);
}

// From: evaluating. To: evaluating; ended, if that was the last batch or the phase must end.
template <class Out>
EvalPhase::End EvalPhase::on(BatchEvaluated input, Out& out) {
  switch (input.status) {
    case client::TakeStatus::kEnd:
      return PhaseEnd::kDone;
    case client::TakeStatus::kWait:
      return next(TimeUse::kShardWait, out);
    case client::TakeStatus::kData:
      place_ += input.records;
      out.emplace_back(Send{client::Commit{place_, std::move(input.partial)}});
      break;
  }
  return next(TimeUse::kData, out);
}

template <class Out>
EvalPhase::End EvalPhase::next(TimeUse waiting, Out& out) {
  if (heard_.over) return PhaseEnd::kOver;
  if (heard_.wants_to_leave()) return PhaseEnd::kLeave;
  if (heard_.job.regroup) return PhaseEnd::kOver;
  out.emplace_back(SpendTime{waiting});
  out.emplace_back(EvaluateBatch{batch_, kDataPatience});
  return {};
}

template EvalPhase::End EvalPhase::begin(Effects&);
template EvalPhase::End EvalPhase::begin(ps_worker::Effects&);
template EvalPhase::End EvalPhase::on(BatchEvaluated, Effects&);
template EvalPhase::End EvalPhase::on(BatchEvaluated, ps_worker::Effects&);

}  // namespace antdt::worker
