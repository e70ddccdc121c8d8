// Members that are killed, left behind, or new: in all cases each record has entered each member's
// model exactly once in each epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/sanitized.h"
#include "tests/trainer/loop/testing.h"

namespace antdt::trainer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool is_of_all(OperationKind kind) {
  return kind == OperationKind::kSum || kind == OperationKind::kGather;
}
bool is_link(OperationKind kind) { return !is_of_all(kind); }

// Every member that lived to the end has the whole training in its model.
void expect_each_record_once_an_epoch(const std::vector<Outcome>& outcomes, float epochs) {
  std::size_t lived = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.killed) continue;
    ASSERT_TRUE(outcome.code) << outcome.code.error().message;
    EXPECT_EQ(*outcome.code, 0);
    const double sum = std::accumulate(outcome.counts.begin(), outcome.counts.end(), 0.0);
    if (sum == 0) continue;  // a newcomer that was not needed any more
    ++lived;
    EXPECT_THAT(outcome.counts, Each(epochs)) << "w" << outcome.index;
  }
  EXPECT_GT(lived, 0U);
}

// The whole job: two epochs with an evaluation between them.
void expect_all_went_well(const FakeJob& job, const std::vector<Outcome>& outcomes) {
  expect_each_record_once_an_epoch(outcomes, 2);
  const FakeJob::Seen seen = job.seen();
  EXPECT_EQ(seen.evaluated, kEpochRecords);
  EXPECT_EQ(seen.committed, 3 * kEpochRecords);
  ASSERT_FALSE(seen.done.empty());
  EXPECT_EQ(seen.done.back().samples, kEpochRecords);
  EXPECT_DOUBLE_EQ(seen.done.back().loss_sum, 2.0 * kEpochRecords) << "the loss goes on exactly";
  EXPECT_DOUBLE_EQ(seen.done.back().weight_sum, kEpochRecords);
}

// On a busy machine the others may take all records of the late steps, so that the last member is
// never at that point again. Then nobody is killed, which may not happen each time.
TEST(Recovery, AMemberKilledBetweenStepsIsDoneWithout) {
  for (std::uint32_t size = 2; size <= 4; ++size) {
    for (const Point point : {Point::kCompute, Point::kApply, Point::kApplied}) {
      int kills = 0;
      for (const std::uint64_t step : {1U, 7U, 13U}) {
        FakeJob job(size, two_epochs(), even_plan(size, 10));
        bool was_there = false;  // of the last member's thread until it has ended
        Faults faults;
        faults.at_point = [&](std::uint32_t index, Point at, Step now) {
          if (index != size - 1 || at != point || now.value < step) return;
          was_there = true;
          throw Killed{};
        };
        const auto outcomes = run_drill({job, size, kEpochRecords}, faults);
        EXPECT_EQ(outcomes[size - 1].killed, was_there);
        kills += was_there ? 1 : 0;
        expect_all_went_well(job, outcomes);
      }
      EXPECT_GT(kills, 0) << "of " << size << " members";
    }
  }
}

// The kill comes in every operation around the end of a step, in every way: no member completes it,
// all but the victim do, or only some of the survivors.
TEST(Recovery, AMemberKilledInsideTheCollectiveIsDoneWithout) {
  for (std::uint32_t size = all_or_some(2U, 3U); size <= all_or_some(4U, 3U); ++size) {
    for (const Fate fate : {Fate::kIsGone, Fate::kDies}) {
      for (std::uint64_t operation = 5; operation <= 8; ++operation) {
        for (std::uint32_t left_behind = 1; left_behind <= size; ++left_behind) {
          FakeJob job(size, two_epochs(), even_plan(size, 10));
          Faults faults;
          faults.in_collective = [&](std::uint64_t generation, std::uint32_t index,
                                     OperationKind kind, std::uint64_t number) {
            if (generation != 1 || !is_of_all(kind) || number != operation) return Fate::kGoesOn;
            if (index == 0) return fate;
            return index == left_behind ? Fate::kBreaks : Fate::kGoesOn;
          };
          const auto outcomes = run_drill({job, size, kEpochRecords}, faults);
          EXPECT_TRUE(outcomes[0].killed);
          expect_all_went_well(job, outcomes);
        }
      }
    }
  }
}

