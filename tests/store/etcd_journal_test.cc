#include "store/etcd_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_etcd.h"
#include "shard_server/journal/journal.h"

namespace antdt::store {
namespace {

using shard_server::Journal;
using shard_server::JournalContent;
using testing::ElementsAre;
using testing::HasSubstr;
using Fault = FakeCluster::Fault;

constexpr std::size_t kMiB = 1U << 20U;

// A lease that etcd has or has not.
class FakeLease final : public HeldLease {
 public:
  FakeLease(FakeCluster& cluster, LeaseId lease) : cluster_(cluster), lease_(lease) {}
  bool has_ended() const override { return !cluster_.leases.contains(lease_); }

 private:
  FakeCluster& cluster_;
  LeaseId lease_;
};

class EtcdJournalTest : public testing::Test {
 protected:
  EtcdJournalOptions options(const std::string& file_lock = "boot 1:2") {
    EtcdJournalOptions options;
    options.job = "job-1";
    options.where = "etcd (h1:2379)";
    options.holder = "host h1, process 17";
    options.file_lock = file_lock;
    options.hold = [this](LeaseId lease) { return std::make_unique<FakeLease>(cluster, lease); };
    options.wait = [this](Duration time) {
      waited += time;
      cluster.now += time;
      if (while_waiting) while_waiting();
    };
    options.now = [this] { return cluster.now; };
    options.tell = [this](const std::string& text) { told.push_back(text); };
    return options;
  }
  Result<Journal> open(EtcdJournalOptions how, JournalContent& content) {
    ANTDT_TRY(auto store, open_etcd_journal(std::make_unique<FakeEtcd>(cluster), std::move(how)));
    return Journal::open(std::move(store), content);
  }
  Journal open() {
    JournalContent content;
    auto journal = open(options(), content);
    EXPECT_TRUE(journal) << journal.error().message;
    return std::move(*journal);
  }
  static Status write(Journal& journal, const std::string& bytes) {
    journal.append("ledger", bytes);
    return journal.commit();
  }
  // The records that the next job daemon finds, with the snapshot before them.
  std::vector<std::string> records() {
    FakeEtcd etcd(cluster);
    auto found = read_etcd_journal(etcd, "job-1");
    EXPECT_TRUE(found) << found.error().message;
    const auto content = shard_server::content_of(std::move(*found), "journal");
    EXPECT_TRUE(content) << content.error().message;
    std::vector<std::string> all;
    for (const auto& entry : content->snapshot) all.push_back("snapshot " + entry.bytes);
    for (const auto& entry : content->records) all.push_back(entry.bytes);
    return all;
  }

  FakeCluster cluster;
  Duration waited{};
  std::function<void()> while_waiting;
  std::vector<std::string> told;
};

TEST_F(EtcdJournalTest, KeepsTurnsInOrderOverIncarnations) {
  {
    Journal journal = open();
    EXPECT_EQ(journal.incarnation(), Incarnation{1});
    ASSERT_TRUE(write(journal, "a"));
    ASSERT_TRUE(write(journal, std::string("b\0c", 3)));
  }
  Journal again = open();
  EXPECT_EQ(again.incarnation(), Incarnation{2});
  ASSERT_TRUE(write(again, "d"));
  EXPECT_THAT(records(), ElementsAre("a", std::string("b\0c", 3), "d"));
  EXPECT_EQ(waited, Duration::zero());
}

TEST_F(EtcdJournalTest, BeginsWithTheIncarnationThatItIsTold) {
  EtcdJournalOptions how = options();
  how.first_incarnation = Incarnation{101};
  JournalContent content;
  EXPECT_EQ(open(how, content)->incarnation(), Incarnation{101});
  EXPECT_EQ(open(how, content)->incarnation(), Incarnation{102});
}

TEST_F(EtcdJournalTest, ReadsMoreTurnsThanOnePageHas) {
  Journal journal = open();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(write(journal, std::to_string(i)));
  const auto found = records();
  ASSERT_EQ(found.size(), 300U);
  EXPECT_EQ(found[299], "299");
}

TEST_F(EtcdJournalTest, ASnapshotReplacesWhatCameBefore) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, "a"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "all"}}));
  ASSERT_TRUE(write(journal, "b"));
  EXPECT_THAT(records(), ElementsAre("snapshot all", "b"));
  EXPECT_EQ(cluster.count_below("/turn/"), 1U);
}

