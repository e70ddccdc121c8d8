#include "ctl/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/wire/codec.h"
#include "tests/ctl/membership/membership_fixture.h"

namespace antdt::ctl::membership {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ------------------------------------------------------------ the first meeting

TEST_F(MembershipTest, NothingBeginsBeforeTheLastExpectedMemberJoined) {
  EXPECT_TRUE(expect({w(2), w(0), w(1)}).empty());
  EXPECT_TRUE(joins(w(0)).empty());
  EXPECT_TRUE(joins(w(1)).empty());
  EXPECT_EQ(m.missing(), std::vector<Member>{w(2)});
  EXPECT_EQ(m.waiting_for(), "to join");
  const Effects effects = joins(w(2));
  ASSERT_EQ(all<PersistGeneration>(effects).size(), 1U);
  const auto forms = all<SendForm>(effects);
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[2].to, w(2)) << "ranks go host by host";
  EXPECT_EQ(forms[2].form.rank, 2U);
  EXPECT_EQ(forms[0].form.secret.size(), crypto::Secret::kBytes);
  EXPECT_EQ(forms[0].form.secret, forms[2].form.secret);
  EXPECT_EQ(forms[0].form.base, Generation{}) << "training begins";
}

TEST_F(MembershipTest, EachGenerationHasItsOwnSecretWhichFollowsFromTheFirstOneOnly) {
  const auto secrets_of = [](Membership& group) {
    std::vector<std::string> secrets;
    MonoTime now{seconds(1)};
    Effects effects;
    group.step(MembersExpected{{{w(0), "a", 0}}}, now, effects);
    for (const char* problem : {"", "it cannot connect", "nor can it now"}) {
      wire::Join again = join();
      again.problem = problem;
      group.step(MemberJoined{w(0), group.generation(), again}, now, effects);
      now += seconds(1);
      group.step(TimePassed{}, now, effects);
    }
    for (const Effect& e : effects) {
      if (const auto* form = std::get_if<SendForm>(&e)) secrets.push_back(form->form.secret);
    }
    return secrets;
  };
  const crypto::Secret drawn = crypto::Secret().derive("drawn");
  Membership one(drawn, kPatience);
  Membership same(drawn, kPatience);
  Membership other(crypto::Secret().derive("drawn by another incarnation"), kPatience);
  const std::vector<std::string> secrets = secrets_of(one);
  EXPECT_EQ(secrets.size(), 3U);
  std::set<std::string> all(secrets.begin(), secrets.end());
  EXPECT_EQ(secrets_of(same), secrets) << "what happened can be played again";
  for (const std::string& secret : secrets_of(other)) all.insert(secret);
  EXPECT_EQ(all.size(), 6U);
  const std::string kept = wire::encode(one.image());
  for (const std::string& secret : secrets) {
    EXPECT_EQ(kept.find(secret), std::string::npos) << "the journal knows a secret";
  }
  EXPECT_EQ(kept.find(drawn.for_wire()), std::string::npos);
}

TEST_F(MembershipTest, EveryRankIsToldWhereEverybodyIs) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  const auto rosters = all<SendRoster>(connect_all());
  ASSERT_EQ(rosters.size(), 3U);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(rosters[rank].to, w(rank));
    EXPECT_EQ((*rosters[0].roster.members)[rank].at, fmt::format("at w{}", rank));
  }
  EXPECT_EQ(rosters[0].roster.members, rosters[2].roster.members) << "one list, not a copy each";
  EXPECT_EQ(rosters[2].roster.for_wire().members.size(), 3U);
}

TEST_F(MembershipTest, SettlesWhenAllAreReadyAtTheSameStepAndHash) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  connect_all();
  EXPECT_TRUE(ready(w(0), 5).empty());
  EXPECT_TRUE(ready(w(1), 5).empty());
  const auto settled = all<SettleGeneration>(ready(w(2), 5));
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].step, Step{5});
  EXPECT_THAT(members_of(settled[0].members), ElementsAre(w(0), w(1), w(2)));
  EXPECT_THAT(settled[0].places, IsEmpty()) << "nobody was a member before";
  EXPECT_TRUE(m.settled());
  EXPECT_THAT(m.missing(), IsEmpty());
}

