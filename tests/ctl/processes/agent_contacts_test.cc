#include "ctl/processes/agent_contacts.h"

#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;

const MonoTime kNow = MonoTime{} + std::chrono::hours(1);
constexpr Duration kLostAfter = seconds(30);

AgentContacts one_host() {
  AgentContacts contacts(kLostAfter);
  contacts.add("a", kNow);
  return contacts;
}
AgentContacts one_that_welcomed() {
  AgentContacts contacts = one_host();
  EXPECT_TRUE(contacts.welcomed("a", kNow));
  return contacts;
}

TEST(AgentContacts, AHostIsAskedUntilItWelcomesTheDaemonAndIsNewsOnce) {
  AgentContacts contacts = one_host();
  EXPECT_FALSE(contacts.welcome("a"));
  EXPECT_FALSE(contacts.all_welcome());
  EXPECT_TRUE(contacts.welcomed("a", kNow));
  EXPECT_FALSE(contacts.welcomed("a", kNow));
  EXPECT_TRUE(contacts.all_welcome());
}

TEST(AgentContacts, AnAgentThatNeverWelcomedIsLostSoonerThanOneThatDid) {
  AgentContacts never = one_host();
  EXPECT_FALSE(never.look("a", kNow + AgentContacts::kConnectDeadline));
  EXPECT_TRUE(never.look("a", kNow + AgentContacts::kConnectDeadline + seconds(1)));
  AgentContacts welcomed = one_that_welcomed();
  EXPECT_FALSE(welcomed.look("a", kNow + kLostAfter));
  EXPECT_EQ(welcomed.look("a", kNow + kLostAfter + seconds(1)), kLostAfter + seconds(1));
  EXPECT_FALSE(welcomed.look("a", kNow + 2 * kLostAfter)) << "said once";
  EXPECT_FALSE(welcomed.welcome("a")) << "it is asked again";
}

TEST(AgentContacts, AHostThatWasTakenAwayIsLostWithoutASilence) {
  AgentContacts contacts = one_that_welcomed();
  EXPECT_TRUE(contacts.gone("a"));
  EXPECT_FALSE(contacts.welcome("a"));
  EXPECT_FALSE(contacts.gone("a")) << "said once";
  EXPECT_FALSE(contacts.look("a", kNow + 2 * kLostAfter)) << "said once";
  EXPECT_FALSE(contacts.gone("b")) << "it never was among the hosts";
}

TEST(AgentContacts, ALostHostThatSpeaksHasToWelcomeTheDaemonAgain) {
  AgentContacts contacts = one_that_welcomed();
  ASSERT_TRUE(contacts.look("a", kNow + 2 * kLostAfter));
  contacts.heard("a", kNow + 2 * kLostAfter);
  EXPECT_FALSE(contacts.welcome("a"));
  EXPECT_TRUE(contacts.welcomed("a", kNow + 2 * kLostAfter));
}

TEST(AgentContacts, AnAgentThatWasRestartedIsAskedAgainAndItsHostIsNotLost) {
  AgentContacts contacts = one_that_welcomed();
  EXPECT_FALSE(contacts.refused("a", wire::RefusalCode::kUnknown, kNow));
  EXPECT_FALSE(contacts.welcome("a"));
  EXPECT_TRUE(contacts.welcomed("a", kNow));
}

TEST(AgentContacts, AnAgentThatRefusesTheDaemonIsLostAndReportedOnce) {
  AgentContacts contacts = one_host();
  EXPECT_TRUE(contacts.refused("a", wire::RefusalCode::kStale, kNow));
  EXPECT_FALSE(contacts.refused("a", wire::RefusalCode::kStale, kNow));
}

TEST(AgentContacts, OnlyARevokedKeyEndsAWelcome) {
  AgentContacts contacts = one_that_welcomed();
  EXPECT_FALSE(contacts.refused("a", wire::RefusalCode::kInvalid, kNow));
  EXPECT_TRUE(contacts.welcome("a"));
  EXPECT_TRUE(contacts.refused("a", wire::RefusalCode::kUser, kNow));
  EXPECT_FALSE(contacts.welcome("a"));
}

TEST(AgentContacts, AHostThatSaidNothingForAMomentIsSilent) {
  AgentContacts contacts = one_that_welcomed();
  EXPECT_TRUE(contacts.silent(kNow + AgentContacts::kSilence).empty());
  EXPECT_EQ(contacts.silent(kNow + AgentContacts::kSilence + seconds(1)),
            std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace antdt::ctl
