#include "ctl/lifecycle/lifecycle.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "ctl/lifecycle/turn.h"

namespace antdt::ctl {

namespace lifecycle {

void Lifecycle::step(const Input& input, MonoTime now, Effects& out) {
  life_.now = now;
  if (!life_.began) life_.began = now;
  if (life_.ending.is_over()) return;
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  Turn turn(life_, out);
  std::visit([&](const auto& e) { turn.take(e); }, input);
  const auto changes = [](const Effect& e) { return std::holds_alternative<PersistImage>(e); };
  if (std::any_of(out.begin() + before, out.end(), changes)) check_invariants();
}

// Runs after each step that changes what is journaled; journaling costs more than the check.
void Lifecycle::check_invariants() const {
  for (const WorkerProcess& w : life_.workers) {
    const std::string_view broken = w.broken_invariant();
    ANTDT_CHECK(broken.empty(), "{} (attempt {}) is {}: {}", w.place.worker, w.attempt,
                process_state(w.state), broken);
    const bool begins = w.state == WorkerProcess::kWaiting && !life_.image.gang_stops;
    ANTDT_CHECK(!begins || !(w.leaving() || w.asked_to_stop()),
                "{} (attempt {}) waits to be started, and is asked to go", w.place.worker,
                w.attempt);
  }
  const bool ends = state() == JobState::kStopping || life_.ending.is_over();
  ANTDT_CHECK(!ends || life_.stopping(), "the job is {} without an outcome", state());
  ANTDT_CHECK(life_.image.last_cut == 0 || life_.image.servers_wanted > 0,
              "checkpoint {} is the last of its servers, and no others are wanted",
              life_.image.last_cut);
  ANTDT_CHECK(life_.image.last_cut <= life_.checkpoints.ordered(),
              "checkpoint {} is the last of its servers, and {} were ordered", life_.image.last_cut,
              life_.checkpoints.ordered());
}

LifecycleImage Lifecycle::image() const {
  LifecycleImage image = life_.image;
  image.workers.reserve(life_.workers.size());
  for (const WorkerProcess& w : life_.workers) image.workers.push_back(w.image());
  image.hosts = life_.hosts.all();
  image.phase = life_.phases.number();
  image.sizes = life_.phases.sizes();
  image.training_ends = life_.phases.ending();
  image.checkpoints_ordered = life_.checkpoints.image().ordered;
  image.checkpoints_stored = life_.checkpoints.image().stored;
  image.checkpoint_pending = life_.checkpoints.image().pending;
  Incidents::Image incidents = life_.incidents.image();
  image.failures = std::move(incidents.failures);
  image.incident = incidents.incident;
  image.budgets = std::move(incidents.budgets);
  image.trained_s = incidents.trained_s;
  image.made_progress = incidents.made_progress;
  image.over_budget = std::move(incidents.over_budget);
  image.seconds = seconds();
  return image;
}

void Lifecycle::restore(LifecycleImage image, std::optional<std::vector<Member>> group) {
  life_.image = std::move(image);
  life_.workers.clear();
  for (WorkerProcessImage& w : life_.image.workers) life_.workers.emplace_back(std::move(w));
  life_.image.workers.clear();
  life_.hosts.restore(life_.image.hosts);
  life_.phases.restore(life_.image.phase, std::move(life_.image.sizes),
                       std::move(life_.image.training_ends), std::move(group));
  // The servers are also told that they are to go on (ServerGroup::restore).
  const bool pending = life_.image.checkpoint_pending && life_.image.last_cut == 0;
  life_.checkpoints.restore(
      {life_.image.checkpoints_ordered, life_.image.checkpoints_stored, pending});
  life_.incidents.restore({std::move(life_.image.failures), life_.image.incident,
                           std::move(life_.image.budgets), life_.image.trained_s,
                           life_.image.made_progress, std::move(life_.image.over_budget)});
  life_.image.failures.clear();
  life_.image.over_budget.clear();
  life_.seconds_before = life_.image.seconds;
  life_.image.last_cut = 0;
}

}  // namespace lifecycle
}  // namespace antdt::ctl
