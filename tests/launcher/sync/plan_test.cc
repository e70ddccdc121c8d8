// What a plan concludes from measurements that are made up here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/plan/domain_cost.h"
#include "launcher/plan/drilled_link.h"
#include "launcher/plan/link_cost.h"
#include "launcher/plan/plan_view.h"
#include "launcher/plan/predict.h"
#include "launcher/plan/reasons.h"
#include "tests/launcher/job_text.h"

namespace antdt::launcher::plan {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::HasSubstr;

constexpr double kMs = 1e-3;

// Two workers on one host, which train 1,024 samples in a step.
Measured on_one_host() {
  Measured m;
  m.global_batch = 1024;
  m.hosts = {{"here", 2, 2}};
  m.servers = {{2, {2}}};
  m.model.sums = {200'000};
  m.model.table_rows = 65'536;
  m.model.row_bytes = 36;
  m.model.rows_of_batch = {{512, 3000}, {1024, 4000}};
  m.alone = {{512, 3 * kMs}, {1024, 6 * kMs}};
  m.trials = {{Strategy::kAllReduce, 2, 0, 512, 5 * kMs, 3 * kMs, 3.5 * kMs, 400},
              {Strategy::kServersBsp, 2, 2, 512, 8 * kMs, 4 * kMs, 4 * kMs, 400},
              {Strategy::kServersAsp, 2, 2, 512, 6 * kMs, 4 * kMs, 4 * kMs, 400}};
  m.impossible[Strategy::kAllReduceSparse] = "not here";
  return m;
}

const Prediction& of(const Plan& plan, Strategy strategy, std::uint32_t servers = 0) {
  for (const Prediction& p : plan.predictions) {
    if (p.strategy == strategy && (servers == 0 || p.servers == servers)) return p;
  }
  ADD_FAILURE() << "no such prediction";
  return plan.predictions.front();
}

const Prediction& recommended(const Plan& plan) { return plan.predictions.at(*plan.recommended); }

TEST(Curve, IsLinearBetweenItsPointsAndOutsideOfThem) {
  const Curve curve = {{100, 2}, {200, 3}, {400, 7}};
  EXPECT_DOUBLE_EQ(at(curve, 150), 2.5);
  EXPECT_DOUBLE_EQ(at(curve, 300), 5);
  EXPECT_DOUBLE_EQ(at(curve, 500), 9);
  EXPECT_DOUBLE_EQ(at(curve, 50), 1.5);
  EXPECT_DOUBLE_EQ(at({{100, 2}}, 50), 1);
  EXPECT_DOUBLE_EQ(at({}, 50), 0);
}

TEST(LinkCost, ALargeSumGoesAroundTheRing) {
  const Link link{1 * kMs, 1e8};
  // 2 (n - 1) rounds of a quarter of 4 MB.
  EXPECT_NEAR(sum_s(link, 4, 4e6), 6 * (1 * kMs + 10 * kMs), 1e-9);
}

TEST(LinkCost, ASmallSumTakesOneRoundForEachDoubling) {
  const Link link{1 * kMs, 1e8};
  EXPECT_NEAR(sum_s(link, 4, 1000), 2 * (1 * kMs + 1e-5), 1e-9);
  // Members beyond a power of two give their values to another one, and get the sum.
  EXPECT_NEAR(sum_s(link, 3, 1000), 3 * (1 * kMs + 1e-5), 1e-9);
}

TEST(LinkCost, NothingIsSentByOneMember) {
  const Link link{1 * kMs, 1e8};
  EXPECT_EQ(sum_s(link, 1, 4e6), 0);
  EXPECT_EQ(gather_s(link, 1, 4e6), 0);
  EXPECT_EQ(ds_sync_s(link, 1, {}), 0);
}

TEST(LinkCost, GatheringTakesOneRoundForEachDoublingAndAllBytesButTheOwn) {
  EXPECT_NEAR(gather_s({1 * kMs, 1e6}, 4, 8000), 2 * kMs + 6 * kMs, 1e-9);
  // A drill holds back each of the messages of a member, of which one round has two.
  EXPECT_NEAR(gather_s({1 * kMs, 1e6, true}, 4, 8000), 3 * kMs + 6 * kMs, 1e-9);
}

TEST(LinkCost, GroupsMixAdamsMomentsWithTheParameters) {
  const Link link{0, 1e8};
  ModelSize model;
  model.sums = {3e6, 1e6};
  const double of_parameters = ds_sync_s(link, 16, model);
  model.mixed = 3;
  // In a group of four, twice more 2 * 3/4 of 4 MB.
  EXPECT_NEAR(ds_sync_s(link, 16, model) - of_parameters, 2 * 60 * kMs, 1e-9);
}

TEST(LinkCost, RowsAreSentIfTheyAreFewOfTheTable) {
  ModelSize model;
  model.table_rows = 1'000'000;
  model.row_bytes = 36;
  EXPECT_TRUE(rows_are_quicker(model, 2, 10'000));
  model.table_rows = 10'000;
  EXPECT_FALSE(rows_are_quicker(model, 2, 10'000));
}

TEST(Plan, WhatWasTriedOnOneHostIsPredictedAsItWasTried) {
  const Plan plan = plan_of(on_one_host());
  const Prediction& p = of(plan, Strategy::kAllReduce);
  EXPECT_NEAR(p.step_s, 5 * kMs, 1e-9);
  EXPECT_NEAR(p.compute_s, 3 * kMs, 1e-9);
  EXPECT_NEAR(p.waiting_s, 0.5 * kMs, 1e-9);
  EXPECT_NEAR(p.exchange_s, 1.5 * kMs, 1e-9);
  EXPECT_NEAR(p.samples_per_s, 1024 / (5 * kMs), 1e-3);
  EXPECT_TRUE(p.as_tried);
}

TEST(Plan, BoundedStalenessTakesWhatNoBoundTakes) {
  const Plan plan = plan_of(on_one_host());
  const Prediction& p = of(plan, Strategy::kServersSsp);
  EXPECT_NEAR(p.step_s, 6 * kMs, 1e-9);
  EXPECT_FALSE(p.as_tried);
}

TEST(Plan, TheFastestIsRecommendedWithTheReason) {
  const Plan plan = plan_of(on_one_host());
  ASSERT_TRUE(plan.recommended);
  EXPECT_EQ(recommended(plan).strategy, Strategy::kAllReduce);
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("allreduce takes 5.00 ms for a step of 1024")));
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("1.20 times as long")));
}

TEST(Plan, OfWaysThatAreAsFastTheOneThatChangesLessIsRecommended) {
  Measured m = on_one_host();
  m.trials[1].step_s = 4.9 * kMs;
  m.trials[2].step_s = 4.8 * kMs;
  EXPECT_EQ(recommended(plan_of(m)).strategy, Strategy::kAllReduce);
  m.trials[2].step_s = 4 * kMs;
  const Plan plan = plan_of(m);
  EXPECT_EQ(recommended(plan).strategy, Strategy::kServersSsp);  // as fast as ps-asp, and bounded
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("lack some updates")));
}

