#include "shard_server/journal/journal.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/os/fs.h"
#include "shard_server/accounts/audit.h"
#include "shard_server/journal/sqlite_store.h"
#include "shard_server/ledger/ledger.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

class JournalTest : public testing::Test {
 protected:
  Journal open(SqliteOptions store = small(), JournalOptions options = {}) {
    content_ = {};
    auto journal = open_journal(path_, content_, store, options);
    EXPECT_TRUE(journal) << journal.error().message;
    return std::move(*journal);
  }
  static Result<Journal> open_journal(const std::string& path, JournalContent& content,
                                      SqliteOptions store = small(), JournalOptions options = {}) {
    ANTDT_TRY(auto opened, open_sqlite_store(path, store));
    return Journal::open(std::move(opened), content, options);
  }
  static SqliteOptions small() {
    SqliteOptions options;
    options.ballast_bytes = 64 << 10;
    return options;
  }
  [[nodiscard]] std::vector<std::string> records() const {
    std::vector<std::string> all;
    for (const JournalEntry& entry : content_.records)
      all.push_back(entry.kind + ":" + entry.bytes);
    return all;
  }
  [[nodiscard]] std::uint64_t wal_size() const {
    return std::filesystem::file_size(path_ + "-wal");
  }
  static void write(Journal& journal, const std::string& bytes) {
    journal.append("ledger", bytes);
    const Status committed = journal.commit();
    ASSERT_TRUE(committed) << committed.error().message;
  }

  TempDir directory_;
  std::string path_ = directory_ / "state.db";
  JournalContent content_;
};

using Records = std::vector<std::string>;

TEST_F(JournalTest, BeginsWithTheIncarnationThatItIsToldAndCountsOn) {
  SqliteOptions options = small();
  options.first_incarnation = Incarnation{101};
  EXPECT_EQ(open(options).incarnation(), Incarnation{101});
  EXPECT_EQ(open(options).incarnation(), Incarnation{102}) << "it is not made anew";
}

TEST_F(JournalTest, KeepsTheOrderOfAllKinds) {
  {
    Journal journal = open();
    journal.append("ledger", "a");
    journal.append("job", std::string("b\0c", 3));
    EXPECT_TRUE(journal.dirty());
    ASSERT_TRUE(journal.commit());
    EXPECT_FALSE(journal.dirty());
    journal.append("ledger", "");
    ASSERT_TRUE(journal.commit());
    ASSERT_TRUE(journal.commit());
  }
  const Journal again = open();
  EXPECT_EQ(records(), (Records{"ledger:a", std::string("job:b\0c", 7), "ledger:"}));
  EXPECT_EQ(again.incarnation(), Incarnation{2});
}

TEST_F(JournalTest, UncommittedWritesAreGone) {
  {
    Journal journal = open();
    write(journal, "a");
    journal.append("ledger", "b");
  }
  open();
  EXPECT_EQ(records(), (Records{"ledger:a"}));
}

TEST_F(JournalTest, ASnapshotReplacesWhatCameBefore) {
  {
    Journal journal = open();
    write(journal, "a");
    journal.append("ledger", "b");
    ASSERT_TRUE(journal.snapshot({{"ledger", "ab"}, {"accounts", "2"}}));
    write(journal, "c");
  }
  open();
  ASSERT_EQ(content_.snapshot.size(), 2U);
  EXPECT_EQ(content_.snapshot[0].bytes, "ab");
  EXPECT_EQ(content_.snapshot[1].kind, "accounts");
  EXPECT_EQ(records(), (Records{"ledger:c"}));
}