TEST_F(MembershipTest, ADifferentStateHashIsReportedWithBothHosts) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  connect_all();
  given(ReadyArrived{w(0), m.generation(), {Step{5}, 77, 0, {}}});
  given(ReadyArrived{w(1), m.generation(), {Step{5}, 77, 0, {}}});
  const auto cannot = all<GiveUp>(step(ReadyArrived{w(2), m.generation(), {Step{5}, 78, 0, {}}}));
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("w2 on b"));
}

TEST_F(MembershipTest, DifferencesAreSettledWhereDevicesDifferAndAllMembersCanDoThat) {
  const auto on = [&](const std::string& device, bool can = true) {
    wire::Join joined = join();
    joined.device.name = device;
    joined.settles_differences = can;
    return joined;
  };
  const auto told = [&](const wire::Join& first, const wire::Join& second) {
    Membership group(crypto::Secret().derive("drawn"), kPatience);
    Effects effects;
    group.step(MembersExpected{{{w(0), "a", 0}, {w(1), "b", 1}}}, MonoTime{}, effects);
    group.step(MemberJoined{w(0), {}, first}, MonoTime{}, effects);
    group.step(MemberJoined{w(1), {}, second}, MonoTime{}, effects);
    const auto forms = all<SendForm>(effects);
    EXPECT_EQ(forms.size(), 2U);
    EXPECT_EQ(forms.at(0).form.unlike, forms.at(1).form.unlike);
    return forms.at(0).form.unlike;
  };
  EXPECT_FALSE(told(on("cuda:H100"), on("cuda:H100")));
  EXPECT_TRUE(told(on("cuda:H100"), on("cuda:A100")));
  EXPECT_FALSE(told(on("cuda:H100"), on("cuda:A100", false)))
      << "a trainer of an earlier release would not take part in it";
}

TEST_F(MembershipTest, MembersThatCountTheOthersPlacesDifferentlyCannotSettle) {
  settle({w(0), w(1)});
  step(CollectiveStuck{"nobody moves"});
  join_all({w(0), w(1)});
  connect_all();
  given(ReadyArrived{w(0), m.generation(), {Step{5}, 77, 1, {{w(0).worker, 4}, {w(1).worker, 4}}}});
  const auto cannot = all<GiveUp>(step(
      ReadyArrived{w(1), m.generation(), {Step{5}, 77, 1, {{w(0).worker, 4}, {w(1).worker, 3}}}}));
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("do not agree on how far"));
}

TEST_F(MembershipTest, DifferentDataIsRefusedBeforeAnythingIsFormed) {
  expect({w(0), w(1), w(2)});
  given(MemberJoined{w(0), {}, join("x")});
  given(MemberJoined{w(1), {}, join("x")});
  const Effects effects = step(MemberJoined{w(2), {}, join("y")});
  EXPECT_TRUE(all<SendForm>(effects).empty());
  ASSERT_EQ(all<GiveUp>(effects).size(), 1U);
  EXPECT_THAT(all<GiveUp>(effects)[0].reason, testing::HasSubstr("fingerprint y"));
}

TEST_F(MembershipTest, AnAddressOfAnotherGenerationChangesNothing) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  given(AddressArrived{w(0), m.generation(), {}});
  given(AddressArrived{w(1), m.generation(), {}});
  EXPECT_TRUE(step(AddressArrived{w(2), m.generation().next(), {}}).empty());
  EXPECT_EQ(m.state(), Membership::State::kAddresses);
}

TEST_F(MembershipTest, ARepeatedMessageIsAnsweredOnceMore) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  const auto form = all<SendForm>(step(MemberJoined{w(1), {}, join()}));
  ASSERT_EQ(form.size(), 1U);
  EXPECT_EQ(form[0].form.rank, 1U);
  connect_all();
  const auto roster = all<SendRoster>(step(AddressArrived{w(1), m.generation(), {"x"}}));
  ASSERT_EQ(roster.size(), 1U);
  EXPECT_EQ(roster[0].to, w(1));
  EXPECT_EQ((*roster[0].roster.members)[0].at, "at w0");
}

