// What a server of `sync = "hybrid"` does with the messages of members.
#include "trainer/ps/steps/staged_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/overloaded.h"
#include "trainer/ps/steps/step_server.h"

namespace antdt::ps::staged_steps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kMembers = 2;

steps::Concluded after(std::uint64_t generation, std::uint64_t step, double weight = 1) {
  return {Generation{generation}, kMembers, Step{step}, weight, 1, 0, {}};
}

std::vector<TableGradient> part(std::uint64_t key, float gradient) {
  return {{0, {{key}, {gradient}}}};
}

std::string text(const steps::Effect& effect) {
  return std::visit(
      Overloaded{[](const steps::ApplyStep& e) {
                   return fmt::format("apply {}: {} parts /{}", e.step, e.parts.size(), e.weight);
                 },
                 [](const steps::TakeBack& e) { return fmt::format("take back {}", e.step); },
                 [](const steps::ForgetBefore&) { return std::string("forget before"); },
                 [](const steps::WriteCut& e) {
                   return fmt::format("write {} at {} to {}", e.number, e.step, e.directory);
                 },
                 [](const steps::RowsAreCurrent&) { return std::string("rows"); },
                 [](const steps::PartIsStaged&) { return std::string("staged"); },
                 [](const steps::RefuseStale& e) { return "stale: " + e.why; },
                 [](const steps::RefuseUnfit& e) { return "unfit: " + e.why; }},
      effect);
}

class StagedStepsTest : public ::testing::Test {
 protected:
  std::vector<std::string> wants(const steps::Concluded& concluded) {
    return tell(steps::RowsWanted{concluded});
  }
  std::vector<std::string> stages(const steps::Concluded& concluded, std::uint32_t rank) {
    return tell(steps::PartArrived{concluded, rank, part(rank, 1)});
  }
  void stage_all(const steps::Concluded& concluded) {
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) stages(concluded, rank);
  }
  std::vector<std::string> tell(const steps::Input& input) {
    steps::Effects effects;
    steps_.step(input, effects);
    std::vector<std::string> lines;
    for (const steps::Effect& effect : effects) lines.push_back(text(effect));
    return lines;
  }

  StagedSteps steps_;
};

TEST_F(StagedStepsTest, AppliesAStepWhenAMemberHasConcludedIt) {
  EXPECT_THAT(wants(after(1, 0)), ElementsAre("forget before", "rows"));
  EXPECT_THAT(stages(after(1, 0), 0), ElementsAre("staged"));
  EXPECT_THAT(stages(after(1, 0), 1), ElementsAre("staged"));
  EXPECT_THAT(wants(after(1, 1, 8)), ElementsAre("apply 1: 2 parts /8", "rows"));
  EXPECT_THAT(wants(after(1, 1, 8)), ElementsAre("rows"));
}

TEST_F(StagedStepsTest, APartOfTheNextStepAlsoConcludes) {
  stage_all(after(1, 0));
  EXPECT_THAT(stages(after(1, 1, 8), 0), ElementsAre("apply 1: 2 parts /8", "staged"));
}

TEST_F(StagedStepsTest, AStepOfNoWeightDropsItsParts) {
  stage_all(after(1, 0));
  EXPECT_THAT(wants(after(1, 1, 0)), ElementsAre("apply 1: 0 parts /0", "rows"));
  EXPECT_EQ(steps_.staged(), 0U);
}

TEST_F(StagedStepsTest, APartThatArrivesAgainAfterItsStepChangesNothing) {
  stage_all(after(1, 0));
  wants(after(1, 1));
  EXPECT_THAT(stages(after(1, 0), 0), ElementsAre("staged"));
  EXPECT_EQ(steps_.staged(), 0U);
}

TEST_F(StagedStepsTest, TakesBackAStepThatNoMemberOfANewGenerationHas) {
  stage_all(after(1, 0));
  wants(after(1, 1));
  stages(after(1, 1), 0);
  EXPECT_THAT(wants(after(2, 0)), ElementsAre("take back 1", "forget before", "rows"));
  EXPECT_EQ(steps_.after(), Step{0});
  EXPECT_EQ(steps_.staged(), 0U);
}

TEST_F(StagedStepsTest, AppliesAStepThatTheMembersOfANewGenerationHave) {
  stage_all(after(1, 0));
  EXPECT_THAT(wants(after(2, 1, 8)), ElementsAre("apply 1: 2 parts /8", "forget before", "rows"));
}

TEST_F(StagedStepsTest, DropsThePartsOfAStepThatWasNotConcluded) {
  stages(after(1, 0), 0);
  EXPECT_THAT(wants(after(2, 0)), ElementsAre("forget before", "rows"));
  EXPECT_EQ(steps_.staged(), 0U);
}

TEST_F(StagedStepsTest, RefusesAnEarlierGeneration) {
  wants(after(2, 0));
  EXPECT_THAT(stages(after(1, 0), 0), ElementsAre(HasSubstr("stale: generation 1")));
}

TEST_F(StagedStepsTest, RefusesAStepWithoutAllItsParts) {
  stages(after(1, 0), 0);
  EXPECT_THAT(wants(after(1, 1)), ElementsAre(HasSubstr("unfit: step 1 is concluded")));
  EXPECT_THAT(wants(after(1, 2)), ElementsAre(HasSubstr("unfit: step 2 is concluded")));
}

