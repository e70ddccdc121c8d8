// A program that is started as another user has that user's rights and nothing of ours.
#include "core/start_as.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/owned_fd.h"

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

// What `script` prints, run by sh as `user`.
std::string output_of(const UserIdentity& user, const std::string& script,
                      std::vector<int> pass = {}) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  StartAs what;
  what.program = "/bin/sh";
  what.arguments = {"-c", script};
  what.environment = user_environment(user);
  what.environment.emplace_back("PATH=/usr/bin:/bin");
  what.standard_output = writing.get();
  what.pass = std::move(pass);
  const Result<pid_t> pid = start_as(user, what);
  EXPECT_TRUE(pid) << pid.error().message;
  writing.close();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(reading.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (pid) waitpid(*pid, nullptr, 0);
  return text;
}

class StartAsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root starts programs as other users";
  }
};

TEST_F(StartAsTest, TheProgramHasTheUsersIdsAndGroupsAndNoRightsOfOurs) {
  EXPECT_EQ(output_of(somebody(), "id -u; id -ru; id -g; id -G"),
            fmt::format("{0}\n{0}\n{1}\n{1} {2}\n", kSomebody, kTheirGroup, kTheirOtherGroup));
  const std::string status =
      output_of(somebody(), "grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNew' /proc/self/status");
  EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapAmb:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
}

TEST_F(StartAsTest, ItHasNoDescriptorButThoseThatItIsGiven) {
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

TEST_F(StartAsTest, ItBeginsAtTheRootWithItsOwnEnvironmentAndAUmaskThatKeepsOthersOut) {
  EXPECT_EQ(output_of(somebody(), "pwd; umask; echo $HOME $USER $LOGNAME $SHELL"),
            "/\n0077\n/home/some somebody somebody /bin/sh\n");
}

TEST_F(StartAsTest, AProgramThatCannotBeExecutedIsNamedWithTheUser) {
  const TempDir directory;  // 0700 of ours
  ASSERT_TRUE(write_file_atomic(directory / "tool", "#!/bin/sh\n", 0755));
  StartAs what;
  what.program = directory / "tool";
  const Result<pid_t> pid = start_as(somebody(), what);
  ASSERT_FALSE(pid);
  EXPECT_THAT(pid.error().message, HasSubstr(what.program + " as the user somebody"));
  EXPECT_THAT(pid.error().message, HasSubstr("Permission denied"));
}

TEST(StartAsOwnUserTest, RightsStayWhereNothingIsToBeChanged) {
  EXPECT_EQ(output_of(own_user(), "id -u"), fmt::format("{}\n", geteuid()));
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
