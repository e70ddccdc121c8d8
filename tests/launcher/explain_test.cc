#include "launcher/view/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/json.h"

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ExplainInput running(const report::Status& status) {
  ExplainInput input;
  input.run_dir = "/r";
  input.status_json = report::json_of(status).dump();
  return input;
}

report::WorkerStatus worker(const std::string& id, const std::string& state,
                            const std::string& host) {
  report::WorkerStatus w;
  w.id = id;
  w.state = state;
  w.host = host;
  return w;
}

report::Status trains() {
  report::Status s;
  s.job = "j";
  s.state = "training";
  s.epochs = 2;
  s.incarnation = 2;
  s.samples_done = 2500;
  s.samples_total = 10000;
  s.samples_per_second = 1234;
  s.eta_seconds = 75;
  s.workers = {worker("w0", "joined", "a"), worker("w1", "joined", "b"),
               worker("w2", "waiting", "b")};
  s.workers[0].verdict = "ok";
  report::WorkerStatus& slow = s.workers[1];
  slow.rank = 1;
  slow.pid = 8;
  slow.attempt = 2;
  slow.batch = 10;
  slow.verdict = "persistent straggler, 3.0x slower (throttled)";
  slow.straggler =
      report::Straggler{"persistent", 3, "throttled", "a bound on its CPU time held it back"};
  s.workers[2].tried_again_in_s = 2;
  s.hosts = {{.name = "a", .up = true}, {.name = "b", .up = true, .probation = true}};
  s.failures = {{.time_s = 12.3,
                 .worker = "w2",
                 .host = "b",
                 .cls = "signal",
                 .cause = "w2 was killed by signal 9 (SIGKILL)\nits log",
                 .first = true,
                 .recovered_in_s = 0.4}};
  s.actions = {{.number = 1,
                .time_s = 20,
                .kind = "adjust-batch",
                .target = "w1",
                .reason = "it is 3 times slower",
                .outcome = "applied"}};
  s.budgets = {{"signal", {10, 9}}, {"oom", {2, 0}}};
  return s;
}

TEST(Explain, APauseComesFirst) {
  report::Status s = trains();
  s.paused = true;
  s.disk_trouble = "the disk of the journal is full: make room for 8 MiB in /r";
  const auto told = explain(running(s));
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->why.at(0),
            "The job is paused: the disk of the journal is full: make room for 8 MiB in /r.");
  EXPECT_THAT(told->why, Not(Contains(HasSubstr("stands still"))));
}

TEST(Explain, ARunningJobSaysWhyWhatWasDoneAndWhatComes) {
  const auto e = explain(running(trains())).value();
  EXPECT_THAT(e.why, Contains("The job trains epoch 1 of 2 with 2 workers; 25% of all samples are "
                              "trained, 1,234 a second."));
  EXPECT_THAT(e.why, Contains("w1 on b is a persistent straggler, 3.0x slower (throttled): a bound "
                              "on its CPU time held it back."));
  EXPECT_THAT(e.why, Contains("w2 is not running: it waits for a host with room."));
  EXPECT_THAT(e.why, Contains("Host b failed often lately; others are preferred."));
  EXPECT_THAT(e.why, Contains(HasSubstr("job daemon was started 2 times")));
  EXPECT_THAT(e.done, ElementsAre("At 12s w2 on b failed (class signal): w2 was killed by signal 9 "
                                  "(SIGKILL); training went on after 0.4s.",
                                  "At 20s adjust-batch w1 (applied): it is 3 times slower."));
  EXPECT_THAT(e.next, Contains("w2 is started again in 2.0s at the earliest, where a host has room "
                               "then."));
  EXPECT_THAT(e.next, Contains(HasSubstr("still tolerates: signal 9; training earns them back")));
  EXPECT_THAT(e.next, Contains(HasSubstr("The next failure of class oom ends the job")));
  EXPECT_THAT(e.next, Contains("At this speed training takes another 1m 15s."));
}