TEST(Plan, ADifferenceThatMayBeTheErrorOfTheTrialsIsCalledSo) {
  Measured m = on_one_host();
  for (Trial& trial : m.trials) trial.error = 0.3;
  EXPECT_THAT(plan_of(m).reasons, Contains(HasSubstr("the error of measurement, 85 %")));
  for (Trial& trial : m.trials) trial.error = 0.001;
  EXPECT_THAT(plan_of(m).reasons, testing::Not(Contains(HasSubstr("the error of measurement"))));
}

TEST(Plan, AWayThatAJobCannotUseIsNeverRecommendedAndSaysWhy) {
  Measured m = on_one_host();
  m.impossible[Strategy::kAllReduce] = "because";
  const Plan plan = plan_of(m);
  EXPECT_EQ(of(plan, Strategy::kAllReduce).unknown, "because");
  EXPECT_NE(recommended(plan).strategy, Strategy::kAllReduce);
  for (const Prediction& p : plan.predictions) m.impossible[p.strategy] = "because";
  const Plan none = plan_of(m);
  EXPECT_FALSE(none.recommended);
  EXPECT_THAT(none.reasons, Contains(HasSubstr("no way of synchronisation can be used")));
}

TEST(Plan, WithoutRoomForServersTheirWaysSayWhy) {
  Measured m = on_one_host();
  m.servers.clear();
  m.impossible[Strategy::kServersBsp] = "no host has room for servers";
  EXPECT_EQ(of(plan_of(m), Strategy::kServersBsp).unknown, "no host has room for servers");
}

