#include "launcher/view/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/view/text_table.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;

report::WorkerStatus worker(const std::string& id, const std::string& state) {
  report::WorkerStatus w;
  w.id = id;
  w.host = "h1";
  w.state = state;
  w.attempt = 1;
  return w;
}

report::Status trains_with_two() {
  report::Status s;
  s.job = "ctr-1";
  s.state = "training";
  s.generation = 2;
  s.incarnation = 1;
  s.epochs = 2;
  s.samples_done = 4300;
  s.samples_total = 10000;
  s.samples_per_second = 12345.4;
  s.train_loss = 0.51234;
  s.eta_seconds = 75.2;
  s.last_eval = report::Evaluation{.records = 2000, .auc = 0.7291, .sums = {{"top5", 1800}}};
  s.workers = {worker("w0", "joined"), worker("w1", "started")};
  s.workers[0].rank = 0;
  s.workers[0].pid = 11;
  s.workers[0].batch = 300;
  s.workers[0].samples_per_second = 4000;
  s.workers[0].verdict = "ok";
  s.workers[1].attempt = 2;
  return s;
}

TEST(StatusView, ProgressIsOneLine) {
  EXPECT_EQ(progress_line(trains_with_two()),
            "epoch 1/2  training  43%  12,345 samples/s  ETA 1m 15s  loss 0.5123  (AUC 0.7291, "
            "top5 0.9)");
}

TEST(StatusView, APauseComesFirst) {
  report::Status s = trains_with_two();
  s.paused = true;
  s.disk_trouble = "the disk of the journal is full: make room";
  s.samples_per_second = 0;
  s.eta_seconds.reset();
  EXPECT_EQ(progress_line(s), "epoch 1/2  paused  43%  loss 0.5123  (AUC 0.7291, top5 0.9)");
  const std::string line = "paused: the disk of the journal is full: make room";
  EXPECT_EQ(status_table(s, {}).at(0), line);
  EXPECT_EQ(live_block(s, {}, 80).at(1), line);
  EXPECT_THAT(status_table(s, {}), testing::Not(testing::Contains(s.disk_trouble)));
}

TEST(StatusView, UnknownValuesAreLeftOut) {
  report::Status begins;
  begins.state = "starting";
  EXPECT_EQ(progress_line(begins), "starting");
}

TEST(StatusView, EachWorkerIsALineUnderAlignedColumns) {
  EXPECT_THAT(worker_table(trains_with_two(), {}),
              ElementsAre("worker  rank  host  pid  attempt  state    batch  samples/s  verdict",
                          "w0         0  h1     11        1  joined     300      4,000  ok",
                          "w1         -  h1      -        2  started      0          -"));
}

TEST(StatusView, EachServerIsALineThatSaysWhatItIsAndWhetherItIsSlow) {
  report::ServerStatus server;
  server.id = "s0";
  server.host = "h1";
  server.pid = 7;
  server.attempt = 1;
  server.state = "joined";
  server.rows = 1200;
  server.bytes = 1048576;
  server.requests = 10;
  server.service_us_p50 = 90;
  server.service_us_p99 = 200;
  server.verdict = "transient straggler, 3.0x slower (unknown)";
  EXPECT_THAT(
      server_table({server}),
      ElementsAre(
          "server  host  pid  attempt  state    rows  MiB  requests  p50 us  p99 us  verdict",
          "s0      h1      7        1  joined  1,200  1.0        10      90     200  transient "
          "straggler, 3.0x slower (unknown)"));
  server.role = "primary";
  const auto two = server_table({server});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_TRUE(two[0].ends_with("  role"));
  EXPECT_TRUE(two[1].ends_with("  primary"));
}

TEST(StatusView, TheBlockFitsTheTerminalAndEachPartIsOneLine) {
  auto status = trains_with_two();
  status.message = "waiting\nfor w1";
  const auto lines = live_block(status, {{12.34, "action", "adjust-batch w1: it is slow"}}, 30);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], "epoch 1/2  training  43%  12,~");
  EXPECT_EQ(lines[1], "waiting for w1");
  EXPECT_EQ(lines[5], "    12.3s  action: adjust-bat~");
}

TEST(StatusView, ABlockThatIsTooNarrowForTheVerdictsHasTheWorstUnderTheTable) {
  auto status = trains_with_two();
  report::WorkerStatus& slow = status.workers[0];
  slow.verdict = "deterministic straggler, 3.0x slower (compute)";
  slow.straggler =
      report::Straggler{"deterministic", 3, "compute", "it computes three times as long"};
  const auto narrow = live_block(status, {}, 60);
  EXPECT_THAT(narrow,
              testing::IsSupersetOf({"w0: deterministic straggler, 3.0x slower (compute): it",
                                     "computes three times as long"}));
  EXPECT_THAT(live_block(status, {}, 140),
              testing::Not(testing::Contains(testing::StartsWith("w0: "))));
}

TEST(StatusView, AnAnswerThatIsNoStatusIsAnErrorThatNamesTheField) {
  EXPECT_FALSE(parse_status("[1]"));
  EXPECT_FALSE(parse_status("{"));
  const auto wrong = parse_status(R"({"job":3})");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("job is no text"));
  const auto missing = parse_status(R"({"job":"j"})");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("state is missing"));
}

