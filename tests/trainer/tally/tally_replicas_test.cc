// Replicas of the tally that differ: what is merged into one is in it exactly once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/trainer/broken_collective.h"
#include "tests/trainer/collective/testing.h"
#include "tests/trainer/local_group.h"
#include "trainer/sync/ds_sync/groups.h"
#include "trainer/tally/recent_counts.h"
#include "trainer/tally/tally_engine.h"

namespace antdt::trainer {
namespace {

using testing::Each;
using testing::ElementsAre;

data::DataShape records_of_replicas(std::uint64_t records) {
  data::DataShape shape;
  shape.id_width = 1;
  shape.id_rows = records;
  shape.classes = 1;
  return shape;
}

data::Examples records(std::vector<std::int64_t> ids) {
  data::Examples out;
  out.count = ids.size();
  out.labels.assign(ids.size(), 1.0F);
  out.ids = std::move(ids);
  return out;
}

std::unique_ptr<Engine> tally_of(std::uint64_t count) {
  auto engine = make_tally_engine(records_of_replicas(count));
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

std::vector<float> counters(Engine& engine) {
  const auto part = engine.state_parts()[0];
  std::vector<float> counts(part.size() / sizeof(float));
  std::memcpy(counts.data(), part.data(), part.size());
  return counts;
}

void train(Engine& engine, Collective& members, std::vector<std::int64_t> ids) {
  engine.begin_local_step(members);
  ASSERT_TRUE(engine.compute(records(std::move(ids)), true));
  ASSERT_TRUE(engine.apply(1));
}

TEST(RecentCounts, OfTwoReplicasTakesWhatEitherHasOfEachMember) {
  RecentCounts one, other;
  one.add(std::vector<RecentCounts::Entry>{{3, 0, 1}, {5, 0, 1}});
  one.add(std::vector<RecentCounts::Entry>{{4, 0, 1}, {5, 0, 1}});
  other.add(std::vector<RecentCounts::Entry>{{5, 0, 1}, {5, 1, 1}, {9, 1, 2}});
  one.merge(other.entries());
  EXPECT_THAT(one.entries(), ElementsAre(RecentCounts::Entry{3, 0, 1}, RecentCounts::Entry{4, 0, 1},
                                         RecentCounts::Entry{5, 0, 2}, RecentCounts::Entry{5, 1, 1},
                                         RecentCounts::Entry{9, 1, 2}));
}

// Members mix in the groups of DS-Sync, over real connections.
class TallyReplicas : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, TallyReplicas, testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return layout.param.name; });

TEST_P(TallyReplicas, ThatMixedInGroupsHaveEachRecordOnceWhenTheyAreConsolidated) {
  constexpr std::uint32_t kMembers = 6;
  constexpr std::int64_t kSteps = 12, kBatch = 5;
  const sync::ds_sync::GroupSchedule schedule(kMembers, 3);
  run_as_threads(
      kMembers,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        std::map<std::vector<std::uint32_t>, std::unique_ptr<Collective>> made;
        const auto engine = tally_of(kMembers * kSteps * kBatch);
        for (std::int64_t i = 0; i < kSteps; ++i) {
          for (const auto& group : schedule.groups(Step{static_cast<std::uint64_t>(i)})) {
            if (std::ranges::find(group, rank) == group.end()) continue;
            if (!made[group]) {
              auto joined = collective.group(group);
              ASSERT_TRUE(joined) << joined.error().message;
              made[group] = std::move(*joined);
            }
            ASSERT_TRUE(engine->mix(*made[group]));
          }
          std::vector<std::int64_t> ids(kBatch);
          std::iota(ids.begin(), ids.end(), (i * kMembers + rank) * kBatch);
          train(*engine, collective, ids);
        }
        EXPECT_THAT(counters(*engine), Each(0.0F)) << "replicas differ as yet";
        ASSERT_TRUE(engine->consolidate(collective));
        EXPECT_THAT(counters(*engine), Each(1.0F));
        made.clear();
      },
      [layout = GetParam()](std::uint32_t rank) {
        CollectiveOptions options = layout.options_of(rank);
        options.groups = true;
        return options;
      });
}

TEST(TallyReplica, ThatBothTrainedARecordCountItTwice) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const auto engine = tally_of(4);
    train(*engine, collective, {1, collective.rank() == 0 ? 0 : 2});
    ASSERT_TRUE(engine->mix(collective));
    ASSERT_TRUE(engine->mix(collective)) << "what both have is not counted again";
    ASSERT_TRUE(engine->apply(1));
    if (collective.rank() == 0) train(*engine, collective, {0});
    ASSERT_TRUE(engine->consolidate(collective));
    EXPECT_THAT(counters(*engine), ElementsAre(2, 2, 1, 0));
  });
}

TEST(TallyReplica, HaveWhatTheyHadBeforeAStepThatIsDiscarded) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const auto engine = tally_of(3);
    train(*engine, collective, {collective.rank()});
    ASSERT_TRUE(engine->mix(collective));
    engine->begin_local_step(collective);
    ASSERT_TRUE(engine->compute(records({2}), true));
    engine->discard();
    LocalGroup only(1);
    ASSERT_TRUE(engine->consolidate(*only.member(0)));
    EXPECT_THAT(counters(*engine),
                collective.rank() == 0 ? ElementsAre(1, 0, 0) : ElementsAre(0, 1, 0));
  });
}

TEST(TallyReplica, HaveWhatTheyHadBeforeWhatBroke) {
  LocalGroup group(2);
  group.run([&](Collective& collective) {
    const auto engine = tally_of(3);
    train(*engine, collective, {collective.rank()});
    BrokenCollective broken;
    EXPECT_FALSE(engine->mix(broken));
    engine->discard();
    EXPECT_FALSE(engine->consolidate(broken));
    EXPECT_THAT(counters(*engine), Each(0.0F));
    ASSERT_TRUE(engine->consolidate(collective));
    EXPECT_THAT(counters(*engine), ElementsAre(1, 1, 0));
    train(*engine, collective, {2});
    engine->state_replaced();  // by one of another member, which has no such record
    ASSERT_TRUE(engine->consolidate(collective));
    EXPECT_THAT(counters(*engine), ElementsAre(1, 1, 0));
  });
}

TEST(TallyReplica, OfOneMemberAreTheModel) {
  LocalGroup group(1);
  group.run([&](Collective& collective) {
    const auto engine = tally_of(2);
    train(*engine, collective, {1});
    EXPECT_THAT(counters(*engine), ElementsAre(0, 1));
  });
}

}  // namespace
}  // namespace antdt::trainer
