// A program that is started as another user has that user's rights and none of ours.
#include "core/os/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"

namespace antdt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kSomebody = 54321;
constexpr gid_t kTheirGroup = 54322;
constexpr gid_t kTheirOtherGroup = 54323;

UserIdentity somebody() {
  return {"somebody", kSomebody, kTheirGroup, {kTheirGroup, kTheirOtherGroup}, "/home/some", ""};
}

// Returns the output of `script`, run by sh that was started as `what`.
std::string output_of(Spawn what, const std::string& script) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  what.program = "sh";
  what.arguments = {"-c", script};
  what.standard_output = writing.get();
  const Result<Spawned> started = spawn(what);
  EXPECT_TRUE(started) << started.error().message;
  writing.close();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(reading.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (started && started->pid > 0) waitpid(started->pid, nullptr, 0);
  return text;
}

// The same as `user`, with an environment that has little else.
std::string output_of(const UserIdentity& user, const std::string& script,
                      std::vector<int> pass = {}) {
  Spawn what;
  what.user = user;
  what.environment = user_environment(user);
  what.environment->emplace_back("PATH=/usr/bin:/bin");
  what.pass = std::move(pass);
  return output_of(std::move(what), script);
}

class SpawnAsUser : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root starts programs as other users";
  }
};

TEST_F(SpawnAsUser, TheProgramHasTheUsersIdsAndGroupsAndNoRightsOfOurs) {
  EXPECT_EQ(output_of(somebody(), "id -u; id -ru; id -g; id -G"),
            fmt::format("{0}\n{0}\n{1}\n{1} {2}\n", kSomebody, kTheirGroup, kTheirOtherGroup));
  const std::string status =
      output_of(somebody(), "grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNew' /proc/self/status");
  EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapAmb:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
}

TEST_F(SpawnAsUser, ItHasNoDescriptorButThoseThatItIsGiven) {
  const TempDir directory;
  // Not closed on exec, and of a file that the user could not open.
  const OwnedFd secret(open((directory / "secret").c_str(), O_RDWR | O_CREAT, 0600));
  constexpr int kLeaked = 100;
  constexpr int kGiven = 101;
  const OwnedFd leaked(dup2(secret.get(), kLeaked));
  const OwnedFd given(fcntl(secret.get(), F_DUPFD_CLOEXEC, kGiven));
  ASSERT_EQ(given.get(), kGiven);
  EXPECT_EQ(output_of(somebody(),
                      "for f in 0 1 2 100 101; do [ -e /proc/$$/fd/$f ] && echo $f; done; true",
                      {kGiven}),
            "0\n1\n2\n101\n");
}

TEST_F(SpawnAsUser, ItBeginsAtTheRootWithItsOwnEnvironmentAndAUmaskThatKeepsOthersOut) {
  EXPECT_EQ(output_of(somebody(), "pwd; umask; echo $HOME $USER $LOGNAME $SHELL"),
            "/\n0077\n/home/some somebody somebody /bin/sh\n");
}

TEST_F(SpawnAsUser, AProgramThatCannotBeExecutedIsNamedWithTheUser) {
  const TempDir directory;  // 0700 of ours
  ASSERT_TRUE(write_file_atomic(directory / "tool", "#!/bin/sh\n", 0755));
  Spawn what;
  what.user = somebody();
  what.program = directory / "tool";
  const Result<Spawned> pid = spawn(what);
  ASSERT_FALSE(pid);
  EXPECT_THAT(pid.error().message, HasSubstr(what.program + " as the user somebody"));
  EXPECT_THAT(pid.error().message, HasSubstr("Permission denied"));
}

// That user's processes may send signals to the child from the moment at which it is the user's.
TEST_F(SpawnAsUser, AUserWhoStopsEachProcessBeforeItBeginsHoldsNobodyUp) {
  UserIdentity user = somebody();
  // Of this test alone, and below 65536: a user namespace may have no more.
  user.uid = kSomebody + 1 + static_cast<uid_t>(getpid()) % 10000;
  const pid_t stopper = fork();
  if (stopper == 0) {
    if (setresgid(user.gid, user.gid, user.gid) != 0 ||
        setresuid(user.uid, user.uid, user.uid) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
      _exit(1);
    }
    for (;;) kill(-1, SIGSTOP);  // each process of the user but this one
  }
  ASSERT_GT(stopper, 0);
  Spawn what;
  what.user = user;
  what.program = "/bin/true";
  for (int n = 0; n < 64; ++n) {
    const Result<Spawned> started = spawn(what);
    if (started) {
      kill(started->pid, SIGKILL);
      EXPECT_EQ(waitpid(started->pid, nullptr, 0), started->pid);
    } else {
      EXPECT_EQ(started.error().kind, ErrorKind::kObstructed);
      EXPECT_THAT(started.error().message, HasSubstr("stopped it before it began"));
    }
  }
  kill(stopper, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(stopper, &status, 0), stopper);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it could not become the user";
}

