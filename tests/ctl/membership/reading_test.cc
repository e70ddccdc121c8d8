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
  Effects cannot_read(Member member) {
    wire::Join j = join();
    j.unreadable = "state.bin: it does not have the checksum of MANIFEST.json";
    j.problem = "cannot read the checkpoint";
    return step(MemberJoined{member, m.generation(), j});
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

TEST_F(ReadingTest, ACheckpointThatNobodyCanReadEndsTheJobWithFileAndCause) {
  cannot_read(w(0));
  rejoin({w(1), w(2)});
  connect_all();
  cannot_read(w(2));
  rejoin({w(0), w(1)});
  connect_all();
  cannot_read(w(1));
  const auto end = all<GiveUp>(rejoin({w(0), w(2)}));
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].exit_class, ExitClass::kCheckpoint);
  EXPECT_THAT(end[0].reason, HasSubstr("checkpoints/7"));
  EXPECT_THAT(end[0].reason, HasSubstr("w1 on a: state.bin: it does not have the checksum"));
}

TEST_F(ReadingTest, AMemberThatDiedWhileReadingIsNotAskedFirstAgain) {
  given(MemberGone{w(0), "reading the checkpoint stands still"});
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
    EXPECT_TRUE(all<EndUnresponsive>(step(TimePassed{})).empty()) << times;
  }
  clock.advance(kPatience);
  EXPECT_EQ(all<EndUnresponsive>(step(TimePassed{})).size(), 3U);
}

}  // namespace
}  // namespace antdt::ctl::membership
