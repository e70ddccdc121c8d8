// How a process that could not be started is reported.
#include "antdtd/processes/process_runner.h"

#include <gtest/gtest.h>

#include <csignal>

#include "core/os/fs.h"
#include "core/os/user.h"

namespace antdt::antdtd {
namespace {

class FailedStart : public testing::Test {
 protected:
  ExitStatus reported_for(const Error& why) {
    ExitStatus reported;
    ProcessRunner runner(loop_, store_, {},
                         {[](const ProcessKey&, std::uint32_t) {},
                          [&](const ProcessKey& key, const ExitStatus& status) {
                            EXPECT_EQ(key, key_);
                            reported = status;
                            loop_.stop();
                          },
                          [this](const std::string&) -> const UserIdentity& { return owner_; }});
    runner.fail_start(key_, why);
    loop_.run();
    return reported;
  }

  const TempDir directory_;
  const SteadyClock clock_;
  EventLoop loop_{clock_};
  ProcessStore store_ = ProcessStore::open(directory_ / "state").value();
  const UserIdentity owner_ = own_user();
  const ProcessKey key_{"job-1", {{'w', 0}, Attempt{1}}};
};

TEST_F(FailedStart, WhatAUserPutInItsWayCostsTheAttemptAlone) {
  const ExitStatus status = reported_for({ErrorKind::kObstructed, "a process stopped it"});
  EXPECT_EQ(status.error, "") << "a job ends by an error, since each attempt would meet it";
  EXPECT_EQ(status.signal, SIGKILL);
  EXPECT_EQ(status.last_lines, "[antdt: a process stopped it]");
}

TEST_F(FailedStart, WhatIsWrongWithTheProgramIsTheErrorOfTheJob) {
  const ExitStatus status = reported_for({ErrorKind::kUsage, "cannot execute /x"});
  EXPECT_EQ(status.error, "cannot execute /x");
  EXPECT_EQ(status.signal, 0);
}

}  // namespace
}  // namespace antdt::antdtd
