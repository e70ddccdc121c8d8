#include "trainer/worker/step_log.h"

#include <algorithm>
#include <ranges>

namespace antdt::worker {
namespace {

std::size_t numbers_in(const wire::StepRun& run) { return run.places.size() + run.records.size(); }

// The place of a rank before a step after which its place is `after`.
std::uint64_t before(std::uint64_t after, std::uint64_t taken) {
  return after - std::min(taken, after);
}

// The places within a run follow from its first ones, so only the beginning must fit.
bool goes_on(const wire::StepRun& run, Step step, std::uint64_t phase,
             std::span<const std::uint64_t> places, std::span<const std::uint64_t> records) {
  if (run.phase != phase || step != run.last().next()) return false;
  if (!std::ranges::equal(run.records, records) || run.places.size() != places.size()) return false;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (run.places[rank] + run.steps * run.records[rank] != before(places[rank], records[rank])) {
      return false;
    }
  }
  return true;
}

// After how many steps of the run the place of a rank is not behind `place`.
std::uint64_t steps_within(const wire::StepRun& run, std::size_t rank, std::uint64_t place) {
  if (run.records[rank] == 0) return run.steps;
  const std::uint64_t records = place - std::min(place, run.places[rank]);
  return std::min(run.steps, records / run.records[rank]);
}

// Appends the run, in as many parts as it takes: in each, a rank has no records once it is behind
// its place.
void cut(const wire::StepRun& run, std::span<const std::uint64_t> places,
         std::vector<wire::StepRun>& out) {
  for (std::uint64_t done = 0; done < run.steps;) {
    wire::StepRun part{Step{run.first.value + done}, run.steps - done, run.phase, {}, {}};
    for (std::size_t rank = 0; rank < run.places.size(); ++rank) {
      const std::uint64_t within = steps_within(run, rank, places[rank]);
      const bool counts = done < within;
      if (counts) part.steps = std::min(part.steps, within - done);
      part.places.push_back(run.places[rank] + std::min(done, within) * run.records[rank]);
      part.records.push_back(counts ? run.records[rank] : 0);
    }
    done += part.steps;
    out.push_back(std::move(part));
  }
}

}  // namespace

StepLog::StepLog(wire::StepHistory history) : history_(std::move(history)) {
  for (const wire::StepRun& run : history_.runs) numbers_ += numbers_in(run);
  bound();
}

void StepLog::begin(Generation generation) {
  history_ = {generation, {}};
  numbers_ = 0;
}

void StepLog::add(Step step, std::uint64_t phase, std::span<const std::uint64_t> places,
                  std::span<const std::uint64_t> records) {
  auto& runs = history_.runs;
  if (!runs.empty() && goes_on(runs.back(), step, phase, places, records)) {
    ++runs.back().steps;
    return;
  }
  wire::StepRun run{step, 1, phase, {}, {records.begin(), records.end()}};
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    run.places.push_back(before(places[rank], records[rank]));
  }
  numbers_ += numbers_in(run);
  runs.push_back(std::move(run));
  bound();
}

void StepLog::forget(Step step) {
  auto& runs = history_.runs;
  const auto kept =
      std::ranges::find_if(runs, [&](const wire::StepRun& run) { return run.last() > step; });
  for (const wire::StepRun& run : std::ranges::subrange(runs.begin(), kept)) {
    numbers_ -= numbers_in(run);
  }
  runs.erase(runs.begin(), kept);
}

void StepLog::keep(std::uint64_t phase, std::span<const std::uint64_t> places) {
  std::vector<wire::StepRun> kept;
  for (wire::StepRun& run : history_.runs) {
    if (run.phase == phase) {
      cut(run, places, kept);
    } else {
      kept.push_back(std::move(run));
    }
  }
  history_.runs = std::move(kept);
  numbers_ = 0;
  for (const wire::StepRun& run : history_.runs) numbers_ += numbers_in(run);
  bound();
}

wire::StepHistory StepLog::history_up_to(std::uint64_t phase,
                                         std::span<const std::uint64_t> places) const {
  wire::StepHistory told{history_.generation, {}};
  for (const wire::StepRun& run : history_.runs) {
    std::uint64_t steps = run.steps;
    for (std::size_t rank = 0; rank < run.places.size() && run.phase == phase; ++rank) {
      steps = std::min(steps, steps_within(run, rank, places[rank]));
    }
    if (steps > 0) told.runs.push_back(run);
    if (steps == run.steps) continue;
    if (steps > 0) told.runs.back().steps = steps;
    break;
  }
  return told;
}

// Half of it is dropped at once, so that this is rare.
void StepLog::bound() {
  if (numbers_ <= wire::StepHistory::kMaxNumbers) return;
  auto& runs = history_.runs;
  std::size_t dropped = 0;
  for (; dropped < runs.size() && numbers_ > wire::StepHistory::kMaxNumbers / 2; ++dropped) {
    numbers_ -= numbers_in(runs[dropped]);
  }
  runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(dropped));
}

}  // namespace antdt::worker
