// What `antdt top` decides and draws.
#include "launcher/top/top.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/top/screen.h"

namespace antdt::launcher::top {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

report::WorkerStatus worker(const std::string& id, double cpus) {
  return {.id = id,
          .host = "h1",
          .pid = 7,
          .attempt = 1,
          .state = "joined",
          .samples_per_second = 100,
          .verdict = "ok",
          .cpus = cpus};
}

// Job ctr-1: w0 is usual, w1 a straggler, w2 waits. Job mnist-2 does not answer.
Seen seen() {
  report::Status status;
  status.job = "ctr-1";
  status.state = "training";
  status.epochs = 2;
  status.workers = {worker("w0", 0.5), worker("w1", 0.9), worker("w2", 0), worker("w3", 0)};
  status.workers[0].lost_time =
      report::TimeSpent{.compute = 60, .collective_wait = 30, .other = 10};
  status.workers[1].straggler = report::Straggler{"persistent", 3, "throttled", "cpu.max"};
  status.workers[2].state = "waiting";
  status.workers[3].state = "removed";
  return {{{"/runs/1", "ctr-1", status, ""}, {"/runs/2", "mnist-2", std::nullopt, "no answer"}},
          {}};
}

std::vector<std::string> ids(const Top& top) {
  std::vector<std::string> found;
  for (const Row& row : top.rows()) found.push_back(row.worker.id);
  return found;
}

class TopTest : public testing::Test {
 protected:
  TopTest() { EXPECT_FALSE(step(top, Heard{seen()})); }
  std::optional<Effect> type(const std::string& bytes) {
    std::optional<Effect> last;
    for (const Pressed& key : keys_of(bytes)) last = step(top, key);
    return last;
  }
  std::string screen(bool colours = false) {
    std::string text;
    for (const std::string& line : draw(top, {24, 140}, colours)) text += line + "\n";
    return text;
  }
  Top top;
};

TEST(TopKeys, AreMadeOfWhatTerminalsSend) {
  std::vector<Key> keys;
  for (const Pressed& p : keys_of("\x1b[A\x1bOB\x1b[5~\x1b[1;5A\r\x03\x1b")) keys.push_back(p.key);
  EXPECT_THAT(keys, ElementsAre(Key::kUp, Key::kDown, Key::kPageUp, Key::kEnter, Key::kInterrupt,
                                Key::kEscape));
  ASSERT_EQ(keys_of("Q").size(), 1U);
  EXPECT_EQ(keys_of("Q")[0].letter, 'q');
  EXPECT_TRUE(keys_of("\xc3\xa4 1").empty());
  EXPECT_TRUE(keys_of("\x1b[").empty()) << "a sequence that is cut off";
}

TEST_F(TopTest, TheKeysSortTheWorkers) {
  EXPECT_THAT(ids(top), ElementsAre("w1", "w2", "w0")) << "the straggler, who does not run, others";
  type("c");
  EXPECT_THAT(ids(top), ElementsAre("w1", "w0", "w2"));
  type("l");
  EXPECT_THAT(ids(top), ElementsAre("w0", "w1", "w2"));
  type("n");
  EXPECT_THAT(ids(top), ElementsAre("w0", "w1", "w2"));
  type("s");
  EXPECT_THAT(ids(top), ElementsAre("w1", "w2", "w0"));
}

TEST_F(TopTest, SaysWhoIsSlowAndWhy) {
  const std::string text = screen();
  EXPECT_THAT(text, HasSubstr("persistent straggler, 3.0 times as slow: throttled (cpu.max)"));
  EXPECT_THAT(text, HasSubstr("waits for a host with room"));
  EXPECT_THAT(text, HasSubstr("mnist-2: no answer"));
  EXPECT_THAT(text, HasSubstr("40%  waiting for others"));
  EXPECT_THAT(text, HasSubstr("90%"));
}

TEST_F(TopTest, OnANarrowTerminalTheReasonOfTheSelectedWorkerIsUnderTheTable) {
  Seen narrow = seen();
  narrow.jobs.pop_back();
  narrow.jobs[0].job = narrow.jobs[0].status->job = "ctr-01M8CYWFYZWKMVDSCWYVKTZCSR";
  narrow.jobs[0].status->workers[1].straggler->seen = "a bound on its CPU time held it back";
  step(top, Heard{narrow});
  const auto lines = draw(top, {24, 80}, false);
  EXPECT_THAT(lines[0], HasSubstr("ctr-01M8CYWFYZWKMVDSCWYVKTZCSR"));
  EXPECT_THAT(lines[1], HasSubstr("most by")) << "the job's short name leaves room";
  EXPECT_THAT(lines[2], HasSubstr(">  ctr-0~  w1"));
  EXPECT_THAT(lines, testing::Contains("w1: persistent straggler, 3.0 times as slow: throttled (a "
                                       "bound on its CPU time"));
  EXPECT_THAT(lines, testing::Contains("held it back)"));
  EXPECT_THAT(lines.back(), HasSubstr("q leaves"));
  const auto size = lines.size();
  type("j");
  EXPECT_EQ(draw(top, {24, 80}, false).size(), size) << "the table stays where it is";
  EXPECT_EQ(draw(top, {24, 200}, false).size() + 2, size) << "it fits, and nothing is repeated";
  narrow.jobs.push_back(narrow.jobs[0]);
  narrow.jobs[1].job = "ctr-01M8CZZZYZWKMVDSCWYVKTZCSR";
  step(top, Heard{narrow});
  EXPECT_THAT(screen(), HasSubstr("ctr-01M8CY~")) << "so much of the ids as tells them apart";
  EXPECT_THAT(screen(), HasSubstr("ctr-01M8CZ~"));
}

TEST_F(TopTest, TheSelectedWorkerStaysSelectedWhileRowsMove) {
  type("\x1b[B\x1b[B");
  ASSERT_TRUE(top.selected);
  EXPECT_EQ(top.selected->second, "w0");
  type("n");
  Seen later = seen();
  later.jobs[0].status->workers.erase(later.jobs[0].status->workers.begin() + 2);
  step(top, Heard{later});
  EXPECT_EQ(top.selected->second, "w0");
  later.jobs[0].status->workers.erase(later.jobs[0].status->workers.begin());
  step(top, Heard{later});
  EXPECT_EQ(top.selected->second, "w1") << "w0 is gone";
  later.jobs.clear();
  step(top, Heard{later});
  EXPECT_FALSE(top.selected);
  EXPECT_FALSE(type("e\r"));
  EXPECT_THAT(screen(), HasSubstr("none of your jobs is running"));
}

TEST_F(TopTest, EnterOpensAWorkerAndEscapeClosesIt) {
  type("\r");
  EXPECT_THAT(screen(), HasSubstr("antdt logs /runs/1 --worker w1 -f"));
  EXPECT_THAT(screen(), HasSubstr("7, attempt 1"));
  type("\x1b");
  EXPECT_THAT(screen(), Not(HasSubstr("antdt logs")));
}

TEST_F(TopTest, EvictsOnlyAfterAYes) {
  EXPECT_FALSE(type("e"));
  EXPECT_THAT(screen(), HasSubstr("let w1 of ctr-1 leave h1? y: yes, any other key: no"));
  EXPECT_FALSE(type("q")) << "an answer, and not the key to leave";
  EXPECT_THAT(screen(), HasSubstr("w1 stays"));
  EXPECT_FALSE(type("e"));
  Seen later = seen();
  later.jobs[0].status->workers[1].straggler.reset();
  step(top, Heard{later});  // another worker is on top now
  const auto effect = type("y");
  ASSERT_TRUE(effect);
  ASSERT_TRUE(std::holds_alternative<Evict>(*effect));
  EXPECT_EQ(std::get<Evict>(*effect).worker, "w1");
  EXPECT_EQ(std::get<Evict>(*effect).run_dir, "/runs/1");
  step(top, Told{"w1 leaves after its step"});
  EXPECT_THAT(screen(), HasSubstr("w1 leaves after its step"));
}

TEST_F(TopTest, LeavesByItsKeyAndByAnInterruptAlsoDuringAQuestion) {
  EXPECT_TRUE(type("q"));
  EXPECT_TRUE(type("e\x03"));
}

TEST_F(TopTest, HasNoControlCharactersWithoutColoursWhateverIsSaid) {
  Seen evil = seen();
  evil.jobs[0].status->workers[1].straggler->seen = "a\x1b[2Jb\nc";
  evil.jobs[0].job = "j\x07";
  evil.hosts = {{"h1:7700", "1 processes\r", ""}};
  step(top, Heard{evil});
  for (const bool open : {false, true}) {
    top.open = open;
    for (const std::string& line : draw(top, {24, 200}, false)) {
      for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
    }
  }
  for (const std::string& line : draw_whole(top)) EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  top.open = false;
  EXPECT_THAT(screen(true), HasSubstr("\x1b[7m"));
}

TEST_F(TopTest, FitsIntoTheTerminalAndKeepsTheSelectedRowOnIt) {
  Seen many = seen();
  for (int i = 0; i < 100; ++i) {
    many.jobs[0].status->workers.push_back(worker(fmt::format("w{}", 10 + i), 0.1));
  }
  step(top, Heard{many});
  type("n");
  for (int i = 0; i < 60; ++i) type("j");
  for (const std::size_t rows : {1U, 2U, 5U, 24U}) {
    const auto lines = draw(top, {rows, 40}, false);
    EXPECT_LE(lines.size(), rows);
    for (const std::string& line : lines) EXPECT_LE(line.size(), 40U);
  }
  EXPECT_THAT(screen(), HasSubstr(">  ctr-1  " + top.selected->second));
  EXPECT_THAT(draw_whole(top).size(), 2U + 1U + 103U);
}

}  // namespace
}  // namespace antdt::launcher::top