TEST(SpawnAsOwnUser, RightsStayWhereNothingIsToBeChanged) {
  EXPECT_EQ(output_of(own_user(), "id -u"), fmt::format("{}\n", geteuid()));
}

TEST(SpawnTest, AProgramIsFoundInPathAndHasOurEnvironmentAndDirectory) {
  setenv("SPAWN_TEST", "ours", 1);
  EXPECT_EQ(output_of(Spawn{}, "echo $SPAWN_TEST; pwd"),
            "ours\n" + std::filesystem::current_path().string() + "\n");
  unsetenv("SPAWN_TEST");
}

TEST(SpawnTest, ItStartsInTheGivenDirectoryAndItsOwnSession) {
  const TempDir directory;
  Spawn what;
  what.directory = directory.path();
  what.group = ChildGroup::kSession;
  EXPECT_EQ(output_of(what, "pwd; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo own"),
            directory.path() + "\nown\n");
}

TEST(SpawnTest, OnlyPassedDescriptorsReachTheChild) {
  const OwnedFd leaked(dup2(STDIN_FILENO, 100));
  const OwnedFd passed(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 101));
  ASSERT_EQ(passed.get(), 101);
  Spawn what;
  what.pass = {101};
  EXPECT_EQ(output_of(what, "for f in 100 101; do [ -e /proc/$$/fd/$f ] && echo $f; done; true"),
            "101\n");
}

TEST(SpawnTest, AProgramHasTheLimitOfOpenFilesThatThisProcessHadBeforeItRaisedItsOwn) {
  const auto limit = [] {
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    return now;
  };
  const rlimit before = limit();
  const rlimit low{200, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_open_files_limit();
  EXPECT_EQ(limit().rlim_cur, before.rlim_max);
  EXPECT_EQ(output_of(Spawn{}, "ulimit -n"), "200\n");
  raise_open_files_limit();
  EXPECT_EQ(output_of(Spawn{}, "ulimit -n"), "200\n") << "raised twice";
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(SpawnTest, AYieldingProcessIsNicerAndTheFirstToBeKilled) {
  Spawn what;
  what.yields = true;
  EXPECT_EQ(output_of(what, "nice; cat /proc/$$/oom_score_adj"), "5\n1000\n");
}

TEST(SpawnTest, AnOrphanIsNobodysChild) {
  Spawn what;
  what.is_orphan = true;
  EXPECT_NE(output_of(what, "echo $PPID"), std::to_string(getpid()) + "\n");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(SpawnTest, AnErrorNamesWhatWasTried) {
  const auto error_of = [](const std::string& program, const std::string& directory) {
    Spawn what;
    what.program = program;
    what.directory = directory;
    const Result<Spawned> started = spawn(what);
    return started ? std::string() : started.error().message;
  };
  EXPECT_EQ(error_of("/no/such/program", ""),
            "cannot execute /no/such/program: No such file or directory");
  EXPECT_THAT(error_of("no-such-program-here", ""), HasSubstr("(looked for in PATH="));
  EXPECT_EQ(error_of("/etc/passwd", ""), "cannot execute /etc/passwd: Permission denied");
  EXPECT_EQ(error_of("/bin/true", "/no/such/directory"),
            "cannot enter the working directory /no/such/directory: No such file or directory");
}

TEST(UserTest, IsFoundByNameWithAllGroups) {
  const Result<UserIdentity> root = find_user("root");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->uid, 0U);
  EXPECT_THAT(root->groups, testing::Contains(root->gid));
  EXPECT_TRUE(is_member(*root, "root"));
  EXPECT_FALSE(is_member(*root, "no-such-group-here"));
  const Result<UserIdentity> nobody = find_user("no-such-user-here");
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("no-such-user-here"));
}

}  // namespace
}  // namespace antdt
