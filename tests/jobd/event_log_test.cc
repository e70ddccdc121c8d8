#include "jobd/disk/event_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/os/fs.h"

namespace antdt::jobd {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EventLogTest : public testing::Test {
 protected:
  // The lines of the file so far, each as JSON.
  std::vector<json> written() {
    EXPECT_TRUE(disk_.await_idle(std::chrono::seconds(20)));
    std::vector<json> lines;
    std::istringstream in(read_rotated(path_));
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> kinds;
    for (const json& line : written()) kinds.push_back(line.at("kind"));
    return kinds;
  }

  TempDir directory_;
  std::string path_ = directory_ / "events.jsonl";
  SteadyClock clock_;
  DiskThread disk_{clock_, 3};
};

TEST_F(EventLogTest, AnEventIsALineOfJsonWhateverIsInItsText) {
  const std::string text = "w1 said \"no\"\nand left\\ \t\x01";
  EventLog log(path_, disk_);
  log.add(1.25, "worker-exited", text, R"("target":"w1","code":7)");
  const auto lines = written();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].at("time_s"), 1.25);
  EXPECT_EQ(lines[0].at("kind"), "worker-exited");
  EXPECT_EQ(lines[0].at("text"), text);
  EXPECT_EQ(lines[0].at("target"), "w1");
  EXPECT_EQ(lines[0].at("code"), 7);
}

// The last lines of a worker's error output are bytes, and may begin inside a character.
TEST_F(EventLogTest, BytesThatAreNoTextAreReplaced) {
  EventLog log(path_, disk_);
  log.add(1, "end", "w1 said \xbc and left");
  const auto lines = written();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].at("text"), "w1 said \uFFFD and left");
}

TEST_F(EventLogTest, TheLiveViewAsksForWhatItHasNotSeen) {
  EventLog log(path_, disk_);
  EXPECT_EQ(log.next(), 0U);
  EXPECT_THAT(log.since(0), IsEmpty());
  for (const char* kind : {"a", "b", "c"}) log.add(0, kind, "");
  EXPECT_EQ(log.next(), 3U);
  ASSERT_THAT(log.since(2), SizeIs(1));
  EXPECT_EQ(json::parse(log.since(2)[0]).at("kind"), "c");
  EXPECT_THAT(log.since(3), IsEmpty());
  EXPECT_THAT(log.since(99), IsEmpty()) << "of an earlier incarnation, which had more";
}

TEST_F(EventLogTest, AThousandAreKeptAndTheirNumbersStay) {
  EventLog log(path_, disk_);
  for (int i = 0; i < 1500; ++i) log.add(i, "tick", "");
  EXPECT_EQ(log.next(), 1500U);
  EXPECT_THAT(log.since(0), SizeIs(1000));
  EXPECT_EQ(json::parse(log.since(0).front()).at("time_s"), 500.0);
  ASSERT_THAT(log.since(1499), SizeIs(1));
  EXPECT_EQ(json::parse(log.since(1499)[0]).at("time_s"), 1499.0);
}

TEST_F(EventLogTest, EventsAreCountedByKindAndReturnedAsTheyAreWritten) {
  EventLog log(path_, disk_);
  const json event = json::parse(log.add(1, "start", "it begins"));
  EXPECT_EQ(event, written().at(0));
  for (int i = 0; i < 1500; ++i) log.add(i, "tick", "");
  EXPECT_EQ(log.counts().at("tick"), 1500U);
  EXPECT_EQ(log.counts().at("start"), 1U);
}

TEST_F(EventLogTest, TheNextIncarnationAppends) {
  {
    EventLog log(path_, disk_);
    log.add(1, "start", "");
  }
  EventLog log(path_, disk_);
  log.add(2, "resumed", "");
  EXPECT_THAT(kinds(), ElementsAre("start", "resumed"));
  EXPECT_EQ(log.next(), 1U) << "the live view knows only its own";
}

TEST_F(EventLogTest, AFileThatCannotBeWrittenCostsTheFileAlone) {
  EventLog log(directory_ / "nowhere/events.jsonl", disk_);
  log.add(1, "start", "");
  EXPECT_TRUE(disk_.await_idle(std::chrono::seconds(20)));
  EXPECT_THAT(log.since(0), SizeIs(1));
}

// The disk thread holds three waiting lines; the events after them while the disk hangs are missing
// in the file, which says so as soon as the disk answers.
TEST_F(EventLogTest, EventsDroppedWhileTheDiskHungAreCountedInTheFile) {
  EventLog log(path_, disk_);
  std::promise<void> began, answers;
  disk_.run("standing still", [&, until = answers.get_future().share()] {
    began.set_value();
    until.wait();
    return DiskThread::Then();
  });
  began.get_future().wait();
  for (int i = 0; i < 8; ++i) log.add(i, fmt::format("e{}", i), "");
  EXPECT_THAT(log.since(0), SizeIs(8)) << "the live view misses none";
  answers.set_value();
  EXPECT_THAT(kinds(), ElementsAre("e0", "e1", "e2"));
  log.add(9, "e8", "");
  log.add(10, "e9", "");
  EXPECT_THAT(kinds(), ElementsAre("e0", "e1", "e2", "events-missing", "e8", "e9"));
  EXPECT_THAT(written()[3].at("text"), testing::HasSubstr("5 events"));
}

}  // namespace
}  // namespace antdt::jobd