TEST(Plan, AnEndedRunOfDsSyncTellsWhatItsStepsTook) {
  Measured m = on_one_host();
  m.trials = {{Strategy::kDsSync, 2, 0, 512, 5 * kMs, 3 * kMs, 3.5 * kMs, 400}};
  const Plan plan = plan_of(m);
  EXPECT_NEAR(of(plan, Strategy::kDsSync).step_s, 5 * kMs, 1e-9);
  EXPECT_TRUE(of(plan, Strategy::kDsSync).as_tried);
  EXPECT_FALSE(plan.recommended);
}

TEST(Plan, DsSyncIsComputedButCannotBeRecommended) {
  Measured m = on_one_host();
  m.link = Link{0, 1e6};
  m.hosts = {{"a", 1, 1}, {"b", 1, 1}};
  const Plan plan = plan_of(m);
  EXPECT_TRUE(of(plan, Strategy::kDsSync).known());
  EXPECT_TRUE(of(plan, Strategy::kDsSync).computed_only);
  EXPECT_NE(recommended(plan).strategy, Strategy::kDsSync);
}

TEST(Plan, ALinkBetweenHostsIsAddedToWhatWasTriedOnOne) {
  Measured m = on_one_host();
  m.hosts = {{"a", 2, 1}, {"b", 2, 1}};
  m.servers = {{2, {1, 1}}};
  m.link = Link{1 * kMs, 0};
  const Plan plan = plan_of(m);
  // Slots, the sum, and the rows are one round each; the counting of rows is hidden by computing.
  EXPECT_NEAR(of(plan, Strategy::kAllReduce).step_s, (5 + 3) * kMs, 1e-9);
  // Pull, push and commit, there and back; without a barrier they are hidden.
  EXPECT_NEAR(of(plan, Strategy::kServersBsp).step_s, (8 + 6) * kMs, 1e-9);
  EXPECT_NEAR(of(plan, Strategy::kServersAsp).step_s, 6 * kMs, 1e-9);
  EXPECT_FALSE(of(plan, Strategy::kAllReduce).as_tried);
}

TEST(Plan, OnLinksOfLittleBandwidthTheBytesDecide) {
  Measured m = on_one_host();
  m.hosts = {{"a", 2, 1}, {"b", 2, 1}};
  m.servers = {{2, {1, 1}}};
  m.link = Link{0, 1e6};
  const Plan plan = plan_of(m);
  // The sum of 200 kB over two members by doubling or by the ring: 200 kB through each link.
  // Rows: half of 2 x 3000 x 44 bytes. Slots: half of 104 bytes.
  EXPECT_NEAR(of(plan, Strategy::kAllReduce).step_s, 0.005 + 0.2 + 0.132 + 0.000052, 1e-6);
  // In: half of a pull, 308 kB, and half of a push of the other worker, 332 kB.
  EXPECT_NEAR(of(plan, Strategy::kServersAsp).step_s, 0.154 + 0.166, 1e-6);
  EXPECT_NEAR(of(plan, Strategy::kServersBsp).step_s, 0.008 + 0.154 + 0.166, 1e-6);
}

TEST(Plan, ADrillHoldsBackOneMessageAfterTheOther) {
  Measured m = on_one_host();
  m.link = Link{10 * kMs, 0, true};
  const Plan plan = plan_of(m);
  // Slots, sum, rows, and the part of the counting that computing does not hide.
  EXPECT_NEAR(of(plan, Strategy::kAllReduce).step_s, (5 + 30 + 7) * kMs, 1e-9);
  // Two pulls, two pushes, and a commit.
  EXPECT_NEAR(of(plan, Strategy::kServersBsp).step_s, (8 + 50) * kMs, 1e-9);
  EXPECT_NEAR(of(plan, Strategy::kServersAsp).step_s, (3 + 50) * kMs, 1e-9);
}

