#include "sim/daemon/daemons.h"

#include <utility>

namespace antdt::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

Daemons::Daemons(World& world, Clocks& clocks, Daemon::Run run, const Script& script,
                 Daemon::Outside outside)
    : world_(world),
      clocks_(clocks),
      run_(std::move(run)),
      script_(script),
      outside_(std::move(outside)) {
  outside_.ended = [this, judge = std::move(outside_.ended)](const ctl::Outcome& outcome) {
    if (over()) return;
    job_ended(outcome);
    if (ended()) judge(outcome);
  };
  outside_.died = [this] { start_after(world_.rng().time(milliseconds(50), seconds(2))); };
}

void Daemons::make() {
  daemons_.push_back(std::make_unique<Daemon>(world_, clocks_.make(), run_, outside_));
  if (daemons_.back()->start()) return;
  daemons_.pop_back();
  start_after(seconds(1));
}

void Daemons::start_after(Duration pause) {
  world_.after(pause, [this] {
    if (!over() && newest() == nullptr) make();
  });
}

void Daemons::receive(const ToDaemon& message) {
  if (script_.holds_back && script_.holds_back(message)) return held_back_.push_back(message);
  for (auto& daemon : daemons_) daemon->receive(message);
}

void Daemons::release_messages() {
  for (ToDaemon& message : std::exchange(held_back_, {})) {
    if (const Daemon* now = newest()) message.to = now->incarnation();
    for (auto& daemon : daemons_) daemon->receive(message);
  }
}

void Daemons::stop_asked(Duration grace) {
  Daemon* const now = newest();
  if (now == nullptr) return;
  stop_asked_ = true;
  now->feed_soon(ctl::lifecycle::StopRequested{"a test", grace});
}

Daemon* Daemons::newest() const {
  const bool runs = !daemons_.empty() && daemons_.back()->runs();
  return runs ? daemons_.back().get() : nullptr;
}

const ctl::JobMachine* Daemons::machine() const {
  const Daemon* const now = newest();
  return now == nullptr ? nullptr : now->machine();
}

void Daemons::job_ended(const ctl::Outcome& outcome) {
  world_.say("the job is {}", outcome.state);
  if (outcome.state == JobEnd::kStopped && outcome.code == 75) {
    stopped_ = true;
    if (!stop_asked_) world_.violate("asked", "the job stops: " + outcome.first_cause);
    return world_.after(world_.rng().time(milliseconds(10), seconds(5)), [this] { resume(); });
  }
  outcome_ = outcome;
}

void Daemons::resume() {
  world_.say("operator: resume");
  stopped_ = stop_asked_ = false;
  run_.config = run_.resumed;
  run_.disk.resume_requested = true;
  make();
}

}  // namespace antdt::sim
