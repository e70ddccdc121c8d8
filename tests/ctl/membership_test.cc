#include "ctl/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace antdt::ctl {
namespace {

using Effects = std::vector<MembershipEffect>;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}
wire::Join join(const std::string& fingerprint = "f") {
  wire::Join j;
  j.data = {1000, 100, fingerprint, "1000 records, fingerprint " + fingerprint};
  return j;
}
template <class T>
std::vector<T> all(const Effects& effects) {
  std::vector<T> found;
  for (const auto& e : effects) {
    if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
  }
  return found;
}

class MembershipTest : public testing::Test {
 protected:
  Effects expect_three() {
    return m.step(Expect{{{w(2), "b", 1}, {w(0), "a", 0}, {w(1), "a", 0}}});
  }
  Effects join_all() {
    Effects last;
    for (std::uint32_t i = 0; i < 3; ++i) last = m.step(MemberJoined{w(i), {}, join()});
    return last;
  }
  Effects connect_all() {
    Effects last;
    for (std::uint32_t i = 0; i < 3; ++i) {
      wire::Address address{fmt::format("{}<", i), fmt::format(">{}", i)};
      last = m.step(AddressArrived{w(i), m.generation(), address});
    }
    return last;
  }
  // What happens on the way to what a test is about.
  void given(const MembershipEvent& event) { std::ignore = m.step(event); }
  Membership m{42};
};

TEST_F(MembershipTest, NothingBeginsBeforeTheLastExpectedMemberJoined) {
  EXPECT_TRUE(expect_three().empty());
  EXPECT_TRUE(m.step(MemberJoined{w(0), {}, join()}).empty());
  EXPECT_TRUE(m.step(MemberJoined{w(1), {}, join()}).empty());
  EXPECT_EQ(m.missing(), std::vector<Member>{w(2)});
  const Effects effects = m.step(MemberJoined{w(2), {}, join()});
  ASSERT_EQ(all<GenerationBegun>(effects).size(), 1U);
  const auto forms = all<SendForm>(effects);
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[2].to, w(2)) << "ranks go host by host";
  EXPECT_EQ(forms[2].form.rank, 2U);
  EXPECT_EQ(forms[0].form.key, forms[2].form.key);
}

TEST_F(MembershipTest, EachRankGetsTheEndPointsThatItsNeighboursMadeForIt) {
  expect_three();
  join_all();
  const auto rosters = all<SendRoster>(connect_all());
  ASSERT_EQ(rosters.size(), 3U);
  EXPECT_EQ(rosters[0].roster.left, ">2");
  EXPECT_EQ(rosters[0].roster.right, "1<");
  EXPECT_EQ(rosters[2].roster.left, ">1");
  EXPECT_EQ(rosters[2].roster.right, "0<");
}

TEST_F(MembershipTest, SettlesWhenAllAreReadyAtTheSameStepAndHash) {
  expect_three();
  join_all();
  connect_all();
  EXPECT_TRUE(m.step(ReadyArrived{w(0), m.generation(), {Step{5}, 77}}).empty());
  EXPECT_TRUE(m.step(ReadyArrived{w(1), m.generation(), {Step{5}, 77}}).empty());
  const auto settled = all<Settled>(m.step(ReadyArrived{w(2), m.generation(), {Step{5}, 77}}));
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].step, Step{5});
  EXPECT_EQ(settled[0].members.size(), 3U);
}

TEST_F(MembershipTest, ADifferentStateHashIsSaidWithBothHosts) {
  expect_three();
  join_all();
  connect_all();
  given(ReadyArrived{w(0), m.generation(), {Step{5}, 77}});
  given(ReadyArrived{w(1), m.generation(), {Step{5}, 77}});
  const auto cannot = all<CannotSettle>(m.step(ReadyArrived{w(2), m.generation(), {Step{5}, 78}}));
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("w2 on b"));
}