TEST(Explain, OnlyAnAdviceThatNothingHasFollowedIsOffered) {
  auto status = trains();
  status.job = "ctr-1";
  const auto advice = [](std::uint64_t number, const std::string& target,
                         const std::string& outcome) {
    return report::Action{number, 20, "adjust-batch", target, "it is slow", outcome};
  };
  status.actions = {advice(1, "w1", "advised"), advice(2, "w2", "advised"),
                    advice(3, "w1", "advised"), advice(4, "w2", "applied")};
  const auto offered = [](const Explanation& e) {
    std::string all;
    for (const std::string& line : e.done) {
      if (line.find("antdt approve") != std::string::npos) all += line + "\n";
    }
    return all;
  };
  EXPECT_EQ(offered(explain(running(status)).value()),
            "At 20s adjust-batch w1 (advised: antdt approve ctr-1 3 does it): it is slow.\n")
      << "1 was advised again, 2 was approved";
  report::Summary ended;
  ended.job = "ctr-1";
  ended.state = "done";
  ended.actions = status.actions;
  ExplainInput input;
  input.summary_json = report::json_of(ended).dump();
  EXPECT_EQ(offered(explain(input).value()), "") << "it has ended";
}

TEST(Explain, HostsThatDoNotAnswerWhileWorkersWaitAreNamedWithWhatToDo) {
  report::Status waits = trains();
  waits.workers[2].tried_again_in_s.reset();
  EXPECT_THAT(explain(running(waits))->next,
              Contains("w2 is started as soon as a host has room for it."));
  waits.hosts[1].up = false;
  const auto e = explain(running(waits)).value();
  EXPECT_THAT(e.why, Contains("The agent of host b is not reached: if antdtd does not run there, "
                              "start it."));
  EXPECT_THAT(e.next, Contains("w2 is started as soon as the agent of b answers, or another host "
                               "has room for it."));
}

TEST(Explain, AFormingGroupNamesTheAwaitedMembersAndTheReason) {
  report::Status forms;
  forms.state = "forming";
  forms.waiting_for = "w1 to join";
  auto input = running(forms);
  input.events = {{3, "generation-broken", "generation 1 is over: w1 was killed"},
                  {4, "restored", "nobody holds the training state"}};
  const auto e = explain(input).value();
  EXPECT_THAT(e.why,
              ElementsAre("The workers are meeting again: generation 1 is over: w1 was "
                          "killed.",
                          "It waits for w1 to join.", "At 4.0s: nobody holds the training state."));
  EXPECT_THAT(e.next, Contains(HasSubstr("hang_after")));
}

TEST(Explain, ACheckpointThatCannotBeReadIsTheReasonUntilAGroupHasFormed) {
  report::Status s = trains();
  s.waiting_for = "the checkpoint from which training goes on";
  ExplainInput input = running(s);
  input.events = {{3, "generation", "generation 1 is settled"},
                  {4, "checkpoint-unknown", "no member can read the checkpoint c"}};
  auto told = explain(input);
  ASSERT_TRUE(told) << told.error().message;
  const auto the_reason = Contains("At 4.0s: no member can read the checkpoint c.");
  EXPECT_THAT(told->why, the_reason);
  input.events.push_back({9, "generation", "generation 2 is settled"});
  told = explain(input);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(told->why, the_reason) << "it waits again";
  s.waiting_for.clear();
  input.status_json = running(s).status_json;
  told = explain(input);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(told->why, Not(the_reason));
}

TEST(Explain, AWorkerIsToldOfAlone) {
  auto input = running(trains());
  input.worker = "w1";
  input.events = {{30, "left", "w1 said something"}, {31, "left", "w0 too"}};
  const auto e = explain(input).value();
  EXPECT_THAT(e.why,
              ElementsAre("w1 is rank 1, on b (pid 8, attempt 2), with 10 samples of each "
                          "global batch.",
                          "The monitor sees a persistent straggler, 3.0x slower (throttled): a "
                          "bound on its CPU time held it back."));
  EXPECT_THAT(e.done, ElementsAre("At 20s adjust-batch w1 (applied): it is 3 times slower.",
                                  "At 30s, last of all: w1 said something."));
  input.worker = "w2";
  EXPECT_THAT(explain(input)->done, Contains(HasSubstr("class signal")));
  input.worker = "w7";
  EXPECT_EQ(explain(input).error().message, "the job has no worker 'w7'; it has w0, w1, w2");
}