TEST(Recovery, ACollectiveThatBreaksWithoutALossIsFormedAnew) {
  for (std::uint32_t size = 2; size <= 4; ++size) {
    for (std::uint64_t operation = 4; operation <= 7; ++operation) {
      FakeJob job(size, two_epochs(), even_plan(size, 10));
      Faults faults;
      faults.in_collective = [&](std::uint64_t generation, std::uint32_t index, OperationKind kind,
                                 std::uint64_t number) {
        const bool here = is_of_all(kind) && number == operation;
        return here && index == generation % size ? Fate::kBreaks : Fate::kGoesOn;
      };
      const auto outcomes = run_drill({job, size, kEpochRecords}, faults);
      expect_all_went_well(job, outcomes);
      EXPECT_GT(job.seen().settled, 2U);
    }
  }
}

TEST(Recovery, AMemberAStepBehindTakesTheStateThoughItsOwnStepIsLost) {
  FakeJob job(3, two_epochs(), even_plan(3, 10));
  Faults faults;
  // Operation 0 is of the healing; a step is a sum and a gather: 2 s, 2 s + 1.
  faults.in_collective = [](std::uint64_t generation, std::uint32_t index, OperationKind kind,
                            std::uint64_t number) {
    const bool here = generation == 1 && is_of_all(kind) && number == 8;
    return here && index == 1 ? Fate::kBreaks : Fate::kGoesOn;
  };
  const auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  expect_all_went_well(job, outcomes);
  EXPECT_EQ(outcomes[1].replaced, 1U);
  EXPECT_EQ(outcomes[1].weights.size() + 1, outcomes[0].weights.size());
}

TEST(Recovery, TheOnlyHolderOfTheFurthestStepDiesWhileItSendsIt) {
  FakeJob job(3, two_epochs(), even_plan(3, 10));
  Faults faults;
  faults.in_collective = [](std::uint64_t generation, std::uint32_t index, OperationKind kind,
                            std::uint64_t number) {
    if (generation == 1 && is_of_all(kind) && number == 8 && index > 0) return Fate::kBreaks;
    if (generation == 2 && index == 0 && is_link(kind) && number == 1) return Fate::kDies;
    return Fate::kGoesOn;
  };
  const auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  EXPECT_TRUE(outcomes[0].killed);
  expect_all_went_well(job, outcomes);
}

TEST(Recovery, ANewcomerJoinsByARegroupAndGetsTheState) {
  for (std::uint32_t size = 1; size <= 3; ++size) {
    FakeJob job(size, two_epochs(), even_plan(size, 10));
    job.script.admit_at_step(6, {'w', size});
    Faults faults;
    faults.waits_for_regroup = {Point::kCompute, 8};
    Drill drill{job, size + 1, kEpochRecords, {}, 2'500'000};
    drill.first_members = size;
    const auto outcomes = run_drill(drill, faults);
    expect_all_went_well(job, outcomes);
    EXPECT_EQ(outcomes[size].replaced, 1U);
    EXPECT_EQ(outcomes[0].replaced, 0U);
    EXPECT_THAT(job.seen().settled_in, ElementsAre(1, 1)) << "at the end of a step, not of a phase";
  }
}

TEST(Recovery, TwoNewcomersInARowAreAChain) {
  for (std::uint32_t size = 1; size <= 2; ++size) {
    FakeJob job(size, two_epochs(), even_plan(size, 10));
    job.script.admit_at_step(6, {'w', size});
    job.script.admit_at_step(6, {'w', size + 1});
    Faults faults;
    const auto outcomes = run_drill({job, size + 2, kEpochRecords, {}, 2'500'000}, faults);
    expect_all_went_well(job, outcomes);
    EXPECT_EQ(outcomes[size].replaced, 1U);
    EXPECT_EQ(outcomes[size + 1].replaced, 1U);
  }
}

