#include "core/os/fs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "core/os/directory.h"
#include "core/os/runtime_dir.h"

namespace antdt {
namespace {

using testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(WriteFileAtomicTest, ReplacesTheWholeFileAndLeavesNothingBeside) {
  const TempDir directory;
  const std::string path = directory / "state";
  ASSERT_TRUE(write_file_atomic(path, "first and longer", 0600));
  ASSERT_TRUE(write_file_atomic(path, "second", 0600));
  EXPECT_EQ(read_file(path).value(), "second");
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(WriteFileAtomicTest, KeepsTheOldFileWhenItCannotRename) {
  const TempDir directory;
  const std::string path = directory / "taken";
  ASSERT_TRUE(make_directories(path + "/inside"));
  const Status status = write_file_atomic(path, "text");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr(path));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(ReadFileTest, GivesAllBytesAndNamesAMissingFile) {
  const TempDir directory;
  const std::string bytes(200000, '\xfe');
  ASSERT_TRUE(write_file_atomic(directory / "large", bytes));
  EXPECT_EQ(read_file(directory / "large").value(), bytes);
  const auto missing = read_file(directory / "missing");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("missing"));
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  EXPECT_FALSE(read_file(directory.path())) << "a directory";
}

TEST(NamesInTest, AreThoseOfADirectoryAndAnErrorIsNoEmptyOne) {
  const TempDir directory;
  ASSERT_TRUE(make_directories(directory / "b"));
  ASSERT_TRUE(write_file_atomic(directory / "a", ""));
  EXPECT_THAT(names_in(directory.path()).value(), testing::ElementsAre("a", "b"));
  EXPECT_THAT(names_in(directory / "missing").value(), testing::IsEmpty());
  const auto file = names_in(directory / "a");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("a cannot be listed: Not a directory"));
}

TEST(MakeDirectoriesTest, MakesEachMissingLevelWithTheMode) {
  const TempDir directory;
  ASSERT_TRUE(make_directories(directory / "a/b/c", 0700));
  EXPECT_EQ(mode_of(directory / "a"), 0700U);
  EXPECT_EQ(mode_of(directory / "a/b/c"), 0700U);
  EXPECT_TRUE(make_directories(directory / "a/b/c", 0700)) << "it is there already";
}

TEST(MakeDirectoriesTest, SaysWhatIsInTheWay) {
  const TempDir directory;
  ASSERT_TRUE(write_file_atomic(directory / "file", ""));
  EXPECT_FALSE(make_directories(directory / "file"));
  const Status below = make_directories(directory / "file/below");
  ASSERT_FALSE(below);
  EXPECT_THAT(below.error().message, HasSubstr("file/below"));
}

TEST(NetworkFilesystemTest, ALocalDirectoryIsOnNoNetworkFilesystem) {
  const TempDir directory;
  const auto kind = network_filesystem("/proc");
  ASSERT_TRUE(kind) << kind.error().message;
  EXPECT_EQ(*kind, std::nullopt);
  EXPECT_FALSE(network_filesystem(directory / "missing"));
}

TEST(FileWriterTest, AnUnfinishedFileIsKeptFreshThoughNothingIsWritten) {
  namespace fs = std::filesystem;
  const TempDir directory;
  auto writer = FileWriter::create(directory / "f");
  ASSERT_TRUE(writer) << writer.error().message;
  const fs::path unfinished = fs::directory_iterator(directory.path())->path();
  const auto now = fs::file_time_type::clock::now();
  const auto of_now = fs::last_write_time(unfinished);
  writer->keep_fresh();
  EXPECT_EQ(fs::last_write_time(unfinished), of_now) << "it is fresh";
  fs::last_write_time(unfinished, now - 2 * FileWriter::kFreshFor);
  writer->keep_fresh();
  EXPECT_GT(fs::last_write_time(unfinished), now - FileWriter::kFreshFor);
  EXPECT_TRUE(writer->finish());
  writer->keep_fresh();
}

TEST(FileLockTest, ASecondLockIsRefusedAndNamesTheOwner) {
  const TempDir directory;
  const auto lock = FileLock::acquire(directory / "lock");
  ASSERT_TRUE(lock) << lock.error().message;
  const auto second = FileLock::acquire(directory / "lock");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("process {}", getpid())));
  EXPECT_EQ(FileLock::owner(directory / "lock"), getpid());
}

TEST(FileLockTest, IsFreeAndRemovedAfterItsOwner) {
  const TempDir directory;
  { const auto lock = FileLock::acquire(directory / "lock"); }
  EXPECT_FALSE(std::filesystem::exists(directory / "lock"));
  EXPECT_TRUE(FileLock::acquire(directory / "lock"));
}

TEST(FileLockTest, WhatTheOwnerSaysIsReadByOthersAndEndsWithIt) {
  const TempDir directory;
  const std::string path = directory / "lock";
  EXPECT_EQ(FileLock::said(path), "");
  {
    auto lock = FileLock::acquire(path);
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_EQ(FileLock::said(path), "");
    lock->say("3 of 12\n");
    EXPECT_EQ(FileLock::said(path), "3 of 12\n");
    lock->say("done");
    EXPECT_EQ(FileLock::said(path), "done");
    EXPECT_EQ(FileLock::owner(path), getpid());
  }
  const auto next = FileLock::acquire(path);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(FileLock::said(path), "");
}

TEST(FileLockTest, EndsWithAProcessThatIsKilled) {
  const TempDir directory;
  const std::string path = directory / "lock";
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(path);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(FileLock::owner(path), std::nullopt);
  const auto lock = FileLock::acquire(path);
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_EQ(FileLock::owner(path), getpid());
}

