// Members that are still in a formation which has ended.
#include <gmock/gmock.h>

#include "tests/ctl/membership/membership_fixture.h"

namespace antdt::ctl::membership {
namespace {

using ::testing::ElementsAre;

TEST_F(MembershipTest, MembersOfAFormationThatARestartCutShortAreSentBackToJoin) {
  settle({w(0), w(1)});
  const Generation base = m.generation();
  step(CollectiveStuck{"nobody moves"});
  join_all({w(0), w(1)});
  ASSERT_EQ(m.state(), Membership::State::kAddresses);
  Membership again(crypto::Secret(), kPatience);
  again.restore(m.image());
  m = again;
  EXPECT_FALSE(m.settled());
  expect({w(0), w(1)});
  const Generation cut = m.generation();
  EXPECT_EQ(cut, base.next());
  for (const auto& event : {Input(AddressArrived{w(0), cut, {"at w0"}}),
                            Input(ReadyArrived{w(0), cut, {Step{5}, 77, 0, {}}})}) {
    const auto aborts = all<SendAbort>(step(event));
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].generation, cut);
    EXPECT_THAT(aborts[0].to, ElementsAre(w(0)));
  }
  step(MemberJoined{w(0), cut, holding(base)});
  const auto forms = all<SendForm>(step(MemberJoined{w(1), cut, holding(base)}));
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[0].generation, cut.next());
  EXPECT_EQ(forms[0].form.base, base);
}

// Its host was not reached while the others formed and settled without it.
TEST_F(MembershipTest, AMemberThatComesBackFromAnEarlierFormationIsSentBackToJoin) {
  settle({w(0), w(1)});
  expect({w(0), w(1), w(2)});
  joins(w(2));
  join_all({w(0), w(1)});
  const Generation missed = m.generation();
  given(MemberGone{w(2), "its host is lost"});
  join_all({w(0), w(1)});
  EXPECT_TRUE(all<SendAbort>(step(AddressArrived{w(2), missed, {"at w2"}})).empty())
      << "its host is still lost";
  expect({w(0), w(1), w(2)});
  for (const bool settled : {false, true}) {
    if (settled) settle_formed();
    const auto aborts = all<SendAbort>(step(AddressArrived{w(2), missed, {"at w2"}}));
    ASSERT_EQ(aborts.size(), 1U) << settled;
    EXPECT_EQ(aborts[0].generation, missed);
    EXPECT_THAT(aborts[0].to, ElementsAre(w(2)));
  }
  EXPECT_TRUE(step(AddressArrived{w(1), missed, {"at w1"}}).empty()) << "it came late";
  const auto regroups = all<SendRegroup>(step(MemberJoined{w(2), missed, join()}));
  ASSERT_EQ(regroups.size(), 1U);
  EXPECT_THAT(regroups[0].to, ElementsAre(w(0), w(1)));
  EXPECT_TRUE(step(AddressArrived{w(2), missed, {"at w2"}}).empty()) << "it has joined";
}

}  // namespace
}  // namespace antdt::ctl::membership
