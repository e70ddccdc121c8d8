// Tests which users an agent serves, and under which identity.
#include "antdtd/users/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "antdtd/processes/environment.h"
#include "antdtd/processes/process_store.h"
#include "antdtd/shim/shim_files.h"
#include "antdtd/users/user_files.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

namespace antdt::antdtd {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

UserIdentity user(const std::string& name, uid_t uid) {
  return {name, uid, uid, {uid}, "/home/" + name, "/bin/sh"};
}

// A system with alice (1001), bob (1002) and root.
Result<UserIdentity> lookup(const std::string& name) {
  if (name == "alice") return user(name, 1001);
  if (name == "bob") return user(name, 1002);
  if (name == "root") return user(name, 0);
  return fail(ErrorKind::kUsage, "this host has no user '{}'", name);
}

UserPolicy of_alice() { return {user("alice", 1001), false, ""}; }
UserPolicy of_root(bool allow_root = false) { return {user("root", 0), allow_root, ""}; }

std::string refusal(const transport::AuthorizedKey& key, const UserPolicy& policy) {
  const auto served = served_as(key, policy, lookup);
  return served ? "served as " + served->name : served.error().message;
}

TEST(ServedAsTest, AnAgentOfRootServesEachUserAsThatUser) {
  EXPECT_EQ(served_as({"alice", "alice", false}, of_root(), lookup)->uid, 1001U);
  EXPECT_EQ(served_as({"bob", "bob", false}, of_root(), lookup)->uid, 1002U);
  EXPECT_EQ(served_as({"laptop", "bob", true}, of_root(), lookup)->name, "bob");
}

TEST(ServedAsTest, RootIsServedOnlyWhereThatIsAllowed) {
  EXPECT_THAT(refusal({"root", "root", false}, of_root()), HasSubstr("--allow-root"));
  EXPECT_EQ(refusal({"root", "root", false}, of_root(true)), "served as root");
}

TEST(ServedAsTest, AnUnknownUserIsRefusedWithTheRemedy) {
  const std::string said = refusal({"carol", "carol", false}, of_root());
  EXPECT_THAT(said, HasSubstr("this host has no user 'carol'"));
  EXPECT_THAT(said, HasSubstr("authorized/carol.pub"));
}

TEST(ServedAsTest, ADirectoryThatOthersCannotEnterKeepsOthersOutAndIsNamed) {
  UserPolicy policy = of_root(true);
  policy.unreachable = "others cannot pass through /root";
  EXPECT_THAT(refusal({"bob", "bob", false}, policy),
              HasSubstr("others cannot pass through /root"));
  if (geteuid() == 0) {
    EXPECT_EQ(refusal({"root", "root", false}, policy), "served as root");
  }
}

TEST(ServedAsTest, AnAgentThatIsNotRootsServesItsOwnUserAlone) {
  EXPECT_EQ(refusal({"alice", "alice", false}, of_alice()), "served as alice");
  EXPECT_EQ(refusal({"laptop", "alice", true}, of_alice()), "served as alice");
  const std::string said = refusal({"bob", "bob", false}, of_alice());
  EXPECT_THAT(said, HasSubstr("the key bob is that of the user 'bob'"));
  EXPECT_THAT(said, HasSubstr("run antdtd as root"));
}

// A key that antdt keygen of earlier releases made, when one key served the whole cluster.
TEST(ServedAsTest, AKeyNamedJobThatSaysNoUserIsTheAgentsOwnAsBefore) {
  EXPECT_EQ(refusal({"job", "job", false}, of_alice()), "served as alice");
  EXPECT_EQ(refusal({"job", "job", false}, of_root(true)), "served as root");
  EXPECT_THAT(refusal({"job", "job", false}, of_root()), HasSubstr("does not say whose key it is"));
}

TEST(EnvironmentOfTest, AnotherUserGetsOnlyThePathsOfTheAgentsEnvironment) {
  const auto env = environment_of(
      user("bob", 1002), {"PATH=/usr/bin", "HOME=/root", "SECRET=1", "LC_ALL=C", "USER=root",
                          "CREDENTIALS_DIRECTORY=/run/credentials", "CUDA_HOME=/opt/cuda"});
  EXPECT_THAT(env, testing::UnorderedElementsAre("HOME=/home/bob", "USER=bob", "LOGNAME=bob",
                                                 "SHELL=/bin/sh", "PATH=/usr/bin", "LC_ALL=C",
                                                 "CUDA_HOME=/opt/cuda"));
}

// ------------------------------------------------------------------ the directory of keys

class UsersTest : public testing::Test {
 protected:
  UsersTest() : loop(clock) {
    key = transport::generate_key_pair(dir / "made", "job").value();
    EXPECT_TRUE(make_directories(authorized));
  }
  void authorize(const std::string& name) {
    ASSERT_TRUE(write_file_atomic(authorized + "/" + name + ".pub",
                                  read_file(dir / "made/job.pub").value()));
  }

