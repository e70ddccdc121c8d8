#include "core/transport/keys.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt::transport {
namespace {

using testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(KeysTest, ReadsWhatItMakes) {
  const TempDir directory;
  const auto made = generate_key_pair(directory / "keys", "agent-1");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(mode_of(directory / "keys"), 0700U);
  EXPECT_EQ(mode_of(directory / "keys/agent-1.key"), 0600U);
  const auto pair = load_key_pair(directory / "keys/agent-1.key");
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->name, "agent-1");
  EXPECT_EQ(pair->secret_z85, made->secret_z85);
  const auto open_key = load_public_key(directory / "keys/agent-1.pub");
  ASSERT_TRUE(open_key) << open_key.error().message;
  EXPECT_EQ(open_key->z85, made->public_z85);
  EXPECT_THAT(read_file(directory / "keys/agent-1.pub").value(),
              testing::Not(HasSubstr(made->secret_z85)));
}

TEST(KeysTest, KeysMadeInMemoryCouldBeStoredInAFile) {
  const TempDir directory;
  const auto pair = make_key_pair("w1.2");
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->name, "w1.2");
  EXPECT_NE(make_key_pair("w1.2")->secret_z85, pair->secret_z85);
  ASSERT_TRUE(write_file_atomic(directory / "a.key",
                                fmt::format("antdt-key v1\nname = a\npublic = {}\nsecret = {}\n",
                                            pair->public_z85, pair->secret_z85),
                                0600));
  EXPECT_TRUE(load_key_pair(directory / "a.key")) << "they belong together";
}

TEST(KeysTest, DoesNotOverwrite) {
  const TempDir directory;
  const auto first = generate_key_pair(directory.path(), "a");
  ASSERT_TRUE(first);
  const auto second = generate_key_pair(directory.path(), "a");
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("a.key"));
  EXPECT_EQ(load_key_pair(directory / "a.key")->secret_z85, first->secret_z85);
}

TEST(KeysTest, RefusesNamesThatLeadElsewhere) {
  const TempDir directory;
  for (const char* name : {"", "..", "a/b", "../a", ".hidden", "-f", "a b"}) {
    EXPECT_FALSE(generate_key_pair(directory.path(), name)) << name;
  }
}