TEST(Plan, OnlyDrillsThatSlowAllMessagesOfAllWorkersAreALink) {
  const auto link_of = [](const std::string& rule) {
    const auto config = load_text(
        kJob + "[[domain]]\nname = \"east\"\nworkers = [\"w0\"]\n[[inject]]\n" + rule, "job.toml");
    EXPECT_TRUE(config) << config.error().message;
    std::vector<std::string> notes;
    const auto link = drilled_link(*config, notes);
    EXPECT_EQ(notes.empty(), link.has_value());
    return link;
  };
  const std::string slow = "latency = \"20ms\"\nbandwidth = \"50MB\"\n";
  const auto link = link_of("workers = [\"*\"]\n" + slow);
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->latency_s, 20 * kMs, 1e-9);
  EXPECT_TRUE(link->held_back);
  EXPECT_FALSE(link->answers_held_back);
  EXPECT_FALSE(link_of("workers = [\"w1\"]\n" + slow));
  EXPECT_FALSE(link_of("workers = [\"*\"]\nchance = 0.5\nevery = \"1s\"\n" + slow));
  EXPECT_FALSE(link_of("domain = \"east\"\n" + slow));
  EXPECT_FALSE(link_of("workers = [\"*\"]\nto_workers = [\"w1\"]\n" + slow));
}

// Two domains of two hosts each, of two workers each, in the order of ranks.
DomainLinks two_domains(const Link& within, const Link& between) {
  return {{"east", "west"}, {{0, 2}, {0, 2}, {1, 2}, {1, 2}}, {0, 0, 1, 1}, within, between};
}

TEST(DomainCost, WithLinksThatAreAlikeItIsTheCostOfOneLink) {
  const Link link{1 * kMs, 1e8};
  const Paths paths = Paths::of_job(two_domains(link, link));
  for (const double bytes : {1000.0, 4e6}) {
    EXPECT_NEAR(sum_s(paths, bytes), sum_s(link, 4, bytes), 1e-9);
    EXPECT_NEAR(gather_s(paths, bytes), gather_s(link, 4, bytes), 1e-9);
  }
}

TEST(DomainCost, OnlyHopsBetweenDomainsTakeLong) {
  const DomainLinks links = two_domains({}, {50 * kMs, 0});
  const Paths paths = Paths::of_job(links);
  // Of six rounds around the ring a part crosses in every second one.
  EXPECT_NEAR(sum_s(paths, 4e6), 3 * 50 * kMs, 1e-9);
  // Of two rounds of doubling, in one.
  EXPECT_NEAR(sum_s(paths, 1000), 50 * kMs, 1e-9);
}

TEST(DomainCost, AllBytesOfTheRingCrossTheSlowestLinkOneAfterTheOther) {
  const Paths paths = Paths::of_job(two_domains({}, {0, 1e6}));
  EXPECT_NEAR(sum_s(paths, 4e6), 6.0, 1e-9);
}

TEST(DomainCost, AMessageHasAListOfIndicesOrABitmapOrAll) {
  EXPECT_DOUBLE_EQ(bytes_of_elements(0.01), 0.015);
  EXPECT_DOUBLE_EQ(bytes_of_elements(0.5), 0.5 + 1.0 / 32);
  EXPECT_DOUBLE_EQ(bytes_of_elements(1), 1);
}

TEST(DomainCost, GaiaSumsWithinDomainsAndSendsAPartBetweenThem) {
  ModelSize model;
  model.sums = {1e6};
  const DomainLinks links = two_domains({0, 1e9}, {50 * kMs, 1e7});
  GaiaStep step{0.2, 1e9, 0};
  // The sum of two members, what the leader passes on, and a quarter more room than is needed.
  // Slots of four leaders take two rounds, of which each crosses.
  const double within = 1 * kMs + 0.2 * kMs;
  EXPECT_NEAR(gaia_s(links, model, step), within + 50 * kMs + 25 * kMs + 100 * kMs, 1e-4);
  // A whole message in each tenth step: one latency more, and the bytes that have no room.
  step.whole_every = 10;
  EXPECT_NEAR(gaia_s(links, model, step), within + 175 * kMs + (50 + 75) * kMs / 10, 2e-4);
}

