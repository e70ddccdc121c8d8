// Tests of the job daemon while a disk does not answer.
#include "jobd/disk/history_thread.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "core/os/fs.h"
#include "jobd/disk/disks.h"
#include "jobd/disk/event_log.h"
#include "shard_server/history/step_records.h"

namespace antdt::jobd {
namespace {

using testing::HasSubstr;
namespace history = shard_server::history;

constexpr Duration kDeadline = std::chrono::seconds(10);

// A clock that a thread of the daemon reads while the test sets it.
class SharedClock final : public Clock {
 public:
  [[nodiscard]] MonoTime now() const override { return MonoTime(Duration(now_.load())); }
  void advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<Duration::rep> now_{0};
};

class StandingDiskTest : public testing::Test {
 protected:
  static shard_server::DataSet hundred_records() {
    shard_server::DataSet data;
    data.records = 100;
    data.shard_records = 10;
    return data;
  }
  // Makes `disk` hang until answer().
  void stand_still(DiskThread& disk) {
    std::promise<void> began;
    disk.run("syncing", [&began, until = until_.get_future().share()] {
      began.set_value();
      until.wait();
      return DiskThread::Then();
    });
    began.get_future().wait();
  }
  void answer(DiskThread& disk) {
    until_.set_value();
    settle(disk);
  }
  static void settle(DiskThread& disk) {
    ASSERT_TRUE(disk.await_idle(kDeadline));
    disk.deliver();
  }
  static history::Entry settled() {
    return history::Settled{Lineage{1}, Generation{1}, Step{0}, {{'w', 0}}};
  }
  static history::Entry granted(std::uint64_t place) {
    return history::Grant{Generation{1}, 1, Epoch{0}, {'w', 0}, place, {place, place + 5}};
  }
  static history::Entry stepped(std::uint64_t step) {
    return history::Steps{Generation{1}, {Step{step}, 1, 1, {(step - 1) * 5}, {5}}};
  }

  TempDir directory;
  std::string path = directory / "history.db";
  shard_server::DataSet data = hundred_records();
  SharedClock clock;
  EventLoop loop{clock};
  Disks disks{loop, clock, directory.path(), directory / "state", "etcd (h1:2379)"};
  std::string news;
  HistoryThread thread{disks.history(), HistoryKeeper(path, data, Incarnation{1}),
                       [this](const std::string& text) { news += text; }};
  std::promise<void> until_;
};

TEST_F(StandingDiskTest, TheHistoryIsThereOnceASyncWasAnswered) {
  thread.remember(settled());
  EXPECT_TRUE(thread.take_settled());
  EXPECT_FALSE(thread.take_settled());
  thread.remember(granted(0));
  thread.remember(stepped(1));
  bool kept = false;
  thread.sync([&](bool all) { kept = all; });
  thread.finish_turn();
  EXPECT_FALSE(kept);
  settle(disks.history());
  EXPECT_TRUE(kept);
  const auto found = shard_server::read_step(path, Step{1});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->records(), 5U);
  EXPECT_EQ(found->unknown(), 0U);
}

TEST_F(StandingDiskTest, EntriesMadeWhileTheDiskHangsAreWrittenInOrderAfterwards) {
  stand_still(disks.history());
  thread.remember(settled());
  thread.remember(granted(0));
  thread.finish_turn();
  int synced = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    thread.remember(granted(step * 5));
    thread.remember(stepped(step));
    thread.sync([&](bool kept) { synced += kept ? 1 : 0; });
    thread.finish_turn();  // the thread already has something to do
  }
  answer(disks.history());
  thread.finish_turn();
  settle(disks.history());
  EXPECT_EQ(synced, 3);
  const auto found = shard_server::read_step(path, Step{3});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->unknown(), 0U);
  EXPECT_EQ(news, "");
}

TEST_F(StandingDiskTest, AHangingFilesystemIsReportedWhenItBeginsAndWhenItIsOver) {
  EXPECT_EQ(disks.trouble(), "");
  stand_still(disks.records());
  clock.advance(Disks::kPatience - std::chrono::milliseconds(1));
  EXPECT_EQ(disks.trouble(), "");
  clock.advance(std::chrono::seconds(38));
  disks.records().run("behind it", [] { return DiskThread::Then(); });
  EXPECT_EQ(disks.trouble(),
            fmt::format("the filesystem of {} has not answered for 41 s: syncing, and 1 more wait "
                        "behind it",
                        directory.path()));
  EXPECT_EQ(disks.take_news().value().kind, "disk-stalled");
  EXPECT_FALSE(disks.take_news());
  answer(disks.records());
  EXPECT_EQ(disks.trouble(), "");
  EXPECT_EQ(disks.take_news().value().kind, "disk-answers");
  EXPECT_FALSE(disks.take_news());
}

TEST_F(StandingDiskTest, TheLongestStandstillIsNamedWithItsPlace) {
  std::promise<void> acts;
  std::string trouble;
  disks.journal().run(
      "committing the journal",
      [&] {
        clock.advance(std::chrono::seconds(5));
        acts.get_future().wait();
      },
      [&] {
        if (trouble.empty()) acts.set_value();
        trouble = disks.trouble();
      });
  EXPECT_THAT(trouble, HasSubstr("etcd (h1:2379) has not answered"));
  EXPECT_EQ(disks.trouble(), "");
}

TEST_F(StandingDiskTest, EventsAreKnownAtOnceAndWrittenWhenItAnswers) {
  stand_still(disks.records());
  EventLog events(directory / "events.jsonl", disks.records());
  events.add(1, "first", "said while it stood");
  events.add(2, "second", "the same");
  EXPECT_EQ(events.since(0).size(), 2U);
  EXPECT_FALSE(read_file(directory / "events.jsonl"));
  answer(disks.records());
  EXPECT_EQ(read_file(directory / "events.jsonl").value_or(""),
            events.since(0)[0] + "\n" + events.since(0)[1] + "\n");
}

}  // namespace
}  // namespace antdt::jobd
