#include "launcher/start/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/os/fs.h"

namespace antdt::launcher {
namespace {

// Makes the files that a killed private agent leaves in its directory.
class Leftovers : public ::testing::Test {
 protected:
  Leftovers() {
    EXPECT_TRUE(make_directories(process_));
    for (const char* file : {"/pid", "/claim"}) EXPECT_TRUE(write_file_atomic(process_ + file, ""));
    EXPECT_TRUE(write_file_atomic(private_agent_lock(run_), "99999\n"));
    EXPECT_TRUE(write_file_atomic(run_ + "/agent.sock", ""));
    age(process_ + "/claim");
    age(run_ + "/state");
  }
  static void age(const std::string& path) {
    const timespec long_ago[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  }
  static void touch(const std::string& path) {
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), nullptr, 0), 0);
  }
  [[nodiscard]] bool there() const { return std::filesystem::exists(run_ + "/agent.sock"); }

  TempDir root_;
  std::string run_ = root_ / "01abc";
  std::string process_ = run_ + "/state/jobs/ctr-1/w0.1";
};

TEST_F(Leftovers, ADeadDirectoryIsRemoved) {
  remove_dead(root_.path());
  EXPECT_FALSE(std::filesystem::exists(run_));
}

TEST_F(Leftovers, OneWhoseAgentLivesIsLeft) {
  const auto agent = FileLock::acquire(private_agent_lock(run_));
  ASSERT_TRUE(agent);
  age(run_ + "/state");
  remove_dead(root_.path());
  remove_if_dead(run_, Duration::zero());
  EXPECT_TRUE(there());
}

TEST_F(Leftovers, OneInWhichAShimLivesIsLeft) {
  const int pid_file = open((process_ + "/pid").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(pid_file, LOCK_EX | LOCK_NB), 0);
  remove_dead(root_.path());
  EXPECT_TRUE(there());
  close(pid_file);
  age(run_ + "/state");
  remove_dead(root_.path());
  EXPECT_FALSE(there());
}

TEST_F(Leftovers, ADirectoryClaimedAMomentAgoIsLeftUnlessItIsOurs) {
  touch(process_ + "/claim");
  remove_dead(root_.path());
  EXPECT_TRUE(there()) << "another agent may be about to begin in it";
  remove_if_dead(run_, Duration::zero());
  EXPECT_FALSE(there());
}

TEST_F(Leftovers, AnAgentThatIsJustBeginningIsLeft) {
  std::filesystem::remove(private_agent_lock(run_));
  touch(run_ + "/state");
  remove_dead(root_.path());
  EXPECT_TRUE(there());
}

TEST_F(Leftovers, OtherDirectoriesAreLeft) {
  const std::string other = root_ / "agent-7700";  // an agent of a cluster, its state elsewhere
  ASSERT_TRUE(make_directories(other));
  remove_dead(root_.path());
  EXPECT_TRUE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace antdt::launcher
