#include "launcher/slurm/beginning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const AgentBegins kReady{
    "n1", "10.0.0.1:20007", "info antdtd[7]: listening on tcp://10.0.0.1:20007\n", false,
    true, seconds(1)};

AgentBegins other(const std::string& log) {
  return {"n2", "10.0.0.2:20007", log, false, false, {}};
}

std::string why(const AgentBegins& agent, Duration waited) {
  const auto begun = have_begun({kReady, agent}, waited);
  EXPECT_FALSE(begun.has_value());
  return begun ? "" : begun.error().message;
}

TEST(Beginning, IsOverWhenAllAgentsAnswer) {
  EXPECT_EQ(have_begun({kReady, kReady}, seconds(2)), true);
  EXPECT_EQ(have_begun({kReady, other("")}, seconds(2)), false);
}

TEST(Beginning, ANodeThatSrunDoesNotReachIsNamedAfterAMinute) {
  AgentBegins late = other("srun: Job 7 step creation temporarily disabled, retrying\n");
  EXPECT_EQ(have_begun({kReady, late}, kAgentStarts), false);
  EXPECT_THAT(why(late, kAgentStarts + seconds(1)),
              AllOf(HasSubstr("did not start the agent on n2 within 60 s:\nsrun: Job 7 step"),
                    HasSubstr("--exclude=n2"), Not(HasSubstr("n1"))));
}

TEST(Beginning, AnAgentThatListensAndDoesNotAnswerIsBehindAFirewall) {
  AgentBegins hidden = other(kReady.log);
  hidden.listened = kAgentAnswers;
  EXPECT_EQ(have_begun({kReady, hidden}, seconds(12)), false);
  hidden.listened = kAgentAnswers + seconds(1);
  EXPECT_THAT(
      why(hidden, seconds(12)),
      AllOf(HasSubstr("n2 listens, and does not answer at 10.0.0.2:20007"), HasSubstr("firewall")));
}

TEST(Beginning, AnAgentThatListensMayAnswerLateThoughSrunWasSlow) {
  AgentBegins slow = other(kReady.log);
  slow.listened = seconds(1);
  EXPECT_EQ(have_begun({kReady, slow}, kAgentStarts + seconds(5)), false);
}

TEST(Beginning, AStepThatEndedIsNamedWithItsReason) {
  AgentBegins ended =
      other("antdt: there is no program /opt/antdtd on this node\nsrun: error: n2: task 0\n");
  ended.step_ended = true;
  EXPECT_THAT(why(ended, seconds(1)),
              AllOf(HasSubstr("not started on n2:\nantdt: there is no program /opt/antdtd"),
                    HasSubstr("install it there")));
  ended.log = "antdtd: binding tcp://10.0.0.2:20007: Address already in use\n";
  EXPECT_THAT(why(ended, seconds(1)),
              AllOf(HasSubstr("port 20007 on n2 is in use"), HasSubstr("Submit the job again")));
  ended.log = "srun: error: Task launch for StepId=5.2 failed on node n2: Communication failure\n";
  EXPECT_THAT(why(ended, seconds(1)),
              AllOf(HasSubstr("Slurm could not start the agent on n2:\nsrun: error: Task launch"),
                    HasSubstr("--exclude=n2")));
  ended.log = "";
  EXPECT_THAT(why(ended, seconds(1)),
              HasSubstr("n2 ended before it was ready (srun and the agent wrote nothing)"));
  ended.log = "1\n2\n3\n4\n5\n6\n";
  EXPECT_THAT(why(ended, seconds(1)), AllOf(HasSubstr(":\n2\n"), Not(HasSubstr("1"))));
}

TEST(Beginning, AllNodesThatAreTheReasonAreNamed) {
  AgentBegins a = other(""), b = other("");
  b.node = "n3";
  a.step_ended = b.step_ended = true;
  EXPECT_THAT(why(a, seconds(1)), HasSubstr("n2"));
  const auto begun = have_begun({a, kReady, b}, seconds(1));
  ASSERT_FALSE(begun.has_value());
  EXPECT_THAT(begun.error().message, AllOf(HasSubstr("on n2"), HasSubstr("on n3")));
}

}  // namespace
}  // namespace antdt::launcher