TEST(Recovery, TheSourceOfANewcomersStateDiesWhileItSends) {
  for (const std::uint64_t chunk : {0U, 1U, 3U}) {
    for (const Fate fate : {Fate::kIsGone, Fate::kDies}) {
      FakeJob job(2, two_epochs(), even_plan(2, 10));
      job.script.admit_at_step(6, {'w', 2});
      job.script.admit_at_step(6, {'w', 3});
      Faults faults;
      faults.in_collective = [&](std::uint64_t, std::uint32_t index, OperationKind kind,
                                 std::uint64_t number) {
        const bool here = kind == OperationKind::kSend && number == chunk;
        return here && index == 1 ? fate : Fate::kGoesOn;
      };
      const auto outcomes = run_drill({job, 4, kEpochRecords, {}, 2'500'000}, faults);
      EXPECT_TRUE(outcomes[1].killed);
      expect_all_went_well(job, outcomes);
    }
  }
}

TEST(Recovery, TheOthersGoOnWithoutANewcomerThatDiesWhileItReceives) {
  FakeJob job(2, two_epochs(), even_plan(2, 10));
  job.script.admit_at_step(6, {'w', 2});
  Faults faults;
  faults.in_collective = [](std::uint64_t, std::uint32_t index, OperationKind kind, std::uint64_t) {
    return kind == OperationKind::kReceive && index == 2 ? Fate::kDies : Fate::kGoesOn;
  };
  const auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  EXPECT_TRUE(outcomes[2].killed);
  expect_all_went_well(job, outcomes);
}

TEST(Recovery, ARegroupOrALossInTheEvaluationGivesBackWhatWasNotEvaluated) {
  for (std::uint32_t size = 2; size <= 3; ++size) {
    for (const bool dies : {false, true}) {
      FakeJob job(size, two_epochs(), even_plan(size, 10));
      job.script.admit_at_evaluated(50, {'w', size});
      Faults faults;
      std::atomic<int> evaluated = 0;
      faults.at_point = [&](std::uint32_t index, Point at, Step) {
        if (!dies || at != Point::kEvaluate) return;
        if (index == 1 && ++evaluated == 3) throw Killed{};
        // No member is so fast that nothing is left for the victim.
        while (evaluated < 3 && index != 1) std::this_thread::yield();
      };
      // Batches are so small that the evaluation has many of them.
      Drill drill{job, size + 1, kEpochRecords};
      drill.eval_batch = 5;
      const auto outcomes = run_drill(drill, faults);
      EXPECT_EQ(outcomes[1].killed, dies);
      expect_all_went_well(job, outcomes);
      EXPECT_EQ(outcomes[size].replaced, 1U);
    }
  }
}

TEST(Recovery, ARegroupEndsTheEvaluationAtTheNextBatch) {
  FakeJob job(2, two_epochs(), even_plan(2, 10));
  job.script.admit_at_evaluated(50, {'w', 2});
  Faults faults;
  faults.waits_for_regroup = {Point::kEvaluate, 12};
  Drill drill{job, 3, kEpochRecords};
  drill.eval_batch = 5;
  drill.first_members = 2;
  const auto outcomes = run_drill(drill, faults);
  expect_all_went_well(job, outcomes);
  EXPECT_THAT(job.seen().settled_in, ElementsAre(1, 2));
}

TEST(Recovery, AnAbortWithoutALossBringsAllIntoTheNextGeneration) {
  FakeJob job(3, two_epochs(), even_plan(3, 10));
  job.script.abort_at_step(5, false);
  Faults faults;
  const auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  expect_all_went_well(job, outcomes);
  EXPECT_EQ(job.seen().settled, 2U);
  EXPECT_EQ(job.seen().joins.back().settled, Generation{1});
}