TEST(StatusView, EventsThatMatterAreToldWithoutATerminal) {
  const auto action = parse_event(R"({"time_s":3.0,"kind":"action","text":"adjust-batch w3"})");
  ASSERT_TRUE(action);
  EXPECT_TRUE(is_notable(*action));
  EXPECT_EQ(event_line(*action), "     3.0s  action: adjust-batch w3");
  EXPECT_TRUE(is_notable({1, "epoch", ""}));
  EXPECT_FALSE(is_notable({1, "checkpoint", ""}));
}

TEST(TextTable, NumbersAreGroupedAndTimesAreShort) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(clock_text(9.44), "9.4s");
  EXPECT_EQ(clock_text(59.6), "1m 00s");
  EXPECT_EQ(clock_text(3725), "1h 02m");
  EXPECT_EQ(clock_text(-1), "?");
}

TEST(TextTable, CuttingCountsCharactersAndNotBytes) {
  EXPECT_EQ(cut("größer", 6), "größer");
  EXPECT_EQ(cut("größer", 5), "größ~");
}

report::Status troubled() {
  report::Status s;
  s.job = "ctr-1";
  s.state = "training";
  s.waiting_for = "w1 to join";
  s.failures = {
      {.time_s = 4.25,
       .worker = "w1",
       .host = "b",
       .cls = "signal",
       .cause = "w1 was killed\nlog line",
       .first = true,
       .recovered_in_s = 0.5},
      {.time_s = 4.5, .worker = "w0", .host = "a", .cls = "collective", .cause = "lost its peers"}};
  s.hosts = {{.name = "a", .room = 2, .up = true},
             {.name = "b", .room = 2, .up = true, .probation = true},
             {.name = "c", .room = 2},
             {.name = "d", .room = 2, .up = true, .closed = true},
             {.name = "e", .room = 2, .up = true, .drained = "by root@e: new memory"}};
  return s;
}

TEST(StatusView, ShowsAwaitedProcessesFailuresAndAvoidedHosts) {
  const auto lines = status_table(troubled(), {});
  EXPECT_THAT(lines, testing::Contains("waiting for w1 to join"));
  EXPECT_THAT(
      lines,
      testing::Contains(
          "hosts: a (room for 2), b (failed often lately, avoided), c "
          "(not reached), d (evicted, takes no workers), e (drained by root@e: new memory)"));
  EXPECT_THAT(lines,
              testing::Contains("     4.2s  w1 on b, signal: w1 was killed; went on after 0.5s"));
  EXPECT_THAT(lines,
              testing::Contains("     4.5s  w0 on a, collective: lost its peers; a consequence"));
  report::Failure failure = troubled().failures[0];
  failure.went_back_to = 1200;
  EXPECT_THAT(failure_line(failure), testing::EndsWith("; went on after 0.5s from step 1,200"));
  failure.went_back_to = 0;
  EXPECT_THAT(failure_line(failure), testing::EndsWith("; went on after 0.5s from the beginning"));
  EXPECT_FALSE(is_running(worker("w12", "waiting")));
  EXPECT_TRUE(is_running(worker("w12", "joined")));
}

TEST(StatusView, FailuresThatAreNotInTheStatusAreCounted) {
  report::Status s = troubled();
  EXPECT_THAT(status_table(s, {}), testing::Contains("failures: 2"));
  s.failures.resize(100, s.failures[0]);
  s.failures_count = 1500;
  EXPECT_THAT(status_table(s, {}), testing::Contains("failures: 1,500, the last 5:"));
}

TEST(StatusView, ProgressNamesTheHostsThatAreAwaited) {
  report::Status s;
  s.state = "forming";
  s.hosts = {{.name = "a", .up = true}, {.name = "b"}, {.name = "c", .closed = true}};
  s.workers = {worker("w0", "joined")};
  EXPECT_EQ(progress_line(s), "forming") << "nobody waits for a host";
  s.workers.push_back(worker("w1", "waiting"));
  EXPECT_EQ(progress_line(s), "forming  no answer from b: is antdtd running there?");
}

TEST(StatusView, HostsAreNotToldOfWhereThereIsNothingToTell) {
  report::Status one;
  one.hosts = {{.name = "a", .room = 9, .up = true}};
  for (const std::string& line : status_table(one, {})) {
    EXPECT_FALSE(line.starts_with("hosts")) << line;
  }
}

TEST(StatusView, AWorkersLastEventIsTheNewestThatNamesIt) {
  const std::vector<EventView> events = {{1, "worker-started", "w1 started on a (pid 7)"},
                                         {2, "worker-exited", "w12 on a exited with code 1"}};
  ASSERT_NE(last_event(events, "w1"), nullptr);
  EXPECT_EQ(last_event(events, "w1")->time_s, 1);
  EXPECT_EQ(last_event(events, "w12")->time_s, 2);
  EXPECT_EQ(last_event(events, "w2"), nullptr);
  const std::string json = with_last_events(R"({"workers":[{"id":"w12"},{"id":"w3"}]})", events);
  EXPECT_EQ(json, R"({"workers":[{"id":"w12","last_event":{"kind":"worker-exited",)"
                  R"("text":"w12 on a exited with code 1","time_s":2.0}},)"
                  R"({"id":"w3","last_event":null}]})");
}

}  // namespace
}  // namespace antdt::launcher