TEST_F(MembershipTest, AStaleAttemptCannotJoin) {
  expect({w(0, 2), w(1), w(2)});
  EXPECT_TRUE(joins(w(0, 1)).empty());
  EXPECT_EQ(m.missing().size(), 3U);
}

// ------------------------------------------------------------ failed formations

TEST_F(MembershipTest, AMemberThatCannotConnectMakesAllFormOnceMore) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  connect_all();
  wire::Join failed = join();
  failed.problem = "connection refused";
  const Generation first = m.generation();
  const Effects again = step(MemberJoined{w(1), first, failed});
  EXPECT_EQ(all<ReportBroken>(again).size(), 1U);
  const auto aborts = all<SendAbort>(again);
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(aborts[0].generation, first);
  EXPECT_THAT(aborts[0].to, ElementsAre(w(0), w(2)));
  EXPECT_THAT(m.missing(), ElementsAre(w(0), w(2)));
  // The other neighbour failed for the same reason, which changes nothing more.
  EXPECT_TRUE(step(MemberJoined{w(2), first, failed}).empty());
  const auto forms = all<SendForm>(step(MemberJoined{w(0), first, join()}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].generation, first.next());
}

TEST_F(MembershipTest, AFormationThatALostMemberBrokeIsNotTheFaultOfTheOthers) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  for (std::uint32_t attempt = 1; attempt <= 6; ++attempt) {
    wire::Join broken = join();
    broken.problem = "could not reach w2";
    EXPECT_TRUE(all<GiveUp>(step(MemberJoined{w(0), m.generation(), broken})).empty());
    given(MemberGone{w(2, attempt), "killed", false, false});
    expect({w(0), w(1), w(2, attempt + 1)});
    join_all({w(0), w(1), w(2, attempt + 1)});
  }
}

TEST_F(MembershipTest, AMemberThatIsNamedTwiceInThePlacesIsAnError) {
  settle({w(0)});
  given(CollectiveStuck{"for the test"});
  joins(w(0));
  connect_all();
  const auto refused = all<GiveUp>(ready(w(0), 5, {{w(0).worker, 3}, {w(0).worker, 4}}));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_THAT(refused[0].reason, testing::HasSubstr("twice"));
}

TEST_F(MembershipTest, AJobOutlivesAnOutageThatFailsFormationsForLessThanItsPatience) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  wire::Join failed = join();
  failed.problem = "connection refused";
  const auto fails = [&] {
    Effects effects = step(MemberJoined{w(1), m.generation(), failed});
    for (const Member other : {w(0), w(2)}) {
      for (Effect& e : step(MemberJoined{other, m.generation(), join()}))
        effects.push_back(std::move(e));
    }
    return effects;
  };
  EXPECT_EQ(all<SendForm>(fails()).size(), 3U) << "one may be an accident";
  const MonoTime first = clock.now();
  std::vector<Duration> pauses;
  while (clock.now() - first < kPatience) {
    EXPECT_TRUE(all<GiveUp>(fails()).empty());
    const MonoTime since = clock.now();
    while (m.state() != Membership::State::kAddresses) {
      clock.advance(std::chrono::milliseconds(500));
      EXPECT_THAT(all<EndUnresponsive>(step(TimePassed{})), IsEmpty());
    }
    pauses.push_back(clock.now() - since);
  }
  EXPECT_EQ(pauses.at(0), std::chrono::milliseconds(500));
  EXPECT_EQ(pauses.at(1), seconds(1));
  EXPECT_EQ(pauses.at(4), seconds(8));
  EXPECT_EQ(pauses.back(), seconds(15));
  const auto cannot = all<GiveUp>(fails());
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("w1 on a connection refused"));
  EXPECT_EQ(cannot[0].exit_class, ExitClass::kHost) << "no mistake in the job's files";
  EXPECT_EQ(cannot[0].code, 3);
}

