// Drills in a whole job: emulated devices, and the injections of an operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

constexpr auto kRules = R"([{"workers":["w1"],"slowdown":3.0}])";

class JobDrillsTest : public JobFixture {
 protected:
  JobDrillsTest() { open(); }
  job::Effects inject(std::uint64_t duration_ms = 0) {
    return feed(job::InjectionOrdered{{kRules, "ada", duration_ms}});
  }
};

TEST_F(JobDrillsTest, WorkersThatRunHearWhatIsInjectedAndItIsNoted) {
  place(2);
  const job::Effects outputs = inject(5000);
  const auto told = sent<wire::Injected>(outputs);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].second.number, 1U);
  EXPECT_EQ(told[0].second.rules, kRules);
  EXPECT_EQ(told[0].second.duration_ms, 5000U);
  EXPECT_FALSE(told[0].second.again);
  const auto notes = all<job::PublishNote>(outputs);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].kind, "inject");
  EXPECT_THAT(notes[0].text, testing::HasSubstr("ada injects"));
  EXPECT_EQ(sent<wire::Injected>(inject())[0].second.number, 2U);
}

TEST_F(JobDrillsTest, ALaterWorkerHearsOfTheRemainingInjectionsAlsoFromTheNextJobDaemon) {
  place(1);
  EXPECT_TRUE(sent<wire::Injected>(says(w(0), join())).empty()) << "nothing was injected";
  inject(5000);
  clock.advance(seconds(2));
  auto told = sent<wire::Injected>(says(w(0), join()));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].second.again);
  EXPECT_LE(told[0].second.duration_ms, 3000U);
  EXPECT_GT(told[0].second.duration_ms, 2000U);
  clock.advance(seconds(3));
  EXPECT_TRUE(sent<wire::Injected>(says(w(0), join())).empty()) << "it is over";
  open();
  told = sent<wire::Injected>(says(w(0), join()));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].second.number, 1U);
  EXPECT_EQ(told[0].second.rules, kRules);
}

}  // namespace
}  // namespace antdt::ctl
