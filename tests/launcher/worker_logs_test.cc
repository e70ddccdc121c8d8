#include "launcher/view/worker_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WorkerLogsTest : public testing::Test {
 protected:
  WorkerLogsTest() { EXPECT_TRUE(make_directories(dir_ / "logs")); }
  void append(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / "logs/" + name, std::ios::app) << text;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_ / "logs/" + name; }
  [[nodiscard]] std::vector<std::string> names(const std::vector<WorkerLog>& logs) const {
    std::vector<std::string> found;
    for (const WorkerLog& log : logs) found.push_back(log.path.substr((dir_ / "logs/").size()));
    return found;
  }
  TempDir dir_;
};

TEST_F(WorkerLogsTest, AreFoundByWorkerAndAttemptInTheirOrder) {
  for (const char* name : {"w10.1.out", "w2.2.err", "w2.10.out", "w2.2.out", "w2.2.out.1",
                           "jobd.1.out", "w3.out", "w3.x.out", "w4.1.log"}) {
    append(name, "x\n");
  }
  EXPECT_THAT(names(find_logs(dir_.path())),
              ElementsAre("w2.2.out", "w2.2.err", "w2.10.out", "w10.1.out"));
  EXPECT_THAT(find_logs(dir_ / "nowhere"), IsEmpty());
}

TEST_F(WorkerLogsTest, AreThoseOfTheNewestAttemptUnlessAnotherIsAskedFor) {
  for (const char* name : {"w0.1.out", "w0.1.err", "w0.2.out", "w0.2.err", "w1.1.err"}) {
    append(name, "");
  }
  const auto logs = find_logs(dir_.path());
  EXPECT_THAT(names(select(logs, {})), ElementsAre("w0.2.out", "w0.2.err", "w1.1.err"));
  EXPECT_THAT(names(select(logs, {{}, {}, false, true})), ElementsAre("w0.2.err", "w1.1.err"));
  EXPECT_THAT(names(select(logs, {WorkerId{'w', 0}, Attempt{1}, true, true})),
              ElementsAre("w0.1.out", "w0.1.err"));
}

TEST_F(WorkerLogsTest, AreReadAsWholeLinesAsTheyGrow) {
  append("w0.1.out", "one\ntwo\nthr");
  LogReader reader(path("w0.1.out"), std::nullopt);
  EXPECT_THAT(reader.read(false), ElementsAre("one", "two"));
  append("w0.1.out", "ee\n");
  EXPECT_THAT(reader.read(false), ElementsAre("three"));
  append("w0.1.out", "no end");
  EXPECT_THAT(reader.read(false), IsEmpty());
  EXPECT_THAT(reader.read(true), ElementsAre("no end"));
}

TEST_F(WorkerLogsTest, AreReadThroughARotationWithoutLosingALine) {
  append("w0.1.out", "a\n");
  LogReader reader(path("w0.1.out"), std::nullopt);
  EXPECT_THAT(reader.read(false), ElementsAre("a"));
  append("w0.1.out", "b\n");
  ASSERT_EQ(std::rename(path("w0.1.out").c_str(), path("w0.1.out.1").c_str()), 0);
  append("w0.1.out", "c\n");
  EXPECT_THAT(reader.read(false), ElementsAre("b", "c"));
}

TEST_F(WorkerLogsTest, TheLastLinesReachIntoTheRotatedPart) {
  append("w0.1.out.1", "a\nb\n");
  append("w0.1.out", "c\n");
  EXPECT_THAT(LogReader(path("w0.1.out"), std::nullopt).read(true), ElementsAre("a", "b", "c"));
  EXPECT_THAT(LogReader(path("w0.1.out"), 2).read(true), ElementsAre("b", "c"));
  EXPECT_THAT(LogReader(path("w0.1.out"), 9).read(true), ElementsAre("a", "b", "c"));
  EXPECT_THAT(LogReader(path("w0.1.out"), 0).read(true), IsEmpty());
}

}  // namespace
}  // namespace antdt::launcher