TEST_F(MembershipTest, TheLossOfAMemberEndsThePauseForWhichItIsTheReason) {
  expect({w(0), w(1), w(2)});
  join_all({w(0), w(1), w(2)});
  wire::Join failed = join();
  failed.problem = "w2 does not answer";
  for (int i = 0; i < 2; ++i) {
    given(MemberJoined{w(0), m.generation(), failed});
    join_all({w(1), w(2)});
  }
  ASSERT_EQ(m.state(), Membership::State::kGathering) << "after a second failure there is a pause";
  EXPECT_EQ(all<SendForm>(step(MemberGone{w(2), "killed"})).size(), 2U);
}

TEST_F(MembershipTest, AProblemThatLastsEndsTheJobAtTheFifthTime) {
  expect({w(0), w(1)});
  join_all({w(0), w(1)});
  wire::Join failed = join();
  failed.problem = "their models differ";
  failed.lasts = true;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(all<GiveUp>(step(MemberJoined{w(1), m.generation(), failed})).empty());
    joins(w(0));
    clock.advance(seconds(2));
    given(TimePassed{});
    ASSERT_EQ(m.state(), Membership::State::kAddresses);
  }
  const auto cannot = all<GiveUp>(step(MemberJoined{w(1), m.generation(), failed}));
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_EQ(cannot[0].exit_class, ExitClass::kData);
  EXPECT_EQ(cannot[0].code, 2);
}

TEST_F(MembershipTest, FormationsThatFailedBeforeTheLastSettledOneAreForgotten) {
  wire::Join failed = join();
  failed.problem = "connection refused";
  for (int round = 0; round < 3; ++round) {
    settle({w(0), w(1), w(2)});
    step(CollectiveStuck{"nobody moves"});
    join_all({w(0), w(1), w(2)});
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(all<GiveUp>(step(MemberJoined{w(1), m.generation(), failed})).empty());
      join_all({w(0), w(2)});
      clock.advance(seconds(60));
      given(TimePassed{});
    }
    settle_formed();
  }
}

TEST_F(MembershipTest, AMemberLostWhileFormingReleasesTheOthersAndTheBaseStays) {
  settle({w(0), w(1), w(2)});
  const Generation base = m.generation();
  step(MemberGone{w(0), "killed"});
  join_all({w(1), w(2)});
  connect_all();
  const Effects gone = step(MemberGone{w(1), "killed"});
  EXPECT_EQ(all<ReportBroken>(gone).size(), 1U);
  const auto aborts = all<SendAbort>(gone);
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(aborts[0].generation, base.next());
  EXPECT_THAT(aborts[0].to, ElementsAre(w(2)));
  const auto forms = all<SendForm>(step(MemberJoined{w(2), base.next(), holding(base)}));
  ASSERT_EQ(forms.size(), 1U);
  EXPECT_EQ(forms[0].form.base, base);
  EXPECT_EQ(forms[0].form.size, 1U);
}

// ----------------------------------------------------------- survivors, newcomers

TEST_F(MembershipTest, SurvivorsFormFromTheirOwnStateWithoutWaitingForTheReplacement) {
  settle({w(0), w(1), w(2)});
  const Generation base = m.generation();
  const Effects gone = step(MemberGone{w(1), "w1 was killed"});
  EXPECT_EQ(all<ReportBroken>(gone).at(0).reason, "w1 was killed");
  EXPECT_THAT(all<SendAbort>(gone).at(0).to, ElementsAre(w(0), w(2)));
  expect({w(0), w(1, 2), w(2)});
  EXPECT_TRUE(joins(w(0)).empty());
  EXPECT_EQ(m.missing(), std::vector<Member>{w(2)}) << "the newcomer is not waited for";
  const auto forms = all<SendForm>(joins(w(2)));
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[0].form.base, base);
  EXPECT_EQ(forms[0].form.restore, "");
}

