#include "launcher/start/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::HasSubstr;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    config_ = load_text(kJob, "job.toml").value();
    config_.job.id = "ctr-01";
    options_.run_dir = dir_ / "run";
    options_.filesystem = [this](const std::string& path) -> Result<std::optional<std::string>> {
      if (path.starts_with(dir_ / "nfs")) return "nfs";
      return std::nullopt;
    };
  }
  TempDir dir_;
  JobConfig config_;
  RunOptions options_;
};

TEST_F(RunDirectoryTest, IsPrivateAndHoldsTheJobAsGivenAndInFull) {
  const auto run = create_run_directory(config_, kJob, options_);
  ASSERT_TRUE(run) << run.error().message;
  struct stat info {};
  ASSERT_EQ(::stat(run->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  EXPECT_EQ(read_file(run->path + "/job.toml").value(), kJob);
  EXPECT_EQ(load_effective(run->path).value().job.id, "ctr-01");
  EXPECT_THAT(read_file(run->path + "/effective.toml").value(), HasSubstr("shard_batches = 10"));
  EXPECT_EQ(run->state_dir, run->path);
}

TEST_F(RunDirectoryTest, ThatIsInUseIsRefusedNamingTheProcess) {
  const auto run = create_run_directory(config_, kJob, options_);
  ASSERT_TRUE(run);
  const auto again = create_run_directory(config_, kJob, options_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(again.error().message,
              HasSubstr(fmt::format("is already in use: process {}", ::getpid())));
}

TEST_F(RunDirectoryTest, IsHeldByOneProcessAtATime) {
  ASSERT_TRUE(make_directories(options_.run_dir));
  const auto first = hold_run_directory(options_.run_dir);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = hold_run_directory(options_.run_dir);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr("somebody else is starting the run"));
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("process {}", ::getpid())));
}

TEST_F(RunDirectoryTest, WhereTheLockCannotBeWrittenIsNotTakenForHeldBySomebodyElse) {
  // In place of a disk that is full: nobody can write a file of this name.
  ASSERT_TRUE(make_directories(options_.run_dir + "/launch.lock"));
  const auto lock = hold_run_directory(options_.run_dir);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().kind, ErrorKind::kIo);
  EXPECT_THAT(lock.error().message, HasSubstr("launch.lock: Is a directory"));
  EXPECT_THAT(lock.error().message, HasSubstr("Make room"));
  EXPECT_THAT(lock.error().message, testing::Not(HasSubstr("somebody else")));
}

TEST_F(RunDirectoryTest, ThatHoldsARunIsRefusedAfterItsLauncherEnded) {
  ASSERT_TRUE(create_run_directory(config_, kJob, options_));
  EXPECT_THAT(check_run_directory(options_).error().message, HasSubstr("it holds a run"));
}

TEST_F(RunDirectoryTest, ADirectoryWithOtherFilesIsRefused) {
  ASSERT_TRUE(make_directories(options_.run_dir));
  ASSERT_TRUE(write_file_atomic(options_.run_dir + "/thesis.tex", "x"));
  EXPECT_THAT(check_run_directory(options_).error().message, HasSubstr("is not empty"));
}

TEST_F(RunDirectoryTest, ADirectoryOnANetworkFilesystemIsRefusedWithTheAlternative) {
  options_.run_dir = dir_ / "nfs/run";
  ASSERT_TRUE(make_directories(dir_ / "nfs"));
  const auto run = create_run_directory(config_, kJob, options_);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("network filesystem (nfs)"));
  EXPECT_THAT(run.error().message, HasSubstr("--state-dir"));

  options_.state_dir = dir_ / "local";
  const auto with_state_dir = create_run_directory(config_, kJob, options_);
  ASSERT_TRUE(with_state_dir) << with_state_dir.error().message;
  EXPECT_EQ(with_state_dir->state_dir, dir_ / "local/ctr-01");
}

TEST_F(RunDirectoryTest, TellsHowToReachTheJob) {
  ASSERT_TRUE(make_directories(options_.run_dir));
  EXPECT_THAT(read_control(options_.run_dir).error().message, HasSubstr("was started"));
  ASSERT_TRUE(
      write_control(options_.run_dir, {"ctr-01", "/s/jobd.sock", "/s/agent.sock", "/d", 7, 99}));
  const auto control = read_control(options_.run_dir);
  ASSERT_TRUE(control);
  EXPECT_EQ(control->jobd_socket, "/s/jobd.sock");
  EXPECT_EQ(control->agent_pid, 7);
  EXPECT_EQ(control->agent_start_time, 99U);
}

TEST_F(RunDirectoryTest, TellsOnWhichOtherMachineARunWasStarted) {
  ASSERT_TRUE(make_directories(options_.run_dir));
  EXPECT_EQ(started_elsewhere(options_.run_dir), "") << "it was not started at all";
  const std::string path = options_.run_dir + "/control.json";
  ASSERT_TRUE(write_control(options_.run_dir, {"ctr-01", "/s/jobd.sock", "/s/agent.sock", "/d"}));
  EXPECT_EQ(started_elsewhere(options_.run_dir), "");
  const RunControl here = read_control(options_.run_dir).value();
  nlohmann::json json = nlohmann::json::parse(read_file(path).value());
  const auto host_of = [&](const std::string& host, const std::string& boot) {
    json["host"] = host;
    json["boot"] = boot;
    EXPECT_TRUE(write_file_atomic(path, json.dump()));
    return started_elsewhere(options_.run_dir);
  };
  EXPECT_EQ(host_of("login2", "another"), "login2");
  EXPECT_EQ(host_of("login2", here.boot), "") << "a container of this machine";
  EXPECT_EQ(host_of(here.host, "another"), "") << "this machine was started again";
  json.erase("host");
  json.erase("boot");
  ASSERT_TRUE(write_file_atomic(path, json.dump()));
  EXPECT_EQ(started_elsewhere(options_.run_dir), "") << "by an older release";
}

}  // namespace
}  // namespace antdt::launcher