// What is kept is of the last step only, and a settled generation is the base of all later ones.
TEST_F(StagedStepsTest, RefusesAGenerationThatBeginsTwoStepsBehind) {
  stage_all(after(1, 0));
  stage_all(after(1, 1));
  wants(after(1, 2));
  EXPECT_THAT(wants(after(2, 0)), ElementsAre(HasSubstr("unfit: generation 2")));
}

TEST_F(StagedStepsTest, AStepThatASettledGenerationHasStays) {
  stage_all(after(1, 0));
  wants(after(2, 1));
  EXPECT_THAT(wants(after(3, 0)), ElementsAre(HasSubstr("unfit: generation 3")));
}

TEST_F(StagedStepsTest, WritesACheckpointOnceAndBeforeAnythingElse) {
  stage_all(after(1, 0));
  steps::Concluded concluded = after(1, 1, 8);
  concluded.cut = 4;
  concluded.directory = "here";
  EXPECT_THAT(stages(concluded, 0),
              ElementsAre("apply 1: 2 parts /8", "write 4 at 1 to here", "staged"));
  EXPECT_THAT(stages(concluded, 1), ElementsAre("staged"));
}

TEST_F(StagedStepsTest, RefusesWhatNoMemberCanHaveConcluded) {
  EXPECT_THAT(wants(after(0, 0)), ElementsAre(HasSubstr("unfit")));
  EXPECT_THAT(wants(after(1, 0, -1)), ElementsAre(HasSubstr("unfit: a step cannot have")));
  EXPECT_THAT(wants(after(1, 0, NAN)), ElementsAre(HasSubstr("unfit: a step cannot have")));
  EXPECT_THAT(stages(after(1, 0), kMembers), ElementsAre(HasSubstr("unfit: rank 2 of 2")));
  wants(after(1, 0));
  steps::Concluded more = after(1, 0);
  more.members = 3;
  EXPECT_THAT(stages(more, 2), ElementsAre(HasSubstr("unfit: generation 1 has 2 members")));
}

// ------------------------------------------------------------------------- rows

class StepServerTest : public ::testing::Test {
 protected:
  static Store store() {
    TableSpec spec;
    spec.name = "table";
    spec.width = 2;
    spec.rule.kind = UpdateRule::Kind::kAdagrad;
    spec.rule.learning_rate = 0.5F;
    spec.init = TableSpec::Init::kUniform;
    spec.init_scale = 1;
    return {{spec}, 7};
  }
  void stage(const steps::Concluded& concluded, std::vector<std::uint64_t> keys, float gradient) {
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
      std::vector<float> values(2 * keys.size(), gradient);
      const auto outcome =
          server_.take(steps::PartArrived{concluded, rank, {{0, {keys, values}}}}, store_);
      ASSERT_TRUE(std::holds_alternative<StepServer::Staged>(outcome.answer));
    }
  }
  // The rows, and the state of their optimizer.
  std::vector<float> rows(const std::vector<std::uint64_t>& keys) {
    std::vector<float> all;
    store_.for_each_row(0, keys, [&](std::size_t, auto values, auto state) {
      all.insert(all.end(), values.begin(), values.end());
      all.insert(all.end(), state.begin(), state.end());
    });
    return all;
  }
  void want(const steps::Concluded& concluded) {
    const auto outcome = server_.take(steps::RowsWanted{concluded}, store_);
    ASSERT_TRUE(std::holds_alternative<StepServer::Current>(outcome.answer));
  }

  Store store_ = store();
  StepServer server_{Step{}};
};

TEST_F(StepServerTest, AStepThatIsTakenBackLeavesNoBitBehind) {
  const std::vector<std::uint64_t> keys{1, 2, 9};
  stage(after(1, 0), {1, 2}, 0.25F);
  want(after(1, 1, 4));
  const std::vector<float> then = rows(keys);
  stage(after(1, 1, 4), {2, 9}, 3);
  want(after(1, 2, 4));
  EXPECT_NE(rows(keys), then);
  want(after(2, 1, 4));
  EXPECT_EQ(rows(keys), then);
  EXPECT_EQ(server_.taken_back(), 1U);
}

TEST_F(StepServerTest, OnlyTheLastStepIsTakenBack) {
  stage(after(1, 0), {1}, 1);
  want(after(1, 1));
  const std::vector<float> then = rows({1});
  stage(after(1, 1), {}, 0);
  want(after(1, 2, 0));
  want(after(2, 1));
  EXPECT_EQ(rows({1}), then);
}

// The sum of the parts, divided by the weight: one step of the rule, not one for each part.
TEST_F(StepServerTest, APartOfEachMemberMakesOneStep) {
  Store alone = store();
  alone.update(0, std::vector<std::uint64_t>{5}, std::vector<float>{4, 4}, 0.25F);
  std::vector<float> expected;
  alone.for_each_row(0, std::vector<std::uint64_t>{5}, [&](std::size_t, auto values, auto state) {
    expected.insert(expected.end(), values.begin(), values.end());
    expected.insert(expected.end(), state.begin(), state.end());
  });
  stage(after(1, 0), {5}, 2);
  want(after(1, 1, 4));
  EXPECT_EQ(rows({5}), expected);
}

}  // namespace
}  // namespace antdt::ps::staged_steps_test