TEST_F(MembershipTest, ASettledGenerationSaysWhereEveryMemberOfTheLastOneStood) {
  settle({w(0), w(1), w(2)});
  step(MemberGone{w(1), "killed"});
  expect({w(0), w(1, 2), w(2)});
  join_all({w(0), w(2)});
  connect_all();
  const wire::Ready at{Step{9}, 77, 3, {{w(0).worker, 40}, {w(1).worker, 30}, {w(2).worker, 20}}};
  given(ReadyArrived{w(0), m.generation(), at});
  const auto settled = all<SettleGeneration>(step(ReadyArrived{w(2), m.generation(), at}));
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].phase, 3U);
  ASSERT_EQ(settled[0].places.size(), 3U);
  EXPECT_EQ(settled[0].places[1].member, w(1, 1)) << "the attempt that was a member";
  EXPECT_EQ(settled[0].places[1].place, 30U);
  for (const BasePlace& place : settled[0].places) EXPECT_FALSE(place.lost);
}

TEST_F(MembershipTest, OnlyWhatASuspectWorkedOnIsCalledLost) {
  settle({w(0), w(1), w(2)});
  step(MemberGone{w(1), "w1 ran out of memory", false, true});
  step(MemberGone{w(2), "its host is lost"});
  expect({w(0)});
  join_all({w(0)});
  auto settled = settle_formed({{w(0).worker, 4}, {w(1).worker, 3}, {w(2).worker, 2}});
  ASSERT_EQ(settled.places.size(), 3U);
  EXPECT_FALSE(settled.places[0].lost);
  EXPECT_TRUE(settled.places[1].lost);
  EXPECT_FALSE(settled.places[2].lost);
  // The order is sent once: the next generation has other members.
  expect({w(0), w(1, 2)});
  joins(w(1, 2));
  join_all({w(0)});
  settled = settle_formed({{w(0).worker, 4}});
  ASSERT_EQ(settled.places.size(), 1U);
  EXPECT_FALSE(settled.places[0].lost);
}

TEST_F(MembershipTest, ANewcomerMakesTheMembersStopTogetherAndIsInTheNextGeneration) {
  settle({w(0), w(1)});
  const Generation base = m.generation();
  EXPECT_TRUE(expect({w(0), w(1), w(2)}).empty()) << "who has not joined stops nobody";
  const Effects effects = step(MemberJoined{w(2), {}, join()});
  const auto regroup = all<SendRegroup>(effects);
  ASSERT_EQ(regroup.size(), 1U);
  EXPECT_THAT(regroup[0].to, ElementsAre(w(0), w(1)));
  EXPECT_EQ(regroup[0].generation, base);
  EXPECT_THAT(regroup[0].reason, testing::HasSubstr("w2"));
  EXPECT_TRUE(all<SendAbort>(effects).empty()) << "a step in progress is finished";
  joins(w(0));
  const auto forms = all<SendForm>(joins(w(1)));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[2].to, w(2));
  EXPECT_EQ(forms[2].form.base, base);
}

TEST_F(MembershipTest, AMemberThatJoinsDuringAFormationIsInTheNextGeneration) {
  settle({w(0), w(1), w(2)});
  step(MemberGone{w(1), "killed"});
  expect({w(0), w(1, 2), w(2)});
  join_all({w(0), w(2)});
  connect_all();
  EXPECT_TRUE(step(MemberJoined{w(1, 2), {}, join()}).empty()) << "what is formed goes on";
  ready(w(0), 5);
  const Effects effects = ready(w(2), 5);
  ASSERT_EQ(all<SettleGeneration>(effects).size(), 1U);
  EXPECT_THAT(all<SendRegroup>(effects).at(0).to, ElementsAre(w(0), w(2)));
}

TEST_F(MembershipTest, AnOrderlyLeaverLetsTheOthersFinishTheirStep) {
  settle({w(0), w(1), w(2)});
  const Effects gone = step(MemberGone{w(1), "evicted", true});
  EXPECT_TRUE(all<SendAbort>(gone).empty());
  EXPECT_EQ(m.state(), Membership::State::kRegrouping);
  expect({w(0), w(2)});
  joins(w(0));
  EXPECT_EQ(all<SendForm>(joins(w(2))).size(), 2U);
}