TEST_F(EtcdJournalTest, WhatIsTooLargeForARequestGoesInPieces) {
  Journal journal = open();
  const std::string turn(2 * kMiB + 7, 't'), first(3 * kMiB, 's'), second(kMiB * 5 / 2, 'S');
  ASSERT_TRUE(write(journal, turn));
  EXPECT_THAT(records(), ElementsAre(turn));
  ASSERT_TRUE(journal.snapshot({{"ledger", first}}));
  EXPECT_EQ(cluster.count_below("/piece/turn/"), 0U);
  ASSERT_TRUE(write(journal, "x"));
  ASSERT_TRUE(journal.snapshot({{"ledger", second}}));
  EXPECT_THAT(records(), ElementsAre("snapshot " + second));
  EXPECT_EQ(cluster.count_below("/piece/snapshot/"), 3U) << "the former snapshot's are deleted";
  EXPECT_LE(cluster.largest, kMiB + 64);
}

TEST_F(EtcdJournalTest, APieceThatIsMissingIsAnErrorThatNamesIt) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, std::string(2 * kMiB, 't')));
  std::erase_if(cluster.keys, [](const auto& k) { return k.first.ends_with("/00000001"); });
  FakeEtcd etcd(cluster);
  const auto found = read_etcd_journal(etcd, "job-1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(found.error().message, HasSubstr("/00000001 is missing"));
}

TEST_F(EtcdJournalTest, ATurnThatIsMissingIsAnError) {
  Journal journal = open();
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(write(journal, text));
  std::erase_if(cluster.keys, [](const auto& k) { return k.first.ends_with("0002"); });
  FakeEtcd etcd(cluster);
  const auto content = shard_server::content_of(*read_etcd_journal(etcd, "job-1"), "journal");
  ASSERT_FALSE(content);
  EXPECT_THAT(content.error().message, HasSubstr("turn 2 is missing"));
}

TEST_F(EtcdJournalTest, AWriteIsTriedAgainUntilEtcdAnswers) {
  Journal journal = open();
  cluster.is_down = true;
  int waits = 0;
  while_waiting = [&] { cluster.is_down = ++waits < 1000; };
  ASSERT_TRUE(write(journal, "a"));
  EXPECT_THAT(records(), ElementsAre("a"));
  EXPECT_EQ(waits, 1000);
  ASSERT_EQ(told.size(), 1U) << "it is said once";
  EXPECT_THAT(told[0], HasSubstr("connection refused"));
}

TEST_F(EtcdJournalTest, AWriteWhoseAnswerIsLostCountsOnce) {
  Journal journal = open();
  cluster.faults = {Fault::kAnswerLost, Fault::kNotCarriedOut, Fault::kAnswerLost};
  ASSERT_TRUE(write(journal, "a"));
  ASSERT_TRUE(write(journal, "b"));
  EXPECT_THAT(records(), ElementsAre("a", "b"));
}

TEST_F(EtcdJournalTest, ASnapshotWhoseAnswerIsLostCountsOnce) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, "a"));
  cluster.faults = {Fault::kAnswerLost};
  ASSERT_TRUE(journal.snapshot({{"ledger", "all"}}));
  ASSERT_TRUE(write(journal, "b"));
  EXPECT_THAT(records(), ElementsAre("snapshot all", "b"));
}

TEST_F(EtcdJournalTest, ATurnThatArrivesAfterTheSnapshotThatContainsItIsIgnored) {
  Journal journal = open();
  cluster.faults = {Fault::kLate};
  ASSERT_TRUE(write(journal, "a"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "all"}}));
  ASSERT_TRUE(write(journal, "b"));
  cluster.late();
  EXPECT_EQ(cluster.count_below("/turn/"), 2U) << "it is there again";
  EXPECT_THAT(records(), ElementsAre("snapshot all", "b"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "more"}}));
  EXPECT_EQ(cluster.count_below("/turn/"), 0U);
}