TEST(Explain, AnEndedRunSaysItsFirstCauseAndWhetherItCanGoOn) {
  ExplainInput input;
  input.run_dir = "/r";
  report::Summary failed;
  failed.state = "failed";
  failed.exit = {1, "program", true, "w1 on b exited with code 3"};
  failed.failures = {
      {.time_s = 1, .worker = "w0", .host = "a", .cls = "collective", .cause = "lost its peers"}};
  input.summary_json = report::json_of(failed).dump();
  const auto e = explain(input).value();
  EXPECT_THAT(e.why, ElementsAre("The job failed (exit code 1): w1 on b exited with code 3."));
  EXPECT_THAT(e.done, ElementsAre("At 1.0s w0 on a failed (class collective): lost its peers; a "
                                  "consequence of another failure; training has not gone on "
                                  "since."));
  EXPECT_THAT(e.next, ElementsAre(HasSubstr("antdt run --resume /r goes on")));
  report::Summary done;
  done.state = "done";
  input.summary_json = report::json_of(done).dump();
  EXPECT_THAT(explain(input)->next, IsEmpty());
}

TEST(Explain, ABrokenOffRunSaysWhatIsKnownAndHowToGoOn) {
  ExplainInput input;
  input.run_dir = "/r";
  input.events = {{9, "epoch", "epoch 1: training loss 0.5"}};
  const auto lines = to_lines(explain(input).value());
  EXPECT_THAT(lines, Contains("  The last that is known of it, 9.0s after its beginning: epoch 1: "
                              "training loss 0.5."));
  EXPECT_THAT(lines, Contains(HasSubstr("antdt run --resume /r")));
  EXPECT_THAT(lines, Not(Contains("What was done")));
}

TEST(Explain, WhatTheStatusDoesNotListIsCountedAllTheSame) {
  report::Status s = trains();
  s.failures.resize(100, s.failures[0]);
  s.failures_count = 1500;
  ExplainInput input = running(s);
  EXPECT_THAT(explain(input)->done, Contains("1,492 failures before these."));
  input.worker = "w2";
  EXPECT_THAT(explain(input)->done,
              Contains("Of the job's 1,500 failures, only the newest 100 are known here."));
}

TEST(Explain, ARunThatItsAgentGaveUpIsToldWithTheReason) {
  ExplainInput input;
  input.run_dir = "/r";
  input.given_up = "its job daemon cannot be started: cannot execute /x: Permission denied";
  const auto told = explain(input);
  ASSERT_TRUE(told);
  EXPECT_THAT(told->why,
              ElementsAre("The run was broken off: its agent gave it up, because its job "
                          "daemon cannot be started: cannot execute /x: Permission "
                          "denied."));
  EXPECT_THAT(told->next, ElementsAre(HasSubstr("Mend that first"),
                                      HasSubstr("antdt run --resume /r goes on")));
}

TEST(Explain, ABrokenOffRunWithoutACheckpointIsNotSaidToGoOnFromOne) {
  ExplainInput input;
  input.run_dir = "/r";
  input.has_checkpoint = true;
  EXPECT_THAT(explain(input)->next, ElementsAre(HasSubstr("goes on from its last checkpoint")));
  input.has_checkpoint = false;
  EXPECT_THAT(explain(input)->next,
              ElementsAre(AllOf(HasSubstr("no complete checkpoint in /r/checkpoints"),
                                HasSubstr("antdt run --resume /r begins the training again"))));
}

}  // namespace
}  // namespace antdt::launcher