TEST_F(MembershipTest, AMemberLeftInACollectiveAfterAnOrderlyEndIsReleased) {
  settle({w(0), w(1), w(2)});
  step(MemberGone{w(1), "evicted", true});
  joins(w(0));
  clock.advance(seconds(1));
  EXPECT_TRUE(step(TimePassed{}).empty());
  clock.advance(seconds(2));
  const auto aborts = all<SendAbort>(step(TimePassed{}));
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_THAT(aborts[0].to, ElementsAre(w(2)));
  EXPECT_TRUE(step(TimePassed{}).empty()) << "once";
}

TEST_F(MembershipTest, AMemberThatLeavesASettledGenerationOfItselfMakesTheOthersFollow) {
  settle({w(0), w(1), w(2)});
  const Generation base = m.generation();
  EXPECT_TRUE(all<SendAbort>(joins(w(0))).empty()) << "they are to stop at the same step";
  EXPECT_EQ(m.state(), Membership::State::kRegrouping);
  clock.advance(seconds(3));
  EXPECT_THAT(all<SendAbort>(step(TimePassed{})).at(0).to, ElementsAre(w(1), w(2)));
  joins(w(1));
  const auto forms = all<SendForm>(joins(w(2)));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.base, base);
}

TEST_F(MembershipTest, AKillDuringAnOrderlyEndReleasesTheOthersAtOnce) {
  settle({w(0), w(1), w(2)});
  expect({w(0), w(1), w(2), w(3)});
  step(MemberJoined{w(3), {}, join()});  // stop together
  joins(w(0));
  const auto aborts = all<SendAbort>(step(MemberGone{w(1), "killed"}));
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_THAT(aborts[0].to, ElementsAre(w(2))) << "w0 has left it already";
}

TEST_F(MembershipTest, ACollectiveThatDoesNotMoveIsAbortedForAll) {
  settle({w(0), w(1)});
  const Effects effects = step(CollectiveStuck{"nobody moves"});
  EXPECT_THAT(all<SendAbort>(effects).at(0).to, ElementsAre(w(0), w(1)));
  EXPECT_EQ(all<ReportBroken>(effects).size(), 1U);
  EXPECT_TRUE(step(CollectiveStuck{"nobody moves"}).empty());
}

TEST_F(MembershipTest, AJoinFromBeforeTheGenerationThatIsSettledIsIgnored) {
  settle({w(0), w(1)});
  const Generation first = m.generation();
  step(CollectiveStuck{"nobody moves"});
  join_all({w(0), w(1)});
  settle_formed();
  EXPECT_TRUE(step(MemberJoined{w(0), first, holding(first)}).empty());
  EXPECT_TRUE(m.settled());
}

// ------------------------------------------------------------- when all are lost

TEST_F(MembershipTest, WhenNobodyHoldsTheStateOneMemberReadsItAndTrainingBeginsFromIt) {
  settle({w(0), w(1)});
  const Generation base = m.generation();
  step(MemberGone{w(0), "killed"});
  step(MemberGone{w(1), "killed"});
  expect({w(0, 2), w(1, 2)});
  EXPECT_TRUE(step(MemberJoined{w(0, 2), {}, join()}).empty()) << "all newcomers are waited for";
  const auto lost = all<RestoreState>(step(MemberJoined{w(1, 2), {}, join()}));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].base, base);
  EXPECT_TRUE(step(MemberJoined{w(1, 2), {}, join()}).empty());
  const auto forms = all<SendForm>(step(TrainingBegun{Lineage{2}, "checkpoints/7"}));
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[0].form.base, Generation{});
  EXPECT_EQ(forms[0].form.restore, "checkpoints/7");
  EXPECT_EQ(m.lineage(), Lineage{2});
  EXPECT_EQ(forms[0].generation, base.next()) << "numbers are never used twice";
}