TEST(FileLockTest, AMovedLockIsHeldOnce) {
  const TempDir directory;
  auto lock = FileLock::acquire(directory / "lock");
  ASSERT_TRUE(lock);
  {
    const FileLock moved = std::move(*lock);
    EXPECT_FALSE(FileLock::acquire(directory / "lock"));
  }
  EXPECT_TRUE(FileLock::acquire(directory / "lock"));
}

TEST(TempDirTest, IsRemovedWithAllThatIsInIt) {
  std::string path;
  {
    const TempDir directory;
    path = directory.path();
    ASSERT_TRUE(make_directories(directory / "a/b"));
    ASSERT_TRUE(write_file_atomic(directory / "a/b/file", "x"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PrivateDirectoryTest, IsMadePrivateAndMended) {
  const TempDir directory;
  const std::string path = directory / "sockets";
  ASSERT_TRUE(ensure_private_directory(path));
  EXPECT_EQ(mode_of(path), 0700U);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  ASSERT_TRUE(ensure_private_directory(path));
  EXPECT_EQ(mode_of(path), 0700U);
}

TEST(PrivateDirectoryTest, ALinkOrAFileIsRefused) {
  const TempDir directory;
  ASSERT_EQ(symlink(directory.path().c_str(), (directory / "link").c_str()), 0);
  EXPECT_FALSE(ensure_private_directory(directory / "link"));
  ASSERT_TRUE(write_file_atomic(directory / "file", ""));
  EXPECT_FALSE(ensure_private_directory(directory / "file"));
}

TEST(PrivateDirectoryTest, SomebodyElsesIsRefused) {
  const TempDir directory;
  const std::string path = directory / "theirs";
  ASSERT_TRUE(make_directories(path, 0700));
  if (chown(path.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can give files away";
  const Status status = ensure_private_directory(path);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("belongs to user 12345"));
  EXPECT_THAT(status.error().message, HasSubstr("set XDG_RUNTIME_DIR to"));
  EXPECT_THAT(ensure_private_directory(path, "HOME").error().message, HasSubstr("set HOME to"));
}

TEST(RuntimeDirectoryTest, WhatIsKeptFromCleanersLooksUsedAndWhatLinksLeadToDoesNot) {
  const TempDir directory;
  ASSERT_TRUE(make_directories(directory / "ours/jobs/x"));
  ASSERT_TRUE(write_file_atomic(directory / "ours/jobs/x/start", ""));
  ASSERT_TRUE(write_file_atomic(directory / "another's", ""));
  ASSERT_EQ(symlink((directory / "another's").c_str(), (directory / "ours/link").c_str()), 0);
  const auto set_old = [&](const std::string& name) {
    const timespec day{86400, 0};
    const std::array<timespec, 2> both{day, day};
    EXPECT_EQ(utimensat(AT_FDCWD, (directory / name).c_str(), both.data(), AT_SYMLINK_NOFOLLOW), 0);
  };
  const auto is_old = [&](const std::string& name) {
    struct stat info {};
    EXPECT_EQ(lstat((directory / name).c_str(), &info), 0) << name;
    return info.st_mtime == 86400 || info.st_atime == 86400;
  };
  for (const char* name :
       {"ours/jobs/x/start", "ours/jobs/x", "ours/jobs", "ours/link", "ours", "another's"}) {
    set_old(name);
  }
  keep_from_cleaners(directory / "ours");
  for (const char* name : {"ours/jobs/x/start", "ours/jobs/x", "ours/jobs", "ours/link", "ours"}) {
    EXPECT_FALSE(is_old(name)) << name;
  }
  EXPECT_TRUE(is_old("another's"));
  keep_from_cleaners(directory / "not there");
}

// A user could put a link in the place of a directory while an agent of root goes through it.
TEST(RuntimeDirectoryTest, DirectoriesOfOtherUsersAreNotEnteredToKeepThemFromCleaners) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes directories of other users";
  const TempDir directory;
  ASSERT_TRUE(make_directories(directory / "ours/users"));
  ASSERT_TRUE(write_file_atomic(directory / "ours/users/file", ""));
  ASSERT_TRUE(write_file_atomic(directory / "ours/start", ""));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  const auto times_of = [&](const std::string& name) {
    return std::filesystem::last_write_time(directory / name);
  };
  for (const char* name : {"ours/users/file", "ours/start"}) {
    std::filesystem::last_write_time(directory / name, long_ago);
  }
  constexpr uid_t kUser = 54321;
  ASSERT_EQ(chown((directory / "ours/users").c_str(), kUser, kUser), 0);
  keep_from_cleaners(directory / "ours");
  EXPECT_GT(times_of("ours/start"), long_ago + std::chrono::hours(1));
  EXPECT_LT(times_of("ours/users/file"), long_ago + std::chrono::hours(1));
}

TEST(RuntimeDirectoryTest, KeptDirectoriesAreTouchedAtOnceAndThenOnceADay) {
  const TempDir directory;
  const std::string key = directory / "job.key";
  ASSERT_TRUE(write_file_atomic(key, ""));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  const MonoTime begin = MonoTime{} + std::chrono::hours(1);
  KeptDirectories kept({directory.path()});
  const auto is_touched_at = [&](Duration after) {
    std::filesystem::last_write_time(key, long_ago);
    kept.tend(begin + after);
    return std::filesystem::last_write_time(key) > long_ago + std::chrono::hours(1);
  };
  EXPECT_TRUE(is_touched_at(Duration::zero()));
  EXPECT_FALSE(is_touched_at(std::chrono::hours(23)));
  EXPECT_TRUE(is_touched_at(std::chrono::hours(24)));
  EXPECT_FALSE(is_touched_at(std::chrono::hours(25)));
  EXPECT_TRUE(is_touched_at(std::chrono::hours(49)));
}

}  // namespace
}  // namespace antdt