TEST_F(JournalTest, ASnapshotPaysAfterEnoughRecords) {
  JournalOptions options;
  options.snapshot_bytes = 10'000;
  Journal journal = open(small(), options);
  EXPECT_FALSE(journal.wants_snapshot());
  write(journal, std::string(10'000, 'x'));
  EXPECT_TRUE(journal.wants_snapshot());
  ASSERT_TRUE(journal.snapshot({{"ledger", std::string(30'000, 's')}}));
  write(journal, std::string(20'000, 'x'));
  EXPECT_FALSE(journal.wants_snapshot());
  write(journal, std::string(10'000, 'x'));
  EXPECT_TRUE(journal.wants_snapshot());
}

TEST_F(JournalTest, AfterAKillInTheMiddleOfWritingEveryAcknowledgedTurnIsThere) {
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  if (child == 0) {
    JournalContent content;
    auto journal = open_journal(path_, content);
    for (std::uint32_t i = 0; journal; ++i) {
      journal->append("ledger", std::to_string(i));
      if (!journal->commit()) break;
      if (i % 50 == 49 && !journal->snapshot({{"ledger", std::to_string(i)}})) break;
      if (::write(acknowledged[1], &i, sizeof(i)) != sizeof(i)) break;
    }
    _exit(1);
  }
  close(acknowledged[1]);
  std::uint32_t last = 0;
  while (read(acknowledged[0], &last, sizeof(last)) == sizeof(last) && last < 230) {
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  while (read(acknowledged[0], &last, sizeof(last)) == sizeof(last)) {
  }
  close(acknowledged[0]);

  open();
  ASSERT_FALSE(content_.snapshot.empty());
  std::uint32_t next = static_cast<std::uint32_t>(std::stoul(content_.snapshot[0].bytes)) + 1;
  for (const JournalEntry& entry : content_.records) EXPECT_EQ(entry.bytes, std::to_string(next++));
  // The turn that was being written may be there or not.
  EXPECT_GE(next, last + 1);
  EXPECT_LE(next, last + 2);
}

TEST_F(JournalTest, ASecondIncarnationMakesTheFirstFail) {
  Journal first = open();
  write(first, "a");
  Journal second = open();
  EXPECT_EQ(second.incarnation(), first.incarnation().next());
  first.append("ledger", "b");
  const Status committed = first.commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().kind, ErrorKind::kRefused);
  EXPECT_NE(committed.error().message.find("took over"), std::string::npos);
  const Status snapshot = first.snapshot({{"ledger", "old"}});
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().kind, ErrorKind::kRefused);
  write(second, "c");
  EXPECT_EQ(read_journal(path_)->records.size(), 2U);
}

TEST_F(JournalTest, IsReadWhileItIsWritten) {
  Journal journal = open();
  write(journal, "a");
  EXPECT_EQ(read_journal(path_)->records.size(), 1U);
  write(journal, "b");
  EXPECT_EQ(read_journal(path_)->records.size(), 2U);
}

TEST_F(JournalTest, TheLogIsCopiedBackAndStaysSmall) {
  SqliteOptions options = small();
  options.checkpoint_bytes = 100'000;
  Journal journal = open(options);
  for (int i = 0; i < 400; ++i) write(journal, std::string(3000, 'x'));
  EXPECT_LT(wal_size(), 400'000U);
}

TEST_F(JournalTest, ALogCutShortKeepsItsWholeTurns) {
  Journal journal = open();
  write(journal, "a");
  const std::uint64_t whole = wal_size();
  write(journal, "b");
  const std::string copy = directory_ / "copy.db";
  std::filesystem::copy(path_, copy);
  std::filesystem::copy(path_ + "-wal", copy + "-wal");
  std::filesystem::resize_file(copy + "-wal", whole + 100);
  path_ = copy;
  open();
  EXPECT_EQ(records(), (Records{"ledger:a"}));
}

// Overwrites the bytes of `text` in the database file.
void damage(const std::string& path, const std::string& text) {
  std::string bytes = *read_file(path);
  const std::size_t at = bytes.find(text);
  ASSERT_NE(at, std::string::npos);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(at))
      .put('#');
}

TEST_F(JournalTest, ADamagedTurnIsAnErrorThatNamesIt) {
  {
    Journal journal = open();
    write(journal, "the first turn");
    write(journal, "the second turn");
  }
  damage(path_, "the second turn");
  JournalContent content;
  const auto journal = open_journal(path_, content);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(journal.error().message.find("turn 2 is damaged"), std::string::npos)
      << journal.error().message;
  EXPECT_NE(journal.error().message.find(path_), std::string::npos);
  EXPECT_FALSE(read_journal(path_));
}

TEST_F(JournalTest, ADamagedSnapshotIsAnError) {
  {
    Journal journal = open();
    ASSERT_TRUE(journal.snapshot({{"ledger", "everything until now"}}));
  }
  damage(path_, "everything until now");
  JournalContent content;
  EXPECT_FALSE(open_journal(path_, content));
}

TEST_F(JournalTest, AFileThatIsNoJournalIsRefusedAndLeftAlone) {
  std::ofstream(path_) << std::string(5000, 'n');
  JournalContent content;
  const auto journal = open_journal(path_, content);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(std::filesystem::file_size(path_), 5000U);
}

TEST_F(JournalTest, AJournalThatIsNotThereIsNotMadeByReading) {
  EXPECT_FALSE(read_journal(path_));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Lets this process mount file systems that only it sees; false if that is not allowed.
bool enter_mount_namespace() {
  const uid_t user = getuid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Runs in a child with its own small filesystem.
int fill_the_disk(const std::string& directory) {
  if (!enter_mount_namespace()) return 77;
  if (mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=1m") != 0) return 77;
  SqliteOptions options;
  options.ballast_bytes = 200 << 10;
  options.checkpoint_bytes = 64 << 20;
  JournalContent content;
  auto store = open_sqlite_store(directory + "/state.db", options);
  if (!store) return 2;
  auto journal = Journal::open(std::move(*store), content);
  if (!journal || journal->store().low_on_space()) return 2;
  for (int turns = 0; turns < 1000; ++turns) {
    journal->append("ledger", std::string(4000, 'x'));
    if (!journal->commit()) return 3;
    if (!journal->store().low_on_space()) continue;
    // The turn that met the full disk is durable, and some more fit.
    journal->append("ledger", "an orderly pause");
    if (!journal->commit()) return 4;
    const auto found = read_journal(directory + "/state.db");
    if (!found || found->records.back().bytes != "an orderly pause") return 5;
    if (journal->restore_reserve() || !journal->store().low_on_space()) return 6;
    return 0;
  }
  return 7;
}

TEST_F(JournalTest, AFullDiskUsesTheBallastForAnOrderlyPause) {
  const pid_t child = fork();
  if (child == 0) _exit(fill_the_disk(directory_.path()));
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs user or mount namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

AuditReport audit_of(const std::string& path) {
  const auto content = read_journal(path);
  EXPECT_TRUE(content);
  const auto accounts = accounts_of(*content, path);
  EXPECT_TRUE(accounts);
  return audit(*accounts);
}

TEST_F(JournalTest, TheAuditReadsSnapshotAndRecords) {
  Journal journal = open();
  Accounts accounts;
  const auto write_down = [&](const auto& record) {
    const std::string bytes = encode_record(record);
    journal.append(kLedgerKind, bytes);
    ASSERT_TRUE(accounts.apply(bytes));
  };
  const Member member{{'w', 0}, Attempt{1}};
  write_down(ledger::JobDeclared{1, 10, true});
  write_down(ledger::MemberAdmitted{member, {}});
  write_down(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  ASSERT_TRUE(journal.snapshot({{std::string(kAccountsKind), accounts.image()}}));
  write_down(ledger::FetchAnswered{member, 1, 0, AnswerStatus::kGranted, 0, {{{0, 10}, 0}}, {}});
  journal.append("job", "something of its own");
  ASSERT_TRUE(journal.commit());
  EXPECT_EQ(audit_of(path_).exit_code, 5);
  write_down(ledger::ProgressReported{member, {}, 1, 10});
  write_down(ledger::JobFinished{});
  ASSERT_TRUE(journal.commit());
  EXPECT_EQ(audit_of(path_).exit_code, 0);
  EXPECT_EQ(audit_of(path_).epochs[0].once, 10U);
}

}  // namespace
}  // namespace antdt::shard_server
