#include "launcher/view/summary_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

report::WorkerSummary worker(const std::string& id, std::uint64_t samples,
                             const report::TimeSpent& time) {
  report::WorkerSummary w;
  w.id = id;
  w.host = "a";
  w.samples = samples;
  w.lost_time = time;
  return w;
}

report::Summary done() {
  report::Summary s;
  s.job = "ctr-1";
  s.state = "done";
  s.wall_seconds = 12.5;
  s.samples_total = s.samples_trained = 16000;
  s.samples_per_second = 2000.4;
  s.epochs = {{.train_loss = 0.52,
               .eval =
                   report::Evaluation{
                       .records = 200, .auc = 0.71, .log_loss = 0.49, .sums = {{"top5", 150}}}},
              {.train_loss = 0.48}};
  s.actions = {{.time_s = 3.2, .kind = "adjust-batch", .target = "w3", .reason = "3 times slower"}};
  s.workers = {worker("w0", 12000, {.compute = 5, .data = 1, .collective_wait = 2}),
               worker("w1", 4000, {.compute = 7.5, .data = 0.5})};
  s.lost_time = {.compute = 30, .data = 10, .collective_wait = 5, .checkpoint = 1, .startup = 4};
  return s;
}

TEST(SummaryView, SaysWhatWasTrainedByWorkersThatCouldNotReportIt) {
  EXPECT_THAT(summary_lines(done()), testing::Not(Contains(HasSubstr("before they reported"))));
  report::Summary s = done();
  s.workers.pop_back();
  EXPECT_THAT(summary_lines(s), Contains("4,000 more samples were trained by workers that ended "
                                         "before they reported them"));
}

TEST(SummaryView, ASpeedThatIsNotKnownIsNotCalledZero) {
  report::Summary s = done();
  s.samples_per_second = 0;
  EXPECT_THAT(summary_lines(s), Contains("ctr-1: done in 13s, speed not known"));
}

TEST(SummaryView, ShowsQualitySpeedTimeActionsAndAccounts) {
  const auto lines = summary_lines(done());
  EXPECT_THAT(lines, Contains("ctr-1: done in 13s, 2,000 samples/s"));
  EXPECT_THAT(lines, Contains("    1      0.5200    0.7100    0.4900         -  0.75"));
  EXPECT_THAT(lines, Contains("    2      0.4800         -         -         -     -"));
  EXPECT_THAT(lines, Contains("w0      a      12,000          2,000      6.0s    2.0s"));
  EXPECT_THAT(lines, Contains("w1      a       4,000            500      8.0s    0.0s"));
  EXPECT_THAT(lines,
              Contains("time of all workers: compute 60.0%, data 20.0%, collective wait 10.0%, "
                       "shard wait 0.0%, reconfigure 0.0%, checkpoint 2.0%, startup 8.0%, other "
                       "0.0%"));
  EXPECT_THAT(lines, Contains("      3.2s  adjust-batch w3: 3 times slower"));
  EXPECT_THAT(lines, Contains("samples: 16,000 of 16,000 trained, 0 repeated, 0 lost, 0 "
                              "skipped, 0 unaccounted"));
  report::Summary skipping = done();
  skipping.skipped_by_program = {{"too long", 2}, {"torn", 1234}};
  EXPECT_THAT(summary_lines(skipping),
              Contains("  1,236 samples skipped by the program, see RUN/skipped-*.jsonl: torn "
                       "(1,234), too long (2)"));
  EXPECT_THAT(closing_lines(done(), "/r"), IsEmpty());
  report::Summary malformed = done();
  malformed.rows_put_aside = 1;
  EXPECT_THAT(summary_lines(malformed),
              Contains("  1 malformed row of the data was put aside, and is no record"));
  malformed.rows_put_aside = 1200;
  EXPECT_THAT(summary_lines(malformed),
              Contains("  1,200 malformed rows of the data were put aside, and are no records"));
}

TEST(SummaryView, AnActionThatWasNotDoneSaysSo) {
  report::Summary s = done();
  s.actions[0].outcome = "applied";
  EXPECT_THAT(summary_lines(s), Contains("      3.2s  adjust-batch w3: 3 times slower"));
  s.actions[0].outcome = "advised";
  EXPECT_THAT(summary_lines(s), Contains("      3.2s  adjust-batch w3 (advised): 3 times slower"));
  s.actions = {{.time_s = 4, .kind = "inject", .reason = "a drill", .outcome = "asked"}};
  EXPECT_THAT(summary_lines(s), Contains("      4.0s  inject (asked): a drill"));
}

TEST(SummaryView, OfManyFailuresAndActionsTheLastAreShownAndAllAreCounted) {
  report::Summary s = done();
  s.actions.clear();
  for (int i = 1; i <= 150; ++i) {
    s.failures.push_back({.time_s = 1.0 * i, .worker = "w1", .host = "a", .cls = "signal"});
    s.actions.push_back({.time_s = 1.0 * i, .kind = "evict", .target = "w1"});
  }
  s.actions_count = 20'000;
  const auto lines = summary_lines(s);
  EXPECT_THAT(lines, Contains("failures: 150, the last 20 (summary.json has all):"));
  EXPECT_THAT(lines, Contains("actions: 20,000, the last 20 (summary.json has the newest 150):"));
  EXPECT_THAT(lines, Contains(HasSubstr(" 150.0s  w1 on a, signal")));
  EXPECT_THAT(lines, Contains(HasSubstr(" 131.0s  evict w1")));
  EXPECT_THAT(lines, testing::Not(Contains(HasSubstr(" 130.0s"))));
}

