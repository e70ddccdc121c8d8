// Tests that members report the records of each step, whichever of them dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/testing.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;

// By step and rank, as the newest generation that reported the step says.
struct Told {
  std::uint64_t phase = 0;
  std::vector<std::uint64_t> places, records;
};
std::map<Step, Told> steps_told(const FakeJob::Seen& seen) {
  std::map<Generation, std::map<Step, Told>> by_generation;
  for (const wire::StepHistory& history : seen.histories) {
    for (const wire::StepRun& run : history.runs) {
      Told told{run.phase, run.places, run.records};
      for (std::uint64_t i = 0; i < run.steps; ++i) {
        by_generation[history.generation][Step{run.first.value + i}] = told;
        for (std::size_t rank = 0; rank < told.places.size(); ++rank) {
          told.places[rank] += told.records[rank];
        }
      }
    }
  }
  std::map<Step, Told> all;
  for (const auto& [generation, steps] : by_generation) {
    for (const auto& [step, told] : steps) all[step] = told;
  }
  return all;
}

std::uint64_t sum(const std::vector<std::uint64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

// Every step from the first is reported, and its records are those that entered the model in it:
// the weights with which the members applied them.
void expect_every_step_told(const FakeJob& job, const std::vector<Outcome>& outcomes) {
  const std::map<Step, Told> told = steps_told(job.seen());
  std::uint64_t expected = 1, records = 0;
  std::vector<double> weights;
  for (const auto& [step, at] : told) {
    EXPECT_EQ(step.value, expected++);
    records += sum(at.records);
    if (sum(at.records) > 0) weights.push_back(static_cast<double>(sum(at.records)));
  }
  EXPECT_EQ(records, 2 * kEpochRecords);
  for (const Outcome& outcome : outcomes) {
    if (outcome.killed || outcome.replaced > 0) continue;  // it did not apply every step itself
    EXPECT_EQ(outcome.weights, weights) << "w" << outcome.index;
  }
}

TEST(StepHistory, EveryStepIsTold) {
  for (const std::uint32_t size : {1U, 3U}) {
    FakeJob job(size, two_epochs(), even_plan(size, 10));
    Faults faults;
    expect_every_step_told(job, run_drill({job, size, kEpochRecords}, faults));
  }
}

TEST(StepHistory, PlacesGoOnInAPhaseAndBeginWithIt) {
  FakeJob job(2, two_epochs(), even_plan(2, 10));
  Faults faults;
  run_drill({job, 2, kEpochRecords}, faults);
  Told last;
  for (const auto& [step, told] : steps_told(job.seen())) {
    std::vector<std::uint64_t> expected = last.places;
    for (std::size_t rank = 0; rank < expected.size(); ++rank) expected[rank] += last.records[rank];
    if (told.phase == last.phase) {
      EXPECT_EQ(told.places, expected);
    } else {
      EXPECT_THAT(told.places, Each(0U));
    }
    last = told;
  }
}

// Rank 0, and the only other member that completed the step, are killed at any operation of a step
// with steps that they had not reported.
TEST(StepHistory, OtherMembersReportWhatTheReporterDidNot) {
  constexpr std::uint32_t kSize = 3;
  for (const Fate fate : {Fate::kIsGone, Fate::kDies}) {
    for (std::uint64_t operation = 9; operation <= 12; ++operation) {
      for (std::uint32_t left_behind = 1; left_behind <= kSize; ++left_behind) {
        FakeJob job(kSize, two_epochs(), even_plan(kSize, 10));
        Faults faults;
        faults.in_collective = [&](std::uint64_t generation, std::uint32_t index,
                                   OperationKind kind, std::uint64_t number) {
          const bool of_all = kind == OperationKind::kSum || kind == OperationKind::kGather;
          if (generation != 1 || !of_all || number != operation) return Fate::kGoesOn;
          if (index == 0) return fate;
          return index == left_behind ? Fate::kBreaks : Fate::kGoesOn;
        };
        const auto outcomes = run_drill({job, kSize, kEpochRecords}, faults);
        EXPECT_TRUE(outcomes[0].killed);
        expect_every_step_told(job, outcomes);
      }
    }
  }
}

TEST(StepHistory, TheStepsWithANewcomerAreTold) {
  constexpr std::uint32_t kSize = 3;
  FakeJob job(kSize - 1, two_epochs(), even_plan(kSize - 1, 10));
  job.script.admit_at_step(6, {'w', kSize - 1});
  Faults faults;
  faults.waits_for_regroup = std::pair(Point::kCompute, 9U);
  Drill drill{job, kSize, kEpochRecords};
  drill.first_members = kSize - 1;
  expect_every_step_told(job, run_drill(drill, faults));
}

}  // namespace
}  // namespace antdt::trainer