TEST_F(EtcdJournalTest, AnAnswerThatComesLateIsNotTrustedBeforeTheLockIsFoundToBeOurs) {
  Journal before = open();
  cluster.answer_takes = {std::chrono::seconds(2)};
  ASSERT_TRUE(write(before, "a")) << "nobody has taken the job over";
  std::optional<Journal> now;
  cluster.answer_takes = {std::chrono::seconds(2)};
  cluster.before_answer = [&] {
    cluster.before_answer = {};
    now = open();
  };
  EXPECT_EQ(write(before, "b").error().kind, ErrorKind::kRefused);
  EXPECT_THAT(records(), ElementsAre("a", "b")) << "it was carried out";
}

TEST_F(EtcdJournalTest, ASnapshotThatArrivesAfterTheNextOneDoesNothing) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, "a"));
  cluster.faults = {Fault::kLate};
  ASSERT_TRUE(journal.snapshot({{"ledger", "first"}}));
  ASSERT_TRUE(write(journal, "b"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "second"}}));
  ASSERT_TRUE(write(journal, "c"));
  cluster.late();
  EXPECT_THAT(records(), ElementsAre("snapshot second", "c"));
}

TEST_F(EtcdJournalTest, ASnapshotOfTheNextIncarnationReplacesThatOfTheOneBefore) {
  {
    Journal journal = open();
    ASSERT_TRUE(write(journal, "a"));
    ASSERT_TRUE(journal.snapshot({{"ledger", "first"}}));
  }
  Journal journal = open();
  ASSERT_TRUE(write(journal, "b"));
  cluster.faults = {Fault::kAnswerLost};
  ASSERT_TRUE(journal.snapshot({{"ledger", "second"}}));
  ASSERT_TRUE(write(journal, "c"));
  EXPECT_THAT(records(), ElementsAre("snapshot second", "c"));
  EXPECT_EQ(journal.incarnation(), Incarnation{2});
}

TEST_F(EtcdJournalTest, ALeaseThatEndedIsTakenAgainIfNobodyTookTheJobOver) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, "a"));
  EXPECT_FALSE(journal.dirty());
  cluster.end_lease(cluster.last_lease);
  EXPECT_TRUE(journal.dirty()) << "with nothing to write, too";
  ASSERT_TRUE(journal.commit());
  EXPECT_FALSE(journal.dirty());
  cluster.end_lease(cluster.last_lease);
  ASSERT_TRUE(write(journal, "b"));
  EXPECT_THAT(records(), ElementsAre("a", "b"));
  EXPECT_EQ(journal.incarnation(), Incarnation{1});
  EXPECT_EQ(cluster.keys["v1/jobs/job-1/meta"].bytes, "1 1");
  EXPECT_THAT(told, ElementsAre(HasSubstr("taken again"), HasSubstr("taken again")));
}

TEST_F(EtcdJournalTest, ALeaseThatEndsWhileAWriteIsTriedIsTakenAgain) {
  Journal journal = open();
  cluster.is_down = true;
  int waits = 0;
  while_waiting = [&] {
    if (++waits == 5) cluster.end_lease(cluster.last_lease);
    cluster.is_down = waits < 10;
  };
  ASSERT_TRUE(write(journal, "a"));
  EXPECT_THAT(records(), ElementsAre("a"));
}

TEST_F(EtcdJournalTest, OfAHolderThatComesBackAndOfOneThatSawTheLockFreeOneGetsIt) {
  Journal before = open();
  cluster.end_lease(cluster.last_lease);
  // The other host has seen the lock free; before it takes it, the holder comes back.
  cluster.faults = {Fault::kNotCarriedOut};
  bool is_back = false;
  while_waiting = [&] {
    if (!std::exchange(is_back, true)) {
      ASSERT_TRUE(write(before, "a"));
    }
  };
  JournalContent content;
  EXPECT_EQ(open(options("boot 3:4"), content).error().kind, ErrorKind::kAborted);
  EXPECT_TRUE(write(before, "b"));
}

TEST_F(EtcdJournalTest, APredecessorThatComesBackWritesNothing) {
  Journal before = open();
  ASSERT_TRUE(write(before, "a"));
  Journal now = open();
  ASSERT_TRUE(write(now, "b"));
  const Status written = write(before, "of the past");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(written.error().message, HasSubstr("this one must end"));
  EXPECT_EQ(before.snapshot({{"ledger", "of the past"}}).error().kind, ErrorKind::kRefused);
  EXPECT_THAT(records(), ElementsAre("a", "b"));
}