TEST_F(MembershipTest, ASurvivorThatLostItsStateWhileReceivingIsNoHolder) {
  settle({w(0), w(1)});
  step(MemberGone{w(1), "killed"});
  expect({w(0)});
  EXPECT_EQ(all<RestoreState>(step(MemberJoined{w(0), m.generation(), join()})).size(), 1U);
}

TEST_F(MembershipTest, AMemberReadyForAGenerationThatNeverSettledHoldsItsBase) {
  settle({w(0), w(1)});
  const Generation base = m.generation();
  step(MemberGone{w(1), "killed"});
  expect({w(0)});
  joins(w(0));
  connect_all();
  step(MemberJoined{w(0), m.generation(), join()});  // it could not connect
  const Generation ready_for = m.generation();
  expect({w(0), w(2)});
  Membership again(crypto::Secret(), kPatience);
  again.restore(m.image());
  m = again;
  expect({w(0)});
  const auto forms = all<SendForm>(step(MemberJoined{w(0), ready_for, holding(ready_for)}));
  ASSERT_EQ(forms.size(), 1U) << "nothing is lost";
  EXPECT_EQ(forms[0].form.base, base);
}

TEST_F(MembershipTest, WhereTrainingBeginsAgainPlacesOfBeforeSayNothing) {
  settle({w(0)});
  step(MemberGone{w(0), "killed"});
  expect({w(0, 2), w(1)});
  joins(w(0, 2));
  step(MemberJoined{w(1), {}, join()});
  step(TrainingBegun{Lineage{2}, ""});
  join_all({w(0, 2), w(1)});
  connect_all();
  given(ReadyArrived{w(0, 2), m.generation(), {{}, 77, 0, {{w(0).worker, 0}}}});
  EXPECT_EQ(all<SettleGeneration>(step(ReadyArrived{w(1), m.generation(), {{}, 77, 0, {}}})).size(),
            1U);
}

TEST_F(MembershipTest, TheFurthestStateIsKeptAsLongAsOneMemberHoldsIt) {
  settle({w(0), w(1)});
  const Generation base = m.generation();
  step(MemberGone{w(1), "killed"});
  expect({w(0), w(1, 2)});
  step(MemberJoined{w(1, 2), {}, join()});
  const auto forms = all<SendForm>(step(MemberJoined{w(0), base, holding(base)}));
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[1].form.base, base) << "the newcomer receives it";
}

// ------------------------------------------------------------------- who is late

TEST_F(MembershipTest, AMemberThatIsWaitedForTooLongIsNamedWithItsOrder) {
  expect({w(0), w(1)});
  joins(w(0));
  clock.advance(kPatience);
  auto late = all<EndUnresponsive>(step(TimePassed{}));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].member, w(1));
  EXPECT_THAT(late[0].what, testing::HasSubstr("to join"));
  EXPECT_TRUE(step(TimePassed{}).empty()) << "said again only after as long";
  joins(w(1));
  given(AddressArrived{w(1), m.generation(), {"at w1"}});
  clock.advance(kPatience);
  late = all<EndUnresponsive>(step(TimePassed{}));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].member, w(0));
  EXPECT_THAT(late[0].what, testing::HasSubstr("end points"));
}

// Each waits for another, and the one that is at fault may be any of them.
TEST_F(MembershipTest, MembersThatStandWhileTheyConnectAreCalledTogetherAgain) {
  settle({w(0), w(1), w(2)});
  given(CollectiveStuck{"for the test"});
  join_all({w(0), w(1), w(2)});
  connect_all();
  EXPECT_TRUE(ready(w(0), 5).empty());
  clock.advance(kPatience - seconds(1));
  EXPECT_TRUE(step(TimePassed{}).empty());
  clock.advance(seconds(1));
  const Effects effects = step(TimePassed{});
  EXPECT_THAT(all<EndUnresponsive>(effects), IsEmpty());
  ASSERT_EQ(all<FormationStands>(effects).size(), 1U);
  const auto aborts = all<SendAbort>(step(FormationStuck{"nobody moves"}));
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_THAT(aborts[0].to, ElementsAre(w(0), w(1), w(2)));
  join_all({w(0), w(1)});
  clock.advance(kPatience);
  const auto late = all<EndUnresponsive>(step(TimePassed{}));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].member, w(2)) << "it alone does not come";
}

