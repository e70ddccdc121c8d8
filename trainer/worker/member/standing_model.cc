#include "trainer/worker/member/standing_model.h"

#include <algorithm>
#include <utility>

namespace antdt::worker {

void StandingModel::begin(const wire::PhaseStart& start) { phase_ = start.phase; }

// Where rows are on servers, these would have to write theirs after the same step.
bool StandingModel::due() const {
  const std::uint64_t ordered = member_.heard.job.checkpoint;
  if (!phase_ || ordered <= std::max(written_, member_.training.checkpoint)) return false;
  if (member_.rank != 0 || member_.stages_rows || member_.heard.over) return false;
  return member_.saving == Saving::kNothing;
}

void StandingModel::look(Effects& out) {
  if (!due()) return;
  written_ = member_.heard.job.checkpoint;
  wire::CheckpointWritten about;
  about.number = written_;
  about.phase = *phase_;
  about.step = member_.training.step;
  about.history = member_.training.log.history();
  out.emplace_back(
      Send{wire::CheckpointBegun{about.number, about.phase, about.step, {}, about.history}});
  member_.saving = Saving::kOrdered;
  out.emplace_back(SpendTime{TimeUse::kCheckpoint});
  out.emplace_back(Save{std::move(about), Save::Kind::kOrdered, true});
  out.emplace_back(SpendTime{member_.resting});
}

}  // namespace antdt::worker
