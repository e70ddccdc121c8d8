// Which member reads the checkpoint from which training goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/membership/membership.h"
#include "tests/ctl/membership/membership_fixture.h"

namespace antdt::ctl::membership {
namespace {

using testing::HasSubstr;

class ReadingTest : public MembershipTest {
 protected:
  // w0 and w1 are on host a, w2 on b; all go on from a checkpoint.
  ReadingTest() {
    expect(all_three());
    join_all(all_three());
    forms = all<SendForm>(step(TrainingBegun{Lineage{2}, "checkpoints/7"}));
    if (forms.empty()) forms = form_again();
    connect_all();
  }
  static std::vector<Member> all_three() { return {w(0), w(1), w(2)}; }
  std::vector<SendForm> form_again() {
    given(CollectiveStuck{"for the test"});
    std::vector<SendForm> last;
    for (const Member member : all_three()) {
      auto found = all<SendForm>(joins(member));
      if (!found.empty()) last = std::move(found);
    }
    return last;
  }
  Effects cannot_read(Member member, const wire::Join& why = damaged()) {
    return step(MemberJoined{member, m.generation(), why});
  }
  static wire::Join damaged() {
    wire::Join j = join();
    j.unreadable = "state.bin: it does not have the checksum of MANIFEST.json";
    j.problem = "cannot read the checkpoint";
    return j;
  }
  static wire::Join stale() {
    wire::Join j = damaged();
    j.unreadable = "state.bin cannot be read: Stale file handle";
    j.may_pass = true;
    return j;
  }
  // One after the other tries; the effects after the last one.
  Effects none_can_read(const std::vector<wire::Join>& whys) {
    Effects last;
    for (std::size_t tried = 0; tried < whys.size(); ++tried) {
      if (tried > 0) connect_all();
      std::vector<Member> others = members_of(m.members());
      const Member reader = others.at(forms.at(0).form.reader);
      asked.push_back(reader);
      cannot_read(reader, whys.at(tried));
      std::erase(others, reader);
      last = rejoin(others);
      if (auto found = all<SendForm>(last); !found.empty()) forms = std::move(found);
    }
    return last;
  }
  // The other members have been told of it.
  Effects rejoin(const std::vector<Member>& members) {
    Effects last;
    for (const Member member : members) {
      last = step(MemberJoined{member, m.generation(), join()});
    }
    return last;
  }
  std::vector<SendForm> forms;
  std::vector<Member> asked;  // by none_can_read()
};

TEST_F(ReadingTest, OneMemberIsToReadAndAllHearWhichOne) {
  ASSERT_EQ(forms.size(), 3U);
  for (const SendForm& f : forms) {
    EXPECT_EQ(f.form.restore, "checkpoints/7");
    EXPECT_EQ(f.form.reader, 0U);
  }
}

TEST_F(ReadingTest, WhereOneCannotAnotherReadsFirstOnAnotherHost) {
  cannot_read(w(0));
  forms = all<SendForm>(rejoin({w(1), w(2)}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.reader, 2U) << "w2 is on the other host";
  connect_all();
  cannot_read(w(2));
  forms = all<SendForm>(rejoin({w(0), w(1)}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.reader, 1U);
}

// Each reads the copy of its own host, and the job daemon's may be good.
TEST_F(ReadingTest, ADamagedCheckpointIsLookedForOnceMore) {
  const auto asks = all<RestoreState>(none_can_read({damaged(), damaged(), damaged()}));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_THAT(asks[0].unread, HasSubstr("w1 on a: state.bin: it does not have the checksum"));
  EXPECT_EQ(asks[0].checkpoint, "checkpoints/7");
  EXPECT_TRUE(asks[0].damaged);
  EXPECT_TRUE(m.could_not_read("checkpoints/7"));
  forms = all<SendForm>(step(TrainingBegun{m.lineage(), "checkpoints/7"}));
  ASSERT_EQ(forms.size(), 3U);
  connect_all();
  // It is good now. When training goes back to it later, it is looked for once more, too.
  for (const Member member : all_three()) given(ReadyArrived{member, m.generation(), {}});
  ASSERT_TRUE(m.settled());
  given(StateLost{"for the test"});
  rejoin(all_three());
  forms = all<SendForm>(step(TrainingBegun{Lineage{3}, "checkpoints/7"}));
  connect_all();
  EXPECT_EQ(all<RestoreState>(none_can_read({damaged(), damaged(), damaged()})).size(), 1U);
}

TEST_F(ReadingTest, ACheckpointThatNobodyCanReadEndsTheJobWithFileAndCause) {
  none_can_read({damaged(), damaged(), damaged()});
  forms = all<SendForm>(step(TrainingBegun{m.lineage(), "checkpoints/7"}));
  connect_all();
  const auto end = all<GiveUp>(none_can_read({damaged(), damaged(), damaged()}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].exit_class, ExitClass::kCheckpoint);
  EXPECT_THAT(end[0].reason, HasSubstr("checkpoints/7"));
  EXPECT_THAT(end[0].reason, HasSubstr("w1 on a: state.bin: it does not have the checksum"));
}

TEST_F(ReadingTest, WhatMayPassIsLookedForAgainAndTheSameMembersTryAgain) {
  const auto asks = all<RestoreState>(none_can_read({damaged(), stale(), stale()}));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].base, Generation{});
  EXPECT_THAT(asks[0].unread,
              HasSubstr("no member can read the checkpoint checkpoints/7: w0 on a"));
  EXPECT_THAT(asks[0].unread, HasSubstr("w2 on b: state.bin cannot be read: Stale file handle"));
  EXPECT_TRUE(m.could_not_read("checkpoints/7"));
  EXPECT_FALSE(m.could_not_read("checkpoints/8"));
  clock.advance(10 * kPatience);
  EXPECT_TRUE(step(TimePassed{}).empty()) << "nobody is to do anything";
  // One that dies meanwhile, and its successor, are no reason to try.
  given(MemberGone{w(1), "killed"});
  expect({w(0), w(1, 2), w(2)});
  EXPECT_TRUE(all<SendForm>(step(MemberJoined{w(1, 2), {}, join()})).empty());
  forms = all<SendForm>(step(TrainingBegun{m.lineage(), "checkpoints/7"}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.restore, "checkpoints/7");
  EXPECT_FALSE(m.could_not_read("checkpoints/7"));
}

TEST_F(ReadingTest, WhatIsRepeatedOfAnEarlierCheckpointDoesNotCountAgainstTheNext) {
  none_can_read({damaged(), stale(), stale()});
  given(MemberGone{w(1), "killed"});
  expect({w(0), w(1, 2), w(2)});
  given(TrainingBegun{Lineage{3}, "checkpoints/6"});
  cannot_read(w(0), damaged());
  cannot_read(w(2), damaged());
  forms = all<SendForm>(step(MemberJoined{w(1, 2), {}, join()}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.restore, "checkpoints/6");
  EXPECT_EQ(forms[0].form.reader, 0U) << "nobody has tried this one";
}

TEST_F(ReadingTest, EachIsAskedBeforeAnyIsAskedAgainThoughHostsHaveDifferentNumbers) {
  const std::vector<Member> four = {w(0), w(2), w(3), w(4)};  // w0 is alone on its host
  given(MemberGone{w(1), "killed"});
  expect(four);
  forms = all<SendForm>(rejoin(four));
  connect_all();
  const auto last = none_can_read({4, stale()});
  EXPECT_THAT(asked, testing::UnorderedElementsAreArray(four));
  EXPECT_EQ(all<RestoreState>(last).size(), 1U);
}

TEST_F(ReadingTest, AMemberThatDiedWhileReadingIsNotAskedFirstAgain) {
  given(MemberGone{w(0), "reading the checkpoint stands still"});
  expect({w(0, 2), w(1), w(2)});
  given(MemberJoined{w(0, 2), {}, join()});
  forms = all<SendForm>(rejoin({w(1), w(2)}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.reader, 2U);
}

// The order waits until the checkpoint is on its host, which may have no room for it.
TEST_F(ReadingTest, AMemberThatWasEndedBeforeItGotTheOrderIsNotAskedFirstAgain) {
  forms = form_again();
  const Member reader = w(0);
  ASSERT_EQ(forms.at(0).form.reader, 0U);
  for (const Member member : {w(1), w(2)}) given(AddressArrived{member, m.generation(), {}});
  given(MemberGone{reader, "it was asked to name its end points"});
  expect({w(0, 2), w(1), w(2)});
  given(MemberJoined{w(0, 2), {}, join()});
  forms = all<SendForm>(rejoin({w(1), w(2)}));
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].form.reader, 2U);
}

TEST_F(ReadingTest, AllAreWaitedForAsLongAsBytesCome) {
  for (int times = 0; times < 10; ++times) {
    clock.advance(kPatience - seconds(1));
    given(StateMoved{});
    EXPECT_TRUE(step(TimePassed{}).empty()) << times;
  }
  clock.advance(kPatience);
  EXPECT_EQ(all<FormationStands>(step(TimePassed{})).size(), 1U);
}

}  // namespace
}  // namespace antdt::ctl::membership
