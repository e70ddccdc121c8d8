// What a worker of servers has under way, as trainer/ps_link/worker_link.h.
#include <utility>

#include "sim/servers/ps_worker.h"
#include "trainer/ps/placement.h"

namespace antdt::sim {

bool PsWorker::advance() {
  if (no_answers_ || end_.over()) return false;
  say_pushes();
  return true;
}

void PsWorker::say_pushes() {
  while (const auto now = pushes_.next()) std::visit([this](const auto& what) { say(what); }, *now);
}

void PsWorker::say(const ps::PushOrder::Stage& stage) {
  const auto done = [this, number = stage.number](const PsLink::Answers& answers) {
    if (answers) {
      pushes_.staged(number);
    } else {
      no_answers_ = true;
    }
    came();
  };
  link_->ask(std::move(parts_.extract(stage.number).mapped()), done);
}

void PsWorker::say(const wire::PsCommit& commit) {
  const std::uint32_t home = ps::home_of(consistency_, member_.worker, link_->servers());
  std::vector<std::optional<PsAsk>> asks(link_->servers());
  asks[home] = commit;
  link_->ask(std::move(asks), [this, home, number = commit.number](const PsLink::Answers& answers) {
    if (answers) {
      pushes_.decided(number, std::get<wire::PsDecided>((*answers)[home]));
    } else {
      no_answers_ = true;
    }
    came();
  });
}

// The training thread wakes up, if it waits for that.
void PsWorker::came() {
  if (awaits_ == Awaits::kNothing) return;
  if (!advance()) return answered(operation_, lost());
  Answer rows = awaits_ == Awaits::kRows ? rows_pulled() : Answer();
  answered(operation_, rows ? std::move(*rows) : worker::PsInput(worker::ServersAnswered{}));
}

}  // namespace antdt::sim