TEST(KeysTest, RefusesASecretThatOthersMayReadAndSaysHowToMendIt) {
  const TempDir directory;
  ASSERT_TRUE(generate_key_pair(directory.path(), "a"));
  const std::string path = directory / "a.key";
  for (const mode_t mode : {0644U, 0640U, 0604U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto pair = load_key_pair(path);
    ASSERT_FALSE(pair) << mode;
    EXPECT_THAT(pair.error().message, HasSubstr("chmod 600 " + path));
  }
}

TEST(KeysTest, RefusesFilesThatAreNoKeys) {
  const TempDir directory;
  const auto good = generate_key_pair(directory.path(), "a");
  ASSERT_TRUE(good);
  const std::string path = directory / "bad.key";
  const std::string head = "antdt-key v1\nname = bad\n";
  for (const std::string& text :
       {std::string(), std::string("something else\n"), head, head + "public = short\n",
        head + "public = " + good->public_z85 + "\n",
        head + "public = " + good->secret_z85 + "\nsecret = " + good->secret_z85 + "\n",
        head + "not a line\n", "antdt-key v1\nname = ../x\npublic = " + good->public_z85 + "\n"}) {
    ASSERT_TRUE(write_file_atomic(path, text, 0600));
    const auto pair = load_key_pair(path);
    ASSERT_FALSE(pair) << text;
    EXPECT_EQ(pair.error().kind, ErrorKind::kUsage);
  }
}

// The Z85 decoder ends at a zero byte, so these five characters alone would be accepted.
TEST(KeysTest, AKeyWithAZeroByteIsInvalid) {
  const TempDir directory;
  const auto good = generate_key_pair(directory.path(), "a");
  ASSERT_TRUE(good);
  const std::string path = directory / "bad.pub";
  const std::string cut = good->public_z85.substr(0, 5) + std::string(35, '\0');
  ASSERT_TRUE(write_file_atomic(path, "antdt-key v1\nname = bad\npublic = " + cut + "\n"));
  EXPECT_FALSE(load_public_key(path));
}

TEST(AuthorizedKeysTest, KnowsTheKeysOfItsDirectoryByFileName) {
  const TempDir directory;
  const auto alice = generate_key_pair(directory / "made", "alice");
  ASSERT_TRUE(alice);
  ASSERT_TRUE(write_file_atomic(directory / "operator.pub",
                                read_file(directory / "made/alice.pub").value()));
  AuthorizedKeys keys(directory.path());
  EXPECT_EQ(keys.name_of(alice->public_z85), "operator");
  EXPECT_EQ(keys.name_of(alice->secret_z85), "");
}

TEST(AuthorizedKeysTest, AKeyIsThatOfTheUserInItsFileNameUnlessALineSaysAnother) {
  const TempDir directory;
  const auto made = generate_key_pair(directory / "made", "job");
  const auto other = generate_key_pair(directory / "made", "other");
  ASSERT_TRUE(made && other);
  ASSERT_TRUE(write_file_atomic(directory / "alice.pub",
                                public_key_text({"job", made->public_z85, ""}).value()));
  ASSERT_TRUE(
      write_file_atomic(directory / "laptop.pub",
                        read_file(directory / "made/other.pub").value() + "user = \"bob\"\n"));
  AuthorizedKeys keys(directory.path());
  EXPECT_EQ(keys.all().at(made->public_z85), (AuthorizedKey{"alice", "alice", false}));
  EXPECT_EQ(keys.all().at(other->public_z85), (AuthorizedKey{"laptop", "bob", true}));
}

TEST(AuthorizedKeysTest, ALineThatNamesNoUserAuthorizesNobody) {
  const TempDir directory;
  const auto made = generate_key_pair(directory / "made", "job");
  ASSERT_TRUE(made);
  const std::string text = read_file(directory / "made/job.pub").value();
  AuthorizedKeys keys(directory.path());
  for (const char* user : {"", "\"\"", "../root", "a:b"}) {
    ASSERT_TRUE(write_file_atomic(directory / "x.pub", fmt::format("{}user = {}\n", text, user)));
    EXPECT_TRUE(keys.all().empty()) << user;
  }
}

TEST(AuthorizedKeysTest, SeesKeysThatAreAddedReplacedAndRemoved) {
  const TempDir directory;
  AuthorizedKeys keys(directory.path());
  const auto first = generate_key_pair(directory / "made", "first");
  const auto second = generate_key_pair(directory / "made", "second");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(keys.name_of(first->public_z85), "");
  const auto authorize = [&](const char* which) {
    const std::string text = read_file(directory / "made/" + which + ".pub").value();
    ASSERT_TRUE(write_file_atomic(directory / "x.pub", text));
  };
  authorize("first");
  EXPECT_EQ(keys.name_of(first->public_z85), "x");
  authorize("second");
  EXPECT_EQ(keys.name_of(first->public_z85), "");
  EXPECT_EQ(keys.name_of(second->public_z85), "x");
  unlink((directory / "x.pub").c_str());
  EXPECT_EQ(keys.name_of(second->public_z85), "");
}

TEST(AuthorizedKeysTest, ABrokenFileDoesNotHideTheOthers) {
  const TempDir directory;
  const auto good = generate_key_pair(directory / "made", "good");
  ASSERT_TRUE(good);
  ASSERT_TRUE(write_file_atomic(directory / "a-broken.pub", "nonsense"));
  ASSERT_TRUE(
      write_file_atomic(directory / "good.pub", read_file(directory / "made/good.pub").value()));
  AuthorizedKeys keys(directory.path());
  EXPECT_EQ(keys.name_of(good->public_z85), "good");
}

// Root may read every file, so it becomes another user for as long as an object of this class
// lives.
class NotAsRoot {
 public:
  NotAsRoot() {
    if (geteuid() == 0) changed_ = seteuid(kNobody) == 0;
  }
  ~NotAsRoot() {
    if (changed_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
  NotAsRoot(const NotAsRoot&) = delete;
  NotAsRoot& operator=(const NotAsRoot&) = delete;

  static void give(const std::string& path) {
    if (geteuid() == 0) {
      EXPECT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  bool changed_ = false;
};

// Uses up all descriptors of the process.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const OwnedFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

// An operator installs a key that the agent may not read, and mends that.
TEST(AuthorizedKeysTest, AKeyCountsAsSoonAsItMayBeReadAndNoLonger) {
  const TempDir directory;
  const auto made = generate_key_pair(directory.path(), "alice");
  ASSERT_TRUE(made);
  const std::string path = directory / "alice.pub";
  NotAsRoot::give(directory.path());
  NotAsRoot::give(path);
  const NotAsRoot as_another;
  if (faccessat(AT_FDCWD, directory.path().c_str(), X_OK, AT_EACCESS) != 0) {
    GTEST_SKIP() << "another user cannot enter " << directory.path();
  }
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  AuthorizedKeys keys(directory.path());
  EXPECT_EQ(keys.name_of(made->public_z85), "");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(keys.name_of(made->public_z85), "alice");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(keys.name_of(made->public_z85), "");
}

TEST(AuthorizedKeysTest, AFileThatCannotBeReadIsTriedAgainThoughItDoesNotChange) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempDir directory;
  const auto made = generate_key_pair(directory.path(), "alice");
  ASSERT_TRUE(made);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((directory / "alice.pub").c_str(), 0600), 0);
  AuthorizedKeys keys(directory.path());
  {
    const NotAsRoot as_another;
    EXPECT_EQ(keys.name_of(made->public_z85), "");
  }
  EXPECT_EQ(keys.name_of(made->public_z85), "alice");
}

TEST(AuthorizedKeysTest, ADirectoryThatCannotBeListedForAMomentTakesNoKeyAway) {
  const TempDir directory;
  const auto made = generate_key_pair(directory.path(), "alice");
  ASSERT_TRUE(made);
  AuthorizedKeys keys(directory.path());
  EXPECT_EQ(keys.name_of(made->public_z85), "alice");
  {
    const NoMoreDescriptors none;
    EXPECT_EQ(keys.name_of(made->public_z85), "alice");
  }
  ASSERT_EQ(unlink((directory / "alice.pub").c_str()), 0);
  EXPECT_EQ(keys.name_of(made->public_z85), "");
}

TEST(AuthorizedKeysTest, ADirectoryThatIsRemovedTakesItsKeysAway) {
  const TempDir directory;
  const auto made = generate_key_pair(directory / "keys", "alice");
  ASSERT_TRUE(made);
  AuthorizedKeys keys(directory / "keys");
  EXPECT_EQ(keys.name_of(made->public_z85), "alice");
  std::filesystem::remove_all(directory / "keys");
  EXPECT_EQ(keys.name_of(made->public_z85), "");
}

TEST(AuthorizedKeysTest, AMissingDirectoryAuthorizesNobody) {
  AuthorizedKeys keys("/nonexistent/keys");
  EXPECT_EQ(keys.name_of(std::string(40, '0')), "");
}

}  // namespace
}  // namespace antdt::transport