TEST_F(EtcdJournalTest, AWriteOfAPredecessorThatArrivesLateDoesNothing) {
  Journal before = open();
  ASSERT_TRUE(write(before, "a"));
  cluster.faults = {Fault::kLate};
  std::optional<Journal> now;
  while_waiting = [&] {
    while_waiting = {};
    now = open();
    ASSERT_TRUE(write(*now, "b"));
  };
  EXPECT_FALSE(write(before, "of the past"));
  cluster.late();
  EXPECT_THAT(records(), ElementsAre("a", "b"));
}

TEST_F(EtcdJournalTest, TheSameHostTakesOverAtOnceAndAnotherOneWhenTheLeaseEnds) {
  Journal before = open();
  Journal same_host = open();
  EXPECT_EQ(waited, Duration::zero());
  const LeaseId lease = cluster.last_lease;
  while_waiting = [&] {
    if (waited >= std::chrono::seconds(5)) cluster.end_lease(lease);
  };
  JournalContent content;
  const auto other_host = open(options("boot 3:4"), content);
  ASSERT_TRUE(other_host) << other_host.error().message;
  EXPECT_EQ(other_host->incarnation(), Incarnation{3});
  EXPECT_EQ(waited, std::chrono::seconds(5));
  EXPECT_THAT(told, ElementsAre(HasSubstr("waits for the lease of the job daemon on host h1")));
}

TEST_F(EtcdJournalTest, AJobDaemonThatStaysAliveIsNotDeposedByAnotherHost) {
  Journal alive = open();
  JournalContent content;
  const auto other_host = open(options("boot 3:4"), content);
  ASSERT_FALSE(other_host);
  EXPECT_EQ(other_host.error().kind, ErrorKind::kAborted);
  EXPECT_THAT(other_host.error().message, HasSubstr("host h1, process 17 runs this job"));
  EXPECT_TRUE(write(alive, "a"));
}

TEST_F(EtcdJournalTest, AStandbyIsRefusedWhileAnotherHostHoldsTheLock) {
  Journal alive = open();
  EtcdJournalOptions how = options("boot 3:4");
  how.waits_for_lease = false;
  JournalContent content;
  const auto standby = open(how, content);
  ASSERT_FALSE(standby);
  EXPECT_EQ(standby.error().kind, ErrorKind::kAborted);
  EXPECT_EQ(waited, Duration::zero());
}

TEST_F(EtcdJournalTest, AStandbySeesWhoHoldsTheLockAndReadsTheRunsFiles) {
  FakeEtcd etcd(cluster);
  EXPECT_FALSE(look_at_job(etcd, "job-1")->exists);
  const std::string large(kMiB * 3 / 2, 'd');
  {
    Journal journal = open();
    ASSERT_TRUE(journal.keep_file("job.json", "{}"));
    ASSERT_TRUE(journal.keep_file("data.json", large));
    EXPECT_EQ(look_at_job(etcd, "job-1")->holder, "host h1, process 17");
  }
  const auto job = look_at_job(etcd, "job-1");
  EXPECT_TRUE(job->exists);
  EXPECT_EQ(job->holder, "");
  EXPECT_EQ(*read_run_file(etcd, "job-1", "job.json"), "{}");
  EXPECT_EQ(*read_run_file(etcd, "job-1", "data.json"), large);
  const auto missing = read_run_file(etcd, "job-1", "none.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "etcd has no file none.json of job job-1");
}

TEST_F(EtcdJournalTest, OfTwoThatOpenAtOnceOneIsRefused) {
  Journal first = open();
  EtcdJournalOptions how = options("boot 3:4");
  cluster.end_lease(cluster.last_lease);
  // A third one opens it between the look and the attempt of the second.
  std::optional<Journal> third;
  cluster.faults = {Fault::kNotCarriedOut};
  while_waiting = [&] {
    if (!third) third = open();
  };
  JournalContent content;
  const auto second = open(how, content);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kAborted);
  EXPECT_TRUE(write(*third, "a"));
  EXPECT_EQ(third->incarnation(), Incarnation{2});
}

