// What a worker of servers has under way, as trainer/ps_link/worker_link.h.
#include <utility>

#include "sim/ps_worker.h"
#include "trainer/ps/placement.h"

namespace antdt::sim {

bool PsWorker::advance() {
  if (no_answers_) {
    no_answers();
    return false;
  }
  advance_pushes();
  // With a barrier a step is decided in its turn.
  while (!barrier() && !pushes_.empty() && pushes_.front().decided) {
    if (pushes_.front().decided->status != "applied") {
      world_.violate("without a barrier nothing is late", doing());
    }
    conclude(pushes_.front());
    pushes_.pop_front();
  }
  return alive();
}

// Each as far as it goes behind the one before.
void PsWorker::advance_pushes() {
  bool before_decided = true;
  for (Push& push : pushes_) {
    if (!push.parts.empty()) stage_parts(push);
    if (!push.staged) return;
    if (before_decided && !std::exchange(push.committing, true)) commit(push);
    before_decided = push.decided.has_value();
  }
}

void PsWorker::stage_parts(Push& push) {
  const auto done = [this, number = push.commit.number](const PsLink::Answers& answers) {
    if (!answers) no_answers_ = true;
    for (Push& p : pushes_) p.staged |= answers && p.commit.number == number;
    came();
  };
  link_->ask(std::exchange(push.parts, {}), done);
}

void PsWorker::commit(const Push& push) {
  const std::uint32_t home = ps::home_of(consistency_, member_.worker, link_->servers());
  std::vector<std::optional<PsAsk>> asks(link_->servers());
  asks[home] = push.commit;
  said_ = {generation_, push.commit.phase, push.commit.to};
  link_->ask(std::move(asks), [this, home](const PsLink::Answers& answers) {
    if (!answers) no_answers_ = true;
    for (Push& p : pushes_) {
      if (!answers) break;
      const auto& decided = std::get<wire::PsDecided>((*answers)[home]);
      if (p.commit.number == decided.number) p.decided = decided;
    }
    came();
  });
}

void PsWorker::came() {
  if (!waits_for_ || !advance() || !waits_for_()) return;
  waits_for_ = {};
  doing_ = Doing::kTraining;
  std::exchange(goes_on_with_, {})();
}

void PsWorker::wait_until(std::function<bool()> is_so, std::function<void()> next) {
  if (!advance()) return;
  if (is_so()) return next();
  doing_ = Doing::kAsking;
  core_.set_activity("collective_wait");
  waits_for_ = std::move(is_so);
  goes_on_with_ = std::move(next);
}

void PsWorker::forget_under_way() {
  batch_.clear();
  next_.clear();
  taking_.clear();
  pull_.reset();
  pushes_.clear();
  no_answers_ = false;
  waits_for_ = {};
  goes_on_with_ = {};
}

}  // namespace antdt::sim