  SteadyClock clock;
  EventLoop loop;
  TempDir dir;
  std::string authorized = dir / "authorized";
  transport::KeyPair key;
};

TEST_F(UsersTest, AKeyThatIsRemovedIsRefusedWithinASecondAndTheLoopIsToldSo) {
  const std::string own = own_user().name;
  authorize(own);
  Users users(loop, authorized, {own_user(), true, ""});
  ASSERT_TRUE(users.is_authorized(key.public_z85));
  ASSERT_TRUE(users.find(key.public_z85));
  EXPECT_EQ(users.find(key.public_z85)->identity.name, own);
  unlink((authorized + "/" + own + ".pub").c_str());
  const MonoTime removed = clock.now();
  users.on_change([&] {
    if (!users.is_authorized(key.public_z85)) loop.stop();
  });
  loop.call_after(std::chrono::seconds(10), [&] { loop.stop(); });
  loop.run();
  EXPECT_LT(to_seconds(clock.now() - removed), 1.0);
  const auto found = users.find(key.public_z85);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(found.error().message,
              HasSubstr("was removed or replaced, or cannot be read (the agent's log then says"));
}

TEST_F(UsersTest, AKeyThatIsAddedIsKnownWithoutARestart) {
  Users users(loop, authorized, {own_user(), true, ""});
  EXPECT_FALSE(users.is_authorized(key.public_z85));
  users.on_change([&] {
    if (users.is_authorized(key.public_z85)) loop.stop();
  });
  authorize(own_user().name);
  loop.call_after(std::chrono::seconds(10), [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(users.is_authorized(key.public_z85));
}

TEST_F(UsersTest, AKeyOfAUserWhoIsNotServedMayConnectAndIsToldWhy) {
  authorize("no-such-user-here");
  Users users(loop, authorized, {user("root", 0), false, ""});
  EXPECT_TRUE(users.is_authorized(key.public_z85));
  const auto found = users.find(key.public_z85);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(found.error().message, HasSubstr("no-such-user-here"));
}

// ------------------------------------------------------------- places of another user

class UserFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has to do with files of other users";
    ASSERT_EQ(chmod(dir.path().c_str(), 0711), 0);
  }
  [[nodiscard]] static bool is_there(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0;
  }
  TempDir dir;
  UserIdentity bob = user("bob", 54321);
};

TEST_F(UserFilesTest, ALinkAPipeAndAFileOfSomebodyElseAreNotRead) {
  ASSERT_TRUE(make_file_of(bob, dir / "mine"));
  ASSERT_TRUE(read_file_of(bob.uid, dir / "mine", 100));
  ASSERT_EQ(symlink("/etc/passwd", (dir / "link").c_str()), 0);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0666), 0);
  ASSERT_EQ(link((dir / "mine").c_str(), (dir / "other-name").c_str()), 0);
  UserIdentity carol = user("carol", 54322);
  ASSERT_TRUE(make_file_of(carol, dir / "hers"));
  for (const char* name : {"link", "pipe", "mine", "hers"}) {
    EXPECT_FALSE(read_file_of(bob.uid, dir / name, 100)) << name;
  }
}

TEST_F(UserFilesTest, NoMoreIsReadThanTheLimit) {
  ASSERT_TRUE(write_file_atomic(dir / "long", std::string(1000, 'x'), 0600));
  ASSERT_EQ(chown((dir / "long").c_str(), bob.uid, 0), 0);
  EXPECT_EQ(read_file_of(bob.uid, dir / "long", 64)->size(), 64U);
}

