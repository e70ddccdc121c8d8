// Rows on servers follow the steps of members, whoever is lost.
#include "tests/trainer/ps/steps_job.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/sanitized.h"

namespace antdt::ps::steps_job {
namespace {

TEST(StepsJob, RowsContainTheStepsOfTheReplicaInThousandsOfJobs) {
  const std::uint64_t jobs = all_or_some<std::uint64_t>(4000, 300);
  std::uint64_t lost_workers = 0, lost_servers = 0, taken_back = 0, restored = 0;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    Job job(seed, Sabotage::kNone);
    ASSERT_EQ(job.run(), "") << "seed " << seed;
    lost_workers += job.lost_workers;
    lost_servers += job.lost_servers;
    taken_back += job.taken_back;
    restored += job.restored;
  }
  RecordProperty("lost_workers", std::to_string(lost_workers));
  RecordProperty("lost_servers", std::to_string(lost_servers));
  RecordProperty("taken_back", std::to_string(taken_back));
  RecordProperty("restored", std::to_string(restored));
  // All that the rules are about has happened.
  EXPECT_GT(lost_workers, jobs);
  EXPECT_GT(lost_servers, jobs / 4);
  EXPECT_GT(taken_back, jobs / 8);
  EXPECT_GT(restored, jobs / 4);
}

// The comparison can fail: it finds each broken rule.
TEST(StepsJob, ABrokenRuleIsFound) {
  for (const auto sabotage : {Sabotage::kNoTakeBack, Sabotage::kNoFence, Sabotage::kGatherEarly,
                              Sabotage::kSpeakUnsettled, Sabotage::kSkipEmpty, Sabotage::kCutLate,
                              Sabotage::kForgetWeight}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200 && !(kSanitized && found > 0); ++seed) {
      found += Job(seed, sabotage).run().empty() ? 0 : 1;
    }
    RecordProperty("sabotage_" + std::to_string(static_cast<int>(sabotage)), found);
    EXPECT_GT(found, 0) << static_cast<int>(sabotage);
  }
}

}  // namespace
}  // namespace antdt::ps::steps_job
