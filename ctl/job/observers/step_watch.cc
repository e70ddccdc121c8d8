#include "ctl/job/observers/step_watch.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

// Far above what training can reach, and far below the values whose sums would overflow.
constexpr std::uint64_t kMost = 1ULL << 60;

}  // namespace

void StepWatch::begin(Generation generation, std::size_t members, Step step) {
  generation_ = generation;
  members_ = members;
  heard_ = kept_ = step;
}

void StepWatch::resume(Generation generation, std::size_t members) {
  generation_ = generation;
  members_ = members;
  heard_.reset();
  kept_.reset();
}

Status StepWatch::check(const wire::StepRun& run) const {
  const auto cannot_be = [&](std::string_view what) {
    return fail(ErrorKind::kCorrupt, "steps from {} on of generation {} cannot be: {}", run.first,
                generation_, what);
  };
  if (run.places.size() != members_ || run.records.size() != members_) {
    return cannot_be(fmt::format("{} places and {} parts, of {} members", run.places.size(),
                                 run.records.size(), members_));
  }
  if (run.first == Step{} || run.steps == 0 || run.first.value > kMost || run.steps > kMost) {
    return cannot_be(fmt::format("{} steps", run.steps));
  }
  for (std::size_t rank = 0; rank < members_; ++rank) {
    if (run.places[rank] > kMost || run.records[rank] > kMost / run.steps) {
      return cannot_be(fmt::format("{} steps of {} records from place {} on", run.steps,
                                   run.records[rank], run.places[rank]));
    }
  }
  return {};
}

Status StepWatch::check(const wire::StepHistory& told, Step step) const {
  std::size_t numbers = 0;
  Step last;
  for (const wire::StepRun& run : told.runs) {
    ANTDT_RETURN_IF_ERROR(check(run));
    numbers += run.places.size() + run.records.size();
    if (run.first <= last || run.last() > step || numbers > wire::StepHistory::kMaxNumbers) {
      return fail(ErrorKind::kCorrupt,
                  "{} runs of steps of generation {} cannot be: steps {} to {} follow on {}, and "
                  "training is at {}",
                  told.runs.size(), generation_, run.first, run.last(), last, step);
    }
    last = run.last();
  }
  return {};
}

Result<std::vector<wire::StepRun>> StepWatch::hear(const wire::StepHistory& told, Step step) {
  std::vector<wire::StepRun> fresh;
  if (told.generation != generation_ || generation_ == Generation{}) return fresh;
  ANTDT_RETURN_IF_ERROR(check(told, step));
  for (const wire::StepRun& run : told.runs) {
    // Members forget only steps that are durable. So the steps before the first that this
    // incarnation hears are in the history.
    if (!heard_) heard_ = Step{run.first.value - 1};
    if (run.last() <= *heard_) continue;
    if (run.first.value <= heard_->value + 1) heard_ = run.last();
    fresh.push_back(run);
  }
  return fresh;
}

}  // namespace antdt::ctl