TEST_F(MembershipTest, AJobWhoseFormationsAllStandEndsInTheEnd) {
  expect({w(0), w(1)});
  join_all({w(0), w(1)});
  for (int times = 1; times <= 5; ++times) {
    connect_all();
    clock.advance(kPatience);
    ASSERT_EQ(all<FormationStands>(step(TimePassed{})).size(), 1U);
    const auto end = all<GiveUp>(step(FormationStuck{"nobody moves"}));
    ASSERT_EQ(end.size(), times == 5 ? 1U : 0U);
    if (times == 5) {
      EXPECT_EQ(end[0].exit_class, ExitClass::kHost);
      break;
    }
    join_all({w(0), w(1)});
    clock.advance(seconds(15));
    given(TimePassed{});
    ASSERT_EQ(m.state(), Membership::State::kAddresses);
  }
}

TEST_F(MembershipTest, NobodyIsLateInASettledGeneration) {
  settle({w(0), w(1)});
  clock.advance(10 * kPatience);
  EXPECT_TRUE(step(TimePassed{}).empty());
}

// --------------------------------------------------- a restart of the job daemon

TEST_F(MembershipTest, ASettledGenerationIsSettledAfterARestart) {
  settle({w(0), w(1)});
  Membership again(crypto::Secret(), kPatience);
  again.restore(m.image());
  EXPECT_TRUE(again.settled());
  EXPECT_TRUE(again.contains(w(1)));
  EXPECT_EQ(again.generation(), m.generation());
  m = again;
  expect({w(0), w(1)});
  EXPECT_THAT(all<SendAbort>(step(MemberGone{w(1), "killed"})).at(0).to, ElementsAre(w(0)));
}

TEST_F(MembershipTest, ARestartRemembersWhereTrainingBegan) {
  settle({w(0)});
  step(MemberGone{w(0), "killed"});
  expect({w(0, 2)});
  step(MemberJoined{w(0, 2), {}, join()});
  step(TrainingBegun{Lineage{2}, "checkpoints/7"});
  Membership again(crypto::Secret(), kPatience);
  again.restore(m.image());
  m = again;
  expect({w(0, 2)});
  const auto forms = all<SendForm>(step(MemberJoined{w(0, 2), m.generation(), join()}));
  ASSERT_EQ(forms.size(), 1U);
  EXPECT_EQ(forms[0].form.restore, "checkpoints/7");
  EXPECT_EQ(m.lineage(), Lineage{2});
}

TEST_F(MembershipTest, AnOrderThatNobodyFollowedIsRepeated) {
  settle({w(0), w(1)});
  expect({w(0), w(1), w(2)});
  ASSERT_EQ(all<SendRegroup>(joins(w(2))).size(), 1U);
  EXPECT_TRUE(step(TimePassed{}).empty());
  clock.advance(seconds(2));
  const auto again = all<SendRegroup>(step(TimePassed{}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_THAT(again[0].to, ElementsAre(w(0), w(1)));
}

TEST_F(MembershipTest, AMemberNotBackSoonAfterAnotherIsReleasedFromItsCollective) {
  settle({w(0), w(1)});
  expect({w(0), w(1), w(2)});
  joins(w(2));
  clock.advance(seconds(1));
  joins(w(0));
  clock.advance(seconds(1));
  EXPECT_TRUE(step(TimePassed{}).empty()) << "it may be at the end of its step";
  clock.advance(seconds(1));
  for (int i = 0; i < 2; ++i, clock.advance(seconds(2))) {
    const auto aborts = all<SendAbort>(step(TimePassed{}));
    ASSERT_EQ(aborts.size(), 1U) << i;
    EXPECT_THAT(aborts[0].to, ElementsAre(w(1)));
  }
}

}  // namespace
}  // namespace antdt::ctl::membership
