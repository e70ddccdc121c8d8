// What an agent does over hours and days: with jobs of which the one before left only a record, and
// with its files. The agent is in this process; its clock advances only when the test says so.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "antdtd/agent/agent.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

class ForgottenJobs : public testing::Test {
 protected:
  // Always readable, so the loop never waits for the fake clock.
  ForgottenJobs() : pump_(eventfd(1, EFD_CLOEXEC)) {
    loop_.watch_fd(pump_, [this] { loop_.stop(); });
  }
  ~ForgottenJobs() override { close(pump_); }

  void leave_record(const std::string& job) {
    JobRecord record;
    record.incarnation = Incarnation{1};
    record.user = "somebody";
    const auto store = ProcessStore::open(directory_ / "state");
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->save_job(job, record));
  }
  std::unique_ptr<Agent> agent() {
    AgentOptions options;
    options.host = "here";
    options.device_claims = directory_ / "claims";
    options.kept_directories = {directory_ / "state"};
    return std::make_unique<Agent>(
        loop_,
        AgentParts{ProcessStore::open(directory_ / "state").value(),
                   transport::Socket::bind_ipc(context_, directory_ / "agent.sock").value(),
                   transport::Socket::bind_ipc(context_, directory_ / "workers.sock").value(),
                   {}},
        options, accelerators_);
  }
  void pass(Duration time) {
    clock_.advance(time);
    for (int turns = 0; turns < 3; ++turns) loop_.run();
  }
  [[nodiscard]] bool is_recorded(const std::string& job) const {
    return std::filesystem::exists(directory_ / ("state/jobs/" + job));
  }

  TempDir directory_;
  ManualClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  Accelerators accelerators_{"no such library"};

 private:
  int pump_;
};

TEST_F(ForgottenJobs, ARecordWithoutProcessesIsKeptForAnHour) {
  leave_record("old");
  const auto adopting = agent();
  pass(std::chrono::minutes(59));
  EXPECT_TRUE(is_recorded("old")) << "its daemon may attach again";
  pass(std::chrono::minutes(1));
  EXPECT_FALSE(is_recorded("old"));
}

// Those in /tmp are removed when nobody has touched them for some days.
TEST_F(ForgottenJobs, TheFilesOfAnAgentAreTouchedOnceADay) {
  const auto running = agent();
  const std::string file = directory_ / "state/environment";
  ASSERT_TRUE(write_file_atomic(file, ""));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  for (const Duration passed :
       {Duration(std::chrono::seconds(1)), Duration(std::chrono::hours(24))}) {
    std::filesystem::last_write_time(file, long_ago);
    pass(passed);
    EXPECT_GT(std::filesystem::last_write_time(file), long_ago + std::chrono::hours(1));
  }
  std::filesystem::last_write_time(file, long_ago);
  pass(std::chrono::hours(1));
  EXPECT_LT(std::filesystem::last_write_time(file), long_ago + std::chrono::hours(1));
}

}  // namespace
}  // namespace antdt::antdtd
