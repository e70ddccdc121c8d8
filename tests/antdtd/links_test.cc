// Tests which link speaks for a job to an agent, and which processes the agent hears.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "antdtd/agent/job_links.h"
#include "antdtd/agent/worker_gate.h"

namespace antdt::antdtd {
namespace {

using ::testing::HasSubstr;

// A machine, with each input as a call.
struct Links {
  JobLinks machine;

  // The reason why the link is refused; "": it is not.
  std::string attach(std::uint64_t incarnation, const std::string& peer,
                     const std::string& user = "") {
    links::Effects out;
    machine.step(links::AttachAsked{"j", Incarnation{incarnation}, peer, user}, out);
    EXPECT_EQ(out.size(), 1U);
    const auto* const admitted = std::get_if<links::AdmitLink>(&out.front());
    is_new = admitted != nullptr && admitted->is_new;
    return admitted ? "" : std::get<links::RefuseLink>(out.front()).reason;
  }
  void hear(const links::Input& input) {
    links::Effects out;
    machine.step(input, out);
    EXPECT_TRUE(out.empty());
  }
  bool is_new = false;  // for the link that was admitted last
};

TEST(JobLinks, AHigherIncarnationTakesOverAndALowerIsRefused) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  EXPECT_TRUE(links.is_new);
  EXPECT_FALSE(links.machine.speaks_for("peer-1", "j"));
  EXPECT_TRUE(links.machine.speaks_for("peer-2", "j"));
  EXPECT_THAT(links.attach(1, "peer-1"), HasSubstr("incarnation 2"));
  EXPECT_TRUE(links.machine.speaks_for("peer-2", "j"));
}

TEST(JobLinks, TheSameIncarnationMayConnectAgainAndIsNothingNew) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1"), "");
  EXPECT_EQ(links.attach(1, "peer-9"), "");
  EXPECT_FALSE(links.is_new);
  EXPECT_TRUE(links.machine.speaks_for("peer-9", "j"));
}

TEST(JobLinks, AnotherUsersKeyCannotTakeAJobOver) {
  Links links;
  EXPECT_EQ(links.attach(1, "peer-1", "anna"), "");
  EXPECT_THAT(links.attach(2, "peer-2", "otto"), HasSubstr("'anna'"));
  EXPECT_TRUE(links.machine.speaks_for("peer-1", "j"));
}

TEST(JobLinks, WhatAnEarlierAgentSawStillFences) {
  Links links;
  links.hear(links::JobFound{"j", Incarnation{4}, ""});
  EXPECT_FALSE(links.machine.attached("j"));
  EXPECT_NE(links.attach(3, "peer"), "");
  EXPECT_EQ(links.attach(4, "peer"), "");
}

TEST(JobLinks, ALostLinkSpeaksForNothingAndFencesOnUntilTheJobIsForgotten) {
  Links links;
  EXPECT_EQ(links.attach(2, "peer-2"), "");
  links.hear(links::LinkLost{"j"});
  EXPECT_FALSE(links.machine.speaks_for("peer-2", "j"));
  EXPECT_NE(links.attach(1, "peer-1"), "");
  links.hear(links::JobForgotten{"j"});
  EXPECT_EQ(links.attach(1, "peer-1"), "");
}

// ---------------------------------------------------------------------- processes

struct Processes {
  Supervision supervision{{4, 0, 0}};
  supervision::Effects out;

  void hear(const supervision::Input& input) { supervision.step(input, MonoTime{}, out); }
  void start(std::uint32_t attempt) {
    auto order = std::make_shared<wire::StartProcess>();
    order->command = {"worker"};
    order->cpus = 1;
    hear(supervision::StartWanted{key(attempt), order, 1});
    hear(supervision::WorkerStarted{key(attempt), 1000 + attempt});
  }
  static ProcessKey key(std::uint32_t attempt) { return {"j", {{'w', 3}, Attempt{attempt}}}; }
};

TEST(WorkerGate, AProcessThatThisAgentDidNotStartIsToldSo) {
  const auto refused = refusal_of(Processes::key(1), Processes().supervision);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, wire::RefusalCode::kUnknown);
  EXPECT_THAT(refused->reason, HasSubstr("ANTDT_ATTEMPT"));
}

TEST(WorkerGate, AnOlderAttemptIsToldThatItWasReplaced) {
  Processes processes;
  processes.start(1);
  EXPECT_FALSE(refusal_of(Processes::key(1), processes.supervision));
  processes.start(2);
  const auto refused = refusal_of(Processes::key(1), processes.supervision);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, wire::RefusalCode::kStale);
}

TEST(WorkerGate, NothingIsPassedOnToAProcessThatHasEnded) {
  Processes processes;
  EXPECT_FALSE(hears_job_daemon(Processes::key(1), processes.supervision));
  processes.start(1);
  EXPECT_TRUE(hears_job_daemon(Processes::key(1), processes.supervision));
  processes.hear(supervision::ProcessEnded{Processes::key(1), ExitStatus{0, 0, "", ""}});
  EXPECT_FALSE(hears_job_daemon(Processes::key(1), processes.supervision));
}

}  // namespace
}  // namespace antdt::antdtd
