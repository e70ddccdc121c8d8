#include "launcher/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ExplainInput running(const std::string& json) {
  ExplainInput input;
  input.run_dir = "/r";
  input.status_json = json;
  return input;
}

const std::string kTrains = R"j({"job":"j","state":"training","epoch":0,"epochs":2,"incarnation":2,
  "samples_done":2500,"samples_total":10000,"samples_per_second":1234,"eta_seconds":75,
  "workers":[
    {"id":"w0","state":"joined","rank":0,"host":"a","pid":7,"attempt":1,"batch":30,"verdict":"ok"},
    {"id":"w1","state":"joined","rank":1,"host":"b","pid":8,"attempt":2,"batch":10,
     "verdict":"persistent straggler, 3.0x slower (throttled)",
     "straggler":{"cause":"throttled","seen":"a bound on its CPU time held it back"}},
    {"id":"w2","state":"waiting","tried_again_in_s":2,"host":"b","attempt":3}],
  "hosts":[{"name":"a","up":true},{"name":"b","up":true,"probation":true}],
  "failures":[{"time_s":12.3,"worker":"w2","host":"b","class":"signal",
               "cause":"w2 was killed by signal 9 (SIGKILL)\nits log","first":true,
               "recovered_in_s":0.4}],
  "actions":[{"time_s":20,"kind":"adjust-batch","target":"w1","outcome":"applied",
              "reason":"it is 3 times slower"}],
  "budgets":{
  "signal" : {"limit" : 10, "left" : 9}, "oom" : { "limit" : 2, "left" : 0 }
}
})j";

TEST(Explain, ARunningJobSaysWhyWhatWasDoneAndWhatComes) {
  const auto e = explain(running(kTrains)).value();
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
  EXPECT_THAT(e.next, Contains(HasSubstr("still bears 9 of class signal, forgiven")));
  EXPECT_THAT(e.next, Contains(HasSubstr("The next failure of class oom ends the job")));
  EXPECT_THAT(e.next, Contains("At this speed training takes another 1m 15s."));
}

TEST(Explain, AGroupThatMeetsSaysWhomItWaitsForAndWhyItMeets) {
  auto input = running(R"({"state":"forming","waiting_for":"w1 to join","workers":[]})");
  input.events = {{3, "generation-broken", "generation 1 is over: w1 was killed"},
                  {4, "restored", "nobody holds the training state"}};
  const auto e = explain(input).value();
  EXPECT_THAT(e.why,
              ElementsAre("The workers are meeting again: generation 1 is over: w1 was "
                          "killed.",
                          "It waits for w1 to join.", "At 4.0s: nobody holds the training state."));
  EXPECT_THAT(e.next, Contains(HasSubstr("hang_after")));
}

TEST(Explain, AWorkerIsToldOfAlone) {
  auto input = running(kTrains);
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
  input.summary_json = R"({"state":"failed","exit":{"code":1,"class":"program","resumable":true,
    "first_cause":"w1 on b exited with code 3"},
    "failures":[{"time_s":1,"worker":"w0","host":"a","class":"collective","cause":"lost its peers",
                 "first":false,"recovered_in_s":null}]})";
  const auto e = explain(input).value();
  EXPECT_THAT(e.why, ElementsAre("The job failed (exit code 1): w1 on b exited with code 3."));
  EXPECT_THAT(e.done, ElementsAre("At 1.0s w0 on a failed (class collective): lost its peers; a "
                                  "consequence of another failure; training has not gone on "
                                  "since."));
  EXPECT_THAT(e.next, ElementsAre(HasSubstr("antdt run --resume /r goes on")));
  input.summary_json = R"({"state":"done","exit":{"code":0}})";
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

}  // namespace
}  // namespace antdt::launcher