TEST_F(MembershipTest, DifferentDataIsRefusedBeforeAnythingIsFormed) {
  expect_three();
  given(MemberJoined{w(0), {}, join("x")});
  given(MemberJoined{w(1), {}, join("x")});
  const Effects effects = m.step(MemberJoined{w(2), {}, join("y")});
  EXPECT_TRUE(all<SendForm>(effects).empty());
  ASSERT_EQ(all<CannotSettle>(effects).size(), 1U);
  EXPECT_THAT(all<CannotSettle>(effects)[0].reason, testing::HasSubstr("fingerprint y"));
}

TEST_F(MembershipTest, AnAddressOfAnotherGenerationChangesNothing) {
  expect_three();
  join_all();
  given(AddressArrived{w(0), m.generation(), {}});
  given(AddressArrived{w(1), m.generation(), {}});
  EXPECT_TRUE(m.step(AddressArrived{w(2), m.generation().next(), {}}).empty());
  EXPECT_EQ(m.state(), Membership::State::kAddresses);
}

TEST_F(MembershipTest, WhoRepeatsItsMessageIsAnsweredOnceMore) {
  expect_three();
  join_all();
  const auto form = all<SendForm>(m.step(MemberJoined{w(1), {}, join()}));
  ASSERT_EQ(form.size(), 1U);
  EXPECT_EQ(form[0].form.rank, 1U);
  connect_all();
  const auto roster = all<SendRoster>(m.step(AddressArrived{w(1), m.generation(), {"x", "y"}}));
  ASSERT_EQ(roster.size(), 1U);
  EXPECT_EQ(roster[0].to, w(1));
  EXPECT_EQ(roster[0].roster.left, ">0");
}

TEST_F(MembershipTest, AMemberThatCannotConnectMakesAllFormOnceMore) {
  expect_three();
  join_all();
  connect_all();
  wire::Join failed = join();
  failed.problem = "connection refused";
  const Generation first = m.generation();
  const Effects again = m.step(MemberJoined{w(1), first, failed});
  ASSERT_EQ(all<GenerationBroken>(again).size(), 1U);
  EXPECT_THAT(all<GenerationBroken>(again)[0].left, testing::ElementsAre(w(0), w(2)));
  EXPECT_EQ(all<SendForm>(again).size(), 3U);
  EXPECT_EQ(m.generation(), first.next());
  // The neighbour that failed for the same reason changes nothing more.
  EXPECT_TRUE(all<GenerationBroken>(m.step(MemberJoined{w(2), first, failed})).empty());
  EXPECT_EQ(m.generation(), first.next());
}

TEST_F(MembershipTest, FiveFailedFormationsInARowEndTheJobWithTheReason) {
  expect_three();
  join_all();
  wire::Join failed = join();
  failed.problem = "connection refused";
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(all<CannotSettle>(m.step(MemberJoined{w(1), m.generation(), failed})).empty());
  }
  const auto cannot = all<CannotSettle>(m.step(MemberJoined{w(1), m.generation(), failed}));
  ASSERT_EQ(cannot.size(), 1U);
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("w1 on a"));
  EXPECT_THAT(cannot[0].reason, testing::HasSubstr("connection refused"));
}

TEST_F(MembershipTest, AStaleAttemptCannotJoin) {
  expect_three();
  given(MemberJoined{w(0, 2), {}, join()});
  EXPECT_EQ(m.missing().size(), 3U);
}

TEST_F(MembershipTest, AMemberThatIsGoneBreaksTheGenerationForTheOthers) {
  expect_three();
  join_all();
  connect_all();
  const auto broken = all<GenerationBroken>(m.step(MemberGone{w(1), "killed"}));
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_THAT(broken[0].left, testing::ElementsAre(w(0), w(2)));
  EXPECT_EQ(m.state(), Membership::State::kGathering);
}

}  // namespace
}  // namespace antdt::ctl