TEST(DomainCost, GroupsOfTwoAreInOneDomainInSomeSteps) {
  ModelSize model;
  model.sums = {1e6};
  DomainLinks links = two_domains({}, {0, 1e6});
  for (Group& group : links.groups) group.workers = 1;
  EXPECT_NEAR(ds_sync_s(links, model), 2.0 / 3, 1e-3);
}

Measured in_two_domains() {
  Measured m = on_one_host();
  m.hosts = {{"here", 2, 4}};
  m.model.table_rows = 0;
  m.domains = DomainLinks{{"east", "west"}, {{0, 2}, {1, 2}}, {0}, std::nullopt, {50 * kMs, 1e7}};
  return m;
}

TEST(Plan, ADrillBetweenDomainsIsALinkBetweenTheirLeaders) {
  const Plan plan = plan_of(in_two_domains());
  // The sum of 200 kB between two leaders, and slots.
  EXPECT_NEAR(of(plan, Strategy::kAllReduce).step_s, (5 + 50 + 20 + 50) * kMs, 1e-4);
  EXPECT_FALSE(of(plan, Strategy::kAllReduce).as_tried);
}

TEST(Plan, GaiaIsARangeUnlessItsMessagesWereMeasured) {
  Measured m = in_two_domains();
  m.updates.whole_every = 1e9;
  const Plan usual = plan_of(m);
  const Prediction& range = of(usual, Strategy::kGaia);
  ASSERT_TRUE(range.step_range_s);
  EXPECT_LT(range.step_range_s->least, range.step_range_s->most);
  EXPECT_DOUBLE_EQ(range.step_range_s->most, range.step_s);
  EXPECT_THAT(usual.caveats, Contains(HasSubstr("5 % (docs/results/gaia.md")));

  m.updates.share = 0.1;
  m.updates.messages = 40;
  m.trials.push_back({Strategy::kGaia, 4, 0, 256, 7 * kMs, 3 * kMs, 3 * kMs, 40});
  const Plan plan = plan_of(m);
  const Prediction& p = of(plan, Strategy::kGaia);
  EXPECT_FALSE(p.step_range_s);
  EXPECT_NEAR(p.step_s, (7 + 50 + 2.5 + 50) * kMs, 1e-4);
  EXPECT_THAT(plan.caveats, Contains(HasSubstr("the first 40 steps, a message had 10 %")));
}

TEST(Plan, WhatDependsOnTheDataIsRecommendedOnlyToJobsThatAskForIt) {
  Measured m = in_two_domains();
  m.updates.share = 0.01;
  m.updates.whole_every = 1e9;
  m.model.sums = {20e6};
  for (const auto s : {Strategy::kServersBsp, Strategy::kServersSsp, Strategy::kServersAsp}) {
    m.impossible[s] = "because";
  }
  EXPECT_EQ(recommended(plan_of(m)).strategy, Strategy::kAllReduce);
  m.asked = Strategy::kGaia;
  const Plan plan = plan_of(m);
  EXPECT_EQ(recommended(plan).strategy, Strategy::kGaia);
  EXPECT_THAT(plan.reasons, Contains(HasSubstr("the job's own trainer.sync is \"gaia\"")));
  const auto json = plan_json(m, plan);
  EXPECT_EQ(json["recommended"]["sync"], "gaia");
  EXPECT_EQ(json["measured"]["domains"]["groups"].size(), 2U);
}

TEST(Plan, WithoutSlowLinksBetweenDomainsGaiaSavesNothing) {
  const Plan plan = plan_of(on_one_host());
  EXPECT_THAT(of(plan, Strategy::kGaia).unknown, HasSubstr("there are none"));
}