TEST(Recovery, AMemberThatIsAskedToLeaveStopsTheOthersAtTheSameStepAndTheyGoOn) {
  FakeJob job(3, two_epochs(), even_plan(3, 10));
  job.script.leave_at_step(5, {'w', 1});
  Faults faults;
  auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  ASSERT_TRUE(outcomes[1].code);
  EXPECT_EQ(*outcomes[1].code, 75);
  outcomes.erase(outcomes.begin() + 1);
  expect_all_went_well(job, outcomes);
  EXPECT_EQ(outcomes[0].replaced, 0U) << "nobody is a step behind";
  EXPECT_EQ(outcomes[1].replaced, 0U);
}

// Only one member heard of a Settle, and died. The other one was ready for that generation, and so
// it holds the generation's state.
TEST(Recovery, AGenerationThatSettledWithoutAMembersHearingOfItIsTheBaseAllTheSame) {
  FakeJob job(2, two_epochs(), even_plan(2, 10));
  job.script.abort_at_step(5, false);
  job.script.form({.unsettled = Generation{2}, .settled_only = {'w', 0}});
  Faults faults;
  faults.in_collective = [](std::uint64_t generation, std::uint32_t index, OperationKind,
                            std::uint64_t) {
    return generation == 3 && index == 0 ? Fate::kIsGone : Fate::kGoesOn;
  };
  const auto outcomes = run_drill({job, 2, kEpochRecords}, faults);
  EXPECT_TRUE(outcomes[0].killed);
  expect_all_went_well(job, outcomes);
}

void save_fives(const TempDir& checkpoint) {
  Tally saved(kEpochRecords, {}, 0);
  for (float& count : saved.counts_) count = 5;
  ASSERT_TRUE(save_state(saved, checkpoint.path(), Step{40}));
}

TEST(Recovery, OneMemberReadsTheCheckpointAndTheOthersReceiveWhatItRead) {
  TempDir checkpoint;
  save_fives(checkpoint);
  FakeJob job(3, {{wire::PhaseKind::kTrain, kEpochRecords}}, even_plan(3, 10));
  job.script.form({.restore = checkpoint.path()});
  Faults faults;
  const auto outcomes = run_drill({job, 3, kEpochRecords}, faults);
  expect_each_record_once_an_epoch(outcomes, 6);
  EXPECT_EQ(outcomes[0].replaced, 0U);
  EXPECT_EQ(outcomes[1].replaced, 1U);
  EXPECT_EQ(outcomes[2].replaced, 1U);
  EXPECT_GT(job.seen().done.back().step, Step{40});
}

TEST(Recovery, WhereTheReaderCannotReadAnotherMemberDoes) {
  TempDir checkpoint;
  save_fives(checkpoint);
  FakeJob job(2, {{wire::PhaseKind::kTrain, kEpochRecords}}, even_plan(2, 10));
  job.script.form({.restore = checkpoint.path()});
  Faults faults;
  Drill drill{job, 2, kEpochRecords};
  drill.unreadable_for = 0;
  const auto outcomes = run_drill(drill, faults);
  expect_each_record_once_an_epoch(outcomes, 6);
  EXPECT_EQ(outcomes[0].replaced, 1U);
  EXPECT_EQ(outcomes[1].replaced, 0U);
  EXPECT_GT(job.seen().done.back().step, Step{40});
}