TEST_F(EtcdJournalTest, OpeningKnowsItsOwnLockWhenTheAnswerIsLost) {
  cluster.faults = {Fault::kAnswerLost};
  Journal journal = open();
  EXPECT_EQ(journal.incarnation(), Incarnation{1});
  EXPECT_TRUE(write(journal, "a"));
}

TEST_F(EtcdJournalTest, OpeningGivesUpIfNobodyAnswers) {
  cluster.is_down = true;
  JournalContent content;
  const auto journal = open(options(), content);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(journal.error().message,
              HasSubstr("journal of job job-1 in etcd (h1:2379): etcd does not answer"));
}

// Members that drop packets answer a try after seconds, and then it is the time that counts.
TEST_F(EtcdJournalTest, OpeningGivesUpInTimeWhereEachTryTakesLong) {
  cluster.is_down = true;
  cluster.silence = std::chrono::seconds(3);
  JournalContent content;
  EXPECT_FALSE(open(options(), content));
  EXPECT_LE(cluster.now - MonoTime{}, std::chrono::seconds(5 + 3) + waited);
}

TEST_F(EtcdJournalTest, WhoEndsInOrderLeavesNoLeaseToWaitFor) {
  { Journal journal = open(); }
  EXPECT_TRUE(cluster.leases.empty());
  JournalContent content;
  EXPECT_TRUE(open(options("boot 3:4"), content));
  EXPECT_EQ(waited, Duration::zero());
}

TEST_F(EtcdJournalTest, RevisionsBeforeThePreviousSnapshotAreCompacted) {
  Journal journal = open();
  ASSERT_TRUE(write(journal, "a"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "1"}}));
  EXPECT_EQ(cluster.compacted, 0) << "a reader may be at an earlier one";
  const Revision first = cluster.revision;
  ASSERT_TRUE(write(journal, "b"));
  ASSERT_TRUE(journal.snapshot({{"ledger", "2"}}));
  EXPECT_EQ(cluster.compacted, first);
}

TEST_F(EtcdJournalTest, AJobThatEtcdDoesNotKnowIsSaidToBeUnknown) {
  FakeEtcd etcd(cluster);
  const auto found = read_etcd_journal(etcd, "job-1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "etcd has no journal of job job-1");
}

TEST_F(EtcdJournalTest, AFormatOfANewerReleaseIsRefused) {
  { Journal journal = open(); }
  cluster.keys["v1/jobs/job-1/meta"].bytes = "2 1";
  JournalContent content;
  const auto journal = open(options(), content);
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, HasSubstr("use the release that wrote it"));
}

// Turns and snapshots under random faults, with a new incarnation now and then: what was
// acknowledged is there, in order, and nothing of a turn that failed comes after it.
TEST_F(EtcdJournalTest, NothingThatWasAcknowledgedIsEverLost) {
  std::uint64_t random = 88172645463325252ULL;
  const auto draw = [&](std::uint64_t below) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    return random % below;
  };
  for (int run = 0; run < 50; ++run) {
    cluster = {};
    std::vector<std::string> written;
    std::optional<Journal> journal(open());
    for (int turn = 0; turn < 60; ++turn) {
      for (std::uint64_t n = draw(3); n > 0; --n) {
        cluster.faults.push_back(static_cast<Fault>(draw(4)));
      }
      if (draw(10) == 0) cluster.end_lease(cluster.last_lease);
      if (draw(10) == 0) {
        cluster.faults.clear();
        Journal next = open();
        EXPECT_FALSE(write(*journal, "of the past"));
        journal = std::move(next);
      }
      const std::string bytes = std::to_string(turn);
      ASSERT_TRUE(write(*journal, bytes));
      written.push_back(bytes);
      if (draw(8) == 0) {
        std::string all;
        for (const std::string& one : written) all += one + ".";
        ASSERT_TRUE(journal->snapshot({{"ledger", all}}));
      }
      if (draw(5) == 0) cluster.late();
    }
    cluster.late();
    std::string all;
    for (const std::string& entry : records()) {
      all += entry.starts_with("snapshot ") ? entry.substr(9) : entry + ".";
    }
    std::string expected;
    for (const std::string& one : written) expected += one + ".";
    ASSERT_EQ(all, expected) << "run " << run;
  }
}

}  // namespace
}  // namespace antdt::store