TEST(Plan, ServersSendOnlyWhatCrossesOverLinksBetweenDomains) {
  Measured m = on_one_host();
  m.hosts = {{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}, {"d", 1, 1}};
  m.servers = {{2, {1, 1, 0, 0}}};
  m.link = Link{0, 1e6};
  m.domains = DomainLinks{
      {"east", "west"}, {{0, 1}, {0, 1}, {1, 1}, {1, 1}}, {0, 0, 1, 1}, Link{0, 1e9}, Link{0, 1e6}};
  const double across = of(plan_of(m), Strategy::kServersAsp).step_s;
  // Two workers of the west pull and push half of each server's rows.
  const double rows = at(m.model.rows_of_batch, 256);
  EXPECT_NEAR(across, (pulled_bytes(m.model, rows) + pushed_bytes(m.model, rows)) / 1e6 / 2 * 2,
              0.35);
  m.domains = std::nullopt;
  EXPECT_GT(of(plan_of(m), Strategy::kServersAsp).step_s, across);
}

// Nobody commits. The gradients of rows are on their way while the dense ones are summed; a drill
// holds back the member itself.
TEST(Plan, HybridTakesARoundWithServersAndTheLongerOfAnotherAndTheDenseSum) {
  Measured m = on_one_host();
  m.trials.push_back({Strategy::kHybrid, 2, 2, 512, 7 * kMs, 3 * kMs, 3.5 * kMs, 400});
  EXPECT_NEAR(of(plan_of(m), Strategy::kHybrid).step_s, 7 * kMs, 1e-9);
  m.hosts = {{"a", 2, 1}, {"b", 2, 1}};
  m.servers = {{2, {1, 1}}};
  m.link = Link{10 * kMs, 0};
  const double slots = gather_s(*m.link, 2, slots_bytes(2));
  const double longer = std::max(sum_s(*m.link, 2, 200'000), 2 * 10 * kMs);
  EXPECT_NEAR(of(plan_of(m), Strategy::kHybrid).step_s, 7 * kMs + 2 * 10 * kMs + longer + slots,
              1e-9);
  m.link->held_back = true;
  const double both = sum_s(*m.link, 2, 200'000) + gather_s(*m.link, 2, slots_bytes(2));
  EXPECT_NEAR(of(plan_of(m), Strategy::kHybrid).step_s, 7 * kMs + both + 2 * 2 * 10 * kMs, 1e-9);
  // Bytes: the dense gradients, and half of the rows each way, as the other half is on the own
  // host.
  m.link = Link{0, 1e6};
  const double rows = at(m.model.rows_of_batch, 512);
  const double all = 7 * kMs + sum_s(*m.link, 2, 200'000) + gather_s(*m.link, 2, slots_bytes(2)) +
                     rows * (36 + 36 + 8) / 2 / 1e6;
  EXPECT_NEAR(of(plan_of(m), Strategy::kHybrid).step_s, all, 1 * kMs);
}

TEST(Plan, ReplicasInTheBackgroundTakeAtMostWhatServersWithoutABarrierTake) {
  Measured m = on_one_host();
  m.hosts = {{"a", 2, 1}, {"b", 2, 1}};
  m.servers = {{2, {1, 1}}};
  m.link = Link{0, 1e6};
  const Plan plan = plan_of(m);
  EXPECT_LT(of(plan, Strategy::kShadowEasgd).step_s, of(plan, Strategy::kServersAsp).step_s);
  EXPECT_FALSE(of(plan, Strategy::kShadowEasgd).may_be_recommended());
}

TEST(Plan, WaysOfReplicasThatCostTheSameAreListedIfTheJobNamesThem) {
  Measured m = on_one_host();
  const auto lists = [](const Plan& plan, Strategy strategy) {
    return std::ranges::find(plan.predictions, strategy, &Prediction::strategy) !=
           plan.predictions.end();
  };
  EXPECT_FALSE(lists(plan_of(m), Strategy::kShadowMa));
  m.asked = Strategy::kShadowMa;
  const Plan plan = plan_of(m);
  EXPECT_FALSE(lists(plan, Strategy::kShadowBmuf));
  const Prediction& p = of(plan, Strategy::kShadowMa);
  EXPECT_EQ(p.step_s, of(plan, Strategy::kShadowEasgd).step_s);
  EXPECT_TRUE(p.may_be_recommended());
  m.asked = std::nullopt;  // a run that has ended
  m.trials = {{Strategy::kShadowBmuf, 2, 2, 512, 5 * kMs, 3 * kMs, 3.5 * kMs, 400}};
  EXPECT_NEAR(of(plan_of(m), Strategy::kShadowBmuf).step_s, 5 * kMs, 1e-9);
}

TEST(Plan, ADrillFromOneDomainToAnotherIsFoundAndOthersAreNot) {
  const std::string domains =
      "[[domain]]\nname = \"east\"\nworkers = [\"w0\"]\n"
      "[[domain]]\nname = \"west\"\nworkers = [\"w1\"]\n[[inject]]\ndomain = \"east\"\n";
  const std::string slow = "to_domain = \"west\"\nlatency = \"20ms\"\nbandwidth = \"5MB\"\n";
  const auto config = load_text(kJob + domains + slow, "job.toml");
  ASSERT_TRUE(config) << config.error().message;
  const auto link = drilled_between(*config);
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->latency_s, 20 * kMs, 1e-9);
  EXPECT_GT(link->bytes_per_s, 0);
  EXPECT_TRUE(drills_pairs(*config));
  std::vector<std::string> notes;
  EXPECT_FALSE(drilled_link(*config, notes));
  EXPECT_TRUE(notes.empty());
  const auto sometimes = load_text(kJob + domains + slow + "until = \"9s\"\n", "job.toml");
  ASSERT_TRUE(sometimes) << sometimes.error().message;
  EXPECT_FALSE(drilled_between(*sometimes));
}

TEST(Plan, WithoutTheLinksBetweenHostsNothingIsPredicted) {
  Measured m = on_one_host();
  m.hosts = {{"a", 2, 1}, {"b", 2, 1}};
  m.link_unknown = "the link from a to b could not be measured: refused";
  const Plan plan = plan_of(m);
  EXPECT_FALSE(plan.recommended);
  EXPECT_EQ(of(plan, Strategy::kAllReduce).unknown, m.link_unknown);
  EXPECT_THAT(plan.caveats, Contains(m.link_unknown));
}

TEST(Plan, SaysThatFewerWorkersAreAsFast) {
  Measured m = on_one_host();
  m.alone = {{512, 2.2 * kMs}, {1024, 4 * kMs}};
  EXPECT_THAT(plan_of(m).reasons, Contains(HasSubstr("one worker alone would take 4.00 ms")));
}

TEST(Plan, SaysWhichTrialIsTooShort) {
  Measured m = on_one_host();
  m.trials[0].steps = 3;
  EXPECT_THAT(plan_of(m).caveats, Contains(HasSubstr("trial of allreduce has 3 steps only")));
}

TEST(PlanView, SaysWhatToWriteIntoTheJob) {
  Measured m = on_one_host();
  m.trials[1].step_s = 3 * kMs;
  const auto lines = plan_lines(m, plan_of(m));
  EXPECT_THAT(lines, Contains("recommended: ps-bsp with 2 servers"));
  EXPECT_THAT(lines, Contains("  sync = \"ps-bsp\""));
  EXPECT_THAT(lines, Contains("  count = 2"));
  EXPECT_THAT(lines, Contains(HasSubstr("not here")));
}

TEST(PlanView, JsonHasWhatIsKnownAndWhyTheRestIsNot) {
  const Measured m = on_one_host();
  const auto json = plan_json(m, plan_of(m));
  EXPECT_EQ(json["recommended"]["sync"], "allreduce");
  EXPECT_EQ(json["predictions"][0]["basis"], "trial");
  for (const auto& p : json["predictions"]) {
    EXPECT_NE(p.contains("step_seconds"), p.contains("unknown")) << p;
  }
  EXPECT_EQ(json["measured"]["workers"], 2);
}

}  // namespace
}  // namespace antdt::launcher::plan