TEST(Recovery, ADamagedStateIsNeverTrainedFrom) {
  TempDir checkpoint;
  save_fives(checkpoint);
  auto bytes = read_file(checkpoint / "tally");
  ASSERT_TRUE(bytes);
  bytes->at(100) ^= 1;
  FakeJob job(1, {{wire::PhaseKind::kTrain, kEpochRecords}}, even_plan(1, 10));
  job.script.form({.restore = checkpoint.path()});
  ASSERT_TRUE(write_file_atomic(checkpoint / "tally", *bytes));
  Faults faults;
  std::atomic<bool> mended = false;
  faults.at_point = [&](std::uint32_t, Point at, Step) {
    if (at != Point::kCompute || mended) return;
    ADD_FAILURE() << "what is damaged is trained from";
    throw Killed{};
  };
  LocalNetwork network(faults);
  Outcome outcome;
  std::thread member([&] { live({job, 1, kEpochRecords}, faults, network, outcome); });
  const auto said = [&] {
    return std::ranges::any_of(job.seen().joins, [](const wire::Join& join) {
      return join.unreadable.ends_with("tally does not have the checksum of MANIFEST.json");
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!said() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(said());
  // The repaired file is read.
  bytes->at(100) ^= 1;
  mended = true;
  EXPECT_TRUE(write_file_atomic(checkpoint / "tally", *bytes));
  member.join();
  EXPECT_EQ(outcome.counts, std::vector<float>(kEpochRecords, 6));
}

TEST(Recovery, AMemberThatHasTrainedCannotGoBackToTheBeginning) {
  FakeJob job(1, {{wire::PhaseKind::kTrain, 100'000}}, even_plan(1, 10));
  job.script.abort_at_step(5, false);
  job.script.form({.forgets_base = true});
  Faults faults;
  const auto outcomes = run_drill({job, 1, 100'000}, faults);
  ASSERT_FALSE(outcomes[0].code);
  EXPECT_EQ(outcomes[0].code.error().kind, ErrorKind::kAborted);
  EXPECT_THAT(outcomes[0].code.error().message, HasSubstr("only a new process can go back"));
}

TEST(Recovery, TheTimeOfAReconfigurationIsCountedAndAllTimesAddUp) {
  FakeJob job(3, two_epochs(), even_plan(3, 10));
  job.script.admit_at_step(10, {'w', 3});
  Faults faults;
  faults.at_point = [](std::uint32_t index, Point at, Step now) {
    if (index == 1 && at == Point::kApplied && now.value == 5) throw Killed{};
  };
  for (const Outcome& outcome : run_drill({job, 4, kEpochRecords}, faults)) {
    if (outcome.killed) continue;
    EXPECT_NEAR(sum_of(outcome.account), to_seconds(outcome.wall), 0.05);
    EXPECT_GT(outcome.account.reconfigure, 0);
  }
}

// Anything may happen to every member except w0, which always has the newest settled state.
TEST(Recovery, UnderRandomFailuresEachRecordEntersTheModelOnceAnEpoch) {
  for (std::uint32_t seed = 1; seed <= all_or_some(60U, 20U); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t size = 2 + below(3);
    const std::uint32_t newcomers = below(3);
    FakeJob job(size, two_epochs(), even_plan(size, 5 + below(10), 1 + below(2)));
    for (std::uint32_t i = 0; i < newcomers; ++i) {
      job.script.admit_at_step(1 + below(40), {'w', size + i});
    }
    if (below(3) == 0) job.script.abort_at_step(1 + below(40), false);
    struct Plan {
      std::uint64_t generation, number;
      std::uint32_t index;
      OperationKind kind;
      Fate fate;
    };
    std::vector<Plan> plans;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto kind = static_cast<OperationKind>(below(4));
      const std::uint64_t number = is_link(kind) ? below(3) : below(12);
      const std::uint32_t index = below(size + newcomers);
      const auto fate = index == 0 ? Fate::kBreaks : static_cast<Fate>(1 + below(3));
      plans.push_back({1 + below(6), number, index, kind, fate});
    }
    Faults faults;
    faults.in_collective = [&](std::uint64_t generation, std::uint32_t index, OperationKind kind,
                               std::uint64_t number) {
      for (const Plan& p : plans) {
        if (p.generation == generation && p.index == index && p.kind == kind &&
            p.number == number) {
          return p.fate;
        }
      }
      return Fate::kGoesOn;
    };
    const auto outcomes = run_drill({job, size + newcomers, kEpochRecords}, faults);
    expect_all_went_well(job, outcomes);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace antdt::trainer
