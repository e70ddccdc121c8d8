#include "trainer/c_api/program_engine.h"

namespace antdt::capi {

using trainer::BatchSums;

Order ProgramEngine::order(std::int32_t kind) const {
  Order order;
  const Standing standing = links_.standing();
  order.fields.kind = kind;
  order.fields.step = standing.step.value;
  order.fields.generation = standing.generation.value;
  order.fields.phase = phase_.phase;
  order.fields.epoch = phase_.epoch.value;
  order.fields.evaluation = phase_.what == wire::PhaseKind::kEval ? 1 : 0;
  order.fields.rank = rank_;
  order.fields.size = size_;
  return order;
}

void ProgramEngine::ask(Order order) const {
  auto answer = links_.exchange.ask(std::move(order));
  if (!answer) throw ProgramGone{answer.error()};
}

// ------------------------------------------------------------------- phases and steps

void ProgramEngine::phase_began(const wire::PhaseStart& start, trainer::Collective& collective) {
  phase_ = start;
  links_.evaluations.hear(start.evaluated);
  rank_ = collective.rank();
  size_ = collective.size();
  links_.upcoming.begin(links_.standing().generation, start.phase);
  Order begin = order(ANTDT_ORDER_PHASE_BEGIN);
  begin.fields.phase_records = start.records;
  begin.fields.phase_committed = start.committed;
  ask(std::move(begin));
}

void ProgramEngine::phase_ended(bool done) {
  links_.upcoming.end();
  if (gone_) return;
  Order end = order(ANTDT_ORDER_PHASE_END);
  end.fields.complete = done ? 1 : 0;
  ask(std::move(end));
}

void ProgramEngine::begin_step(trainer::Collective& collective) {
  links_.reductions.begin(collective);
}

void ProgramEngine::give(const data::Examples& batch, Order& order) {
  order.records.assign(batch.ids.begin(), batch.ids.end());
  order.fields.position = links_.upcoming.give(batch.count);
}

Result<BatchSums> ProgramEngine::compute(const data::Examples& batch, bool last) {
  Order compute = order(ANTDT_ORDER_COMPUTE);
  give(batch, compute);
  // The step cannot complete any more: its reduction fails, and the records are handed out again.
  if (links_.generation_is_over()) return BatchSums{};
  compute.fields.last = last ? 1 : 0;
  if (last) links_.reductions.open();
  has_step_ = true;
  auto answer = links_.exchange.ask(std::move(compute));
  gone_ = !answer;
  if (!answer) return tl::unexpected(std::move(answer.error()));
  BatchSums sums{answer->weight, answer->loss};
  for (auto& [index, reason] : answer->skipped) sums.skipped.push_back({index, std::move(reason)});
  return sums;
}

Status ProgramEngine::finish_reduction() {
  if (!gone_ && !links_.generation_is_over()) {
    links_.reductions.open();
    has_step_ = true;
    auto answer = links_.exchange.ask(order(ANTDT_ORDER_REDUCE));
    // The others wait for this member: they must not for ever, nor may the sums go on without it.
    if (!answer) throw ProgramGone{answer.error()};
  }
  const Status reduced = links_.reductions.finish();
  // Members of the next generation would do the same again.
  if (!reduced && reduced.error().kind == ErrorKind::kCorrupt) {
    throw ProgramGone{{ErrorKind::kInternal,
                       fmt::format("{}. The programs of all members call antdt_reduce for the same "
                                   "buffers in the same order in each step",
                                   reduced.error().message)}};
  }
  ANTDT_RETURN_IF_ERROR(reduced);
  if (links_.generation_is_over()) return fail(ErrorKind::kAborted, "the generation is over");
  return {};
}

Status ProgramEngine::apply(double weight) {
  Order apply = order(ANTDT_ORDER_APPLY);
  apply.fields.weight = weight;
  apply.fields.rate = rate_;
  ask(std::move(apply));
  has_step_ = false;
  return {};
}

void ProgramEngine::discard() {
  if (!has_step_) return;
  ask(order(ANTDT_ORDER_DISCARD));
  has_step_ = false;
}

Result<wire::EvalPartial> ProgramEngine::evaluate(const data::Examples& batch) {
  Order evaluate = order(ANTDT_ORDER_EVALUATE);
  give(batch, evaluate);
  auto answer = links_.exchange.ask(std::move(evaluate));
  gone_ = !answer;
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return std::move(answer->partial);
}

// ------------------------------------------------------------------- the training state

void ProgramEngine::want_state() const {
  if (links_.state_on_request) ask(order(ANTDT_ORDER_STATE_WANTED));
}

std::vector<trainer::StateFile> ProgramEngine::state_files(Step step) const {
  want_state();
  return links_.state.files(step);
}

std::vector<std::span<std::byte>> ProgramEngine::state_parts() {
  want_state();
  return links_.state.bytes();
}

Result<Step> ProgramEngine::load(CheckpointReader& files) {
  want_state();  // what a program that has trained registered last may be gone
  ANTDT_TRY(const Step step, links_.state.load(files));
  state_replaced();
  return step;
}

void ProgramEngine::state_replaced() {
  ask(order(ANTDT_ORDER_STATE_REPLACED));
  has_step_ = false;
}

}  // namespace antdt::capi