// As long as it lives, this thread may not override permissions, like the agent of the packaged
// unit.
class WithoutOverride {
 public:
  WithoutOverride() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~((1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH));
    EXPECT_EQ(syscall(SYS_capset, &header_, now), 0);
  }
  ~WithoutOverride() { EXPECT_EQ(syscall(SYS_capset, &header_, before_), 0); }
  WithoutOverride(const WithoutOverride&) = delete;
  WithoutOverride& operator=(const WithoutOverride&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

// The user has put a link in the place of the claim file, and a directory that bars the agent
// beside it.
TEST_F(UserFilesTest, WhatAUserLeftWhereTheAgentCannotRemoveItIsNeitherOpenedNorAdopted) {
  auto opened = ProcessStore::open(dir / "state", /*of_many_users=*/true);
  ASSERT_TRUE(opened) << opened.error().message;
  ProcessStore& store = *opened;
  const ProcessKey key{"job-1", {{'w', 0}, Attempt{1}}};
  wire::StartProcess start;
  start.command = {"true"};
  ASSERT_TRUE(store.create(key, start, bob));
  ASSERT_TRUE(store.save_job(key.job, {}));
  const std::string own = store.shim_directory(key);
  ASSERT_EQ(own, own_directory(store.directory(key)));
  ASSERT_TRUE(write_file_atomic(dir / "secret", "of root", 0600));
  for (const std::string& made : {pid_file(own), exit_part_file(own), claim_file(own)}) {
    ASSERT_EQ(unlink(made.c_str()), 0);
  }
  ASSERT_EQ(symlink((dir / "secret").c_str(), claim_file(own).c_str()), 0);
  ASSERT_EQ(mkdir((own + "/bar").c_str(), 0700), 0);
  ASSERT_TRUE(make_file_of(bob, own + "/bar/file"));
  ASSERT_EQ(chown((own + "/bar").c_str(), bob.uid, bob.gid), 0);
  {
    const WithoutOverride as_packaged;
    store.forget(key);
    store.forget_job(key.job);
    ASSERT_TRUE(is_there(own)) << "it could not be removed";
    EXPECT_TRUE(store.processes().empty());
    EXPECT_TRUE(store.jobs().empty());
    const Status again = store.create(key, start, bob);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, ErrorKind::kObstructed);
    EXPECT_THAT(again.error().message, HasSubstr("remove it as root"));
  }
  EXPECT_EQ(read_file(dir / "secret").value_or("?"), "of root");
  EXPECT_TRUE(store.create(key, start, bob)) << "root has removed it";
}

TEST_F(UserFilesTest, ASignalHitsProcessesOfTheUserAlone) {
  Spawn what;
  what.program = "/bin/sleep";
  what.arguments = {"1000"};
  what.user = bob;
  const pid_t theirs = spawn(what).value().pid;
  what.user = own_user();
  const pid_t ours = spawn(what).value().pid;
  const auto started = [](pid_t pid) { return process_start_time(pid).value(); };
  const Status refused = signal_process_of(bob.uid, ours, started(ours), SIGKILL);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(process_alive(ours, started(ours)));
  EXPECT_TRUE(signal_process_of(bob.uid, theirs, started(theirs), SIGKILL));
  int status = 0;
  EXPECT_EQ(waitpid(theirs, &status, 0), theirs);
  EXPECT_TRUE(WIFSIGNALED(status));
  kill(ours, SIGKILL);
  waitpid(ours, nullptr, 0);
}

TEST_F(UserFilesTest, TheFirstDirectoryThatOthersCannotPassIsNamed) {
  ASSERT_TRUE(ensure_passable_directory(dir / "a/b"));
  EXPECT_EQ(who_bars(dir / "a/b"), "");
  ASSERT_EQ(chmod((dir / "a").c_str(), 0700), 0);
  EXPECT_EQ(who_bars(dir / "a/b"), dir / "a");
}

}  // namespace
}  // namespace antdt::antdtd