TEST(SummaryView, WhatIsNotKnownOfAScriptIsLeftOut) {
  report::Summary s;
  s.job = "train-1";
  s.state = "failed";
  s.wall_seconds = 91;
  s.steps = 61;
  s.samples_per_second = 976;
  s.traced = report::TracedScript{.ranks = 2, .samples_known = true};
  EXPECT_THAT(summary_lines(s), Contains("train-1: failed in 1m 31s, 976 samples/s"));
  EXPECT_THAT(summary_lines(s), testing::Not(Contains(HasSubstr("of 0 trained"))));
  s.hang = report::HangFound{.time_s = 5, .over = true};
  EXPECT_THAT(summary_lines(s), Contains(HasSubstr("976 samples/s"))) << "they went on";
  s.hang->over = false;
  EXPECT_THAT(summary_lines(s), Contains("train-1: failed in 1m 31s, 61 steps until it hung"));
  s = {};
  s.job = "exec-1";
  s.state = "done";
  s.wall_seconds = 5;
  EXPECT_THAT(summary_lines(s), Contains("exec-1: done in 5.0s"));
}

TEST(SummaryView, ShowsParameterServersWhereThereAre) {
  report::Summary s = done();
  s.servers = {{.id = "s0",
                .host = "a",
                .pid = 7,
                .attempt = 2,
                .state = "exited",
                .rows = 15216,
                .bytes = 3145728,
                .requests = 1172,
                .service_us_p50 = 117.02,
                .service_us_p99 = 611.4}};
  s.staleness = report::Staleness{1.25, 3};
  s.pushes = report::Pushes{375, 4, 1};
  const auto lines = summary_lines(s);
  EXPECT_THAT(lines,
              Contains("s0      a       7        2  exited  15,216  3.0     1,172     117     "
                       "611"));
  EXPECT_THAT(lines, Contains("pushes: 375 applied, 4 late, 1 repeated; staleness 1.2 (most 3)"));
}

// A worker that came later, or trained alone at first, counted fewer steps.
TEST(SummaryView, SaysHowGradientsWereSummed) {
  report::Summary s = done();
  EXPECT_THAT(summary_lines(s), testing::Not(Contains(HasSubstr("gradients"))));
  s.collective = "shm (2 members of 1 host)";
  s.workers[0].embedding_steps = {700, 5};
  s.workers[1].embedding_steps = {1234, 5};
  const auto lines = summary_lines(s);
  EXPECT_THAT(lines, Contains("collective: shm (2 members of 1 host)"));
  EXPECT_THAT(lines, Contains("embedding gradients: w1 summed the rows of the batch in 1,234 "
                              "steps, the whole table in 5"));
}

// The gap is a mean over exchanges, so that of a worker with more of them counts more.
TEST(SummaryView, SaysHowReplicasWereExchanged) {
  report::Summary s = done();
  EXPECT_THAT(summary_lines(s), testing::Not(Contains(HasSubstr("exchanges"))));
  for (report::WorkerSummary& w : s.workers) w.wall_seconds = 0;
  s.workers[0].wall_seconds = 40;
  s.workers[0].exchanges = {
      .count = 3000, .mean_gap_steps = 2, .mean_gap_ms = 40, .waited_seconds = 0.1};
  s.workers[1].exchanges = {
      .count = 1000, .mean_gap_steps = 4, .mean_gap_ms = 80, .waited_seconds = 0.1};
  EXPECT_THAT(summary_lines(s),
              Contains("exchanges: 4,000, one in 2.5 steps or 50 ms of a worker; training waited "
                       "0.2s for them (0.50%)"));
}

TEST(SummaryView, SaysWhatDomainsSentOfTheirUpdates) {
  report::Summary s = done();
  EXPECT_THAT(summary_lines(s), testing::Not(Contains(HasSubstr("updates between domains"))));
  s.workers[0].updates = {.messages = 1200, .whole = 24, .sent_share = 0.1};
  s.workers[1].updates = {.messages = 1000, .whole = 20, .sent_share = 0.2};
  EXPECT_THAT(summary_lines(s),
              Contains("updates between domains: 1,200 messages of each domain, 24 of them whole; "
                       "15.0% of the elements were sent"));
  s.update_threshold = {.in_force = 0.2, .of_job = 0.2};
  EXPECT_THAT(summary_lines(s), testing::Not(Contains(HasSubstr("threshold"))));
  s.update_threshold = {0.05, 0.2, report::VisitFound{1200, 0.031, 0.124}};
  EXPECT_THAT(
      summary_lines(s),
      Contains("threshold of updates between domains: 0.05 (0.2 in job.toml); at step 1,200 "
               "replicas did 3.1% worse in another domain than its own replica, with 12.4% of "
               "the bytes"));
  s.update_threshold->visit->accuracy_loss = -0.005;
  EXPECT_THAT(summary_lines(s), Contains(HasSubstr("did 0.5% better in another domain")));
}

TEST(SummaryView, AFailedRunEndsWithItsFirstCause) {
  report::Summary s;
  s.state = "failed";
  s.exit = {.code = 1, .cls = "program", .first_cause = "w1: no such model"};
  const auto lines = closing_lines(s, "/r");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("/r/logs"));
  EXPECT_EQ(lines[1], "first cause: w1: no such model");
}

TEST(SummaryView, AStoppedRunSaysHowToGoOn) {
  report::Summary s;
  s.state = "stopped";
  s.exit = {.code = 75, .cls = "stopped", .resumable = true};
  EXPECT_THAT(closing_lines(s, "/r"), Contains(HasSubstr("antdt run --resume /r")));
}

TEST(SummaryView, AFileThatIsNoSummaryIsRefused) {
  EXPECT_FALSE(parse_summary("{"));
  EXPECT_FALSE(parse_summary("{\"state\":\"done\"}"));
}

}  // namespace
}  // namespace antdt::launcher
