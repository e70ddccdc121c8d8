// The main() of a worker, as a process of its own that a small job daemon leads.
#include "trainer/main/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "core/os/owned_fd.h"
#include "tests/trainer/fake_job.h"

namespace antdt::trainer {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = R"({"data": {"format": "index", "records": 100}})";

// As on a device that fails in the first step, with `first`, and then in whatever is asked of it.
class OnAFailedDevice final : public Engine {
 public:
  explicit OnAFailedDevice(Error first) : first_(std::move(first)) {}
  ~OnAFailedDevice() override { std::abort(); }
  OnAFailedDevice(const OnAFailedDevice&) = delete;
  OnAFailedDevice& operator=(const OnAFailedDevice&) = delete;

  void begin_step(Collective&) override {}
  [[nodiscard]] Result<BatchSums> compute(const data::Examples&, bool) override {
    return tl::unexpected<Error>(first_);
  }
  [[nodiscard]] Status finish_reduction() override { return failed(); }
  [[nodiscard]] Status apply(double) override { return failed(); }
  void discard() override {}
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples&) override {
    return tl::unexpected(failed().error());
  }
  [[nodiscard]] std::vector<StateFile> state_files(Step) const override { return {}; }
  [[nodiscard]] Result<Step> load(CheckpointReader&) override { return Step{0}; }
  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    return {std::as_writable_bytes(std::span(state_))};
  }
  void state_replaced() override {}

 private:
  static Status failed() { return fail(ErrorKind::kInternal, "the device has failed before"); }
  Error first_;
  std::array<float, 4> state_{};
};

class PartsOnAFailedDevice final : public Parts {
 public:
  PartsOnAFailedDevice(TrainerConfig config, Error first)
      : Parts(kJob, std::move(config)), first_(std::move(first)) {}
  [[nodiscard]] Result<std::unique_ptr<Engine>> engine(const data::DataShape&, const MakePace&,
                                                       const ComputeDevice&) override {
    return std::make_unique<OnAFailedDevice>(first_);
  }
  [[nodiscard]] Result<std::unique_ptr<PsModel>> served(const data::DataShape&,
                                                        const MakePace&) override {
    return unused();
  }
  [[nodiscard]] Status try_to_make(const data::DataShape&) override { return unused(); }

 private:
  [[nodiscard]] Result<std::unique_ptr<data::RecordReader>> own_reader(
      data::Split, data::DataSummary&) override {
    return unused();
  }
  static tl::unexpected<Error> unused() {
    return fail(ErrorKind::kInternal, "this test does not need it");
  }
  Error first_;
};

// A worker whose first step fails with this.
WorkerProgram failing_with(Error first) {
  WorkerProgram program;
  program.parts = [first = std::move(first)](const std::string&) -> Result<std::unique_ptr<Parts>> {
    ANTDT_TRY(TrainerConfig config, parse_trainer_config(kJob));
    return std::make_unique<PartsOnAFailedDevice>(std::move(config), first);
  };
  return program;
}

// A worker in a child of this process, which is born before the job daemon's threads are: it is
// told the socket once that is there.
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkerProgram& program) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    OwnedFd read_end(ends[0]);
    told_ = OwnedFd(ends[1]);
    pid_ = fork();
    if (pid_ != 0) return;
    told_ = OwnedFd();
    std::string socket;
    std::array<char, 256> some{};
    for (ssize_t got = 0; (got = read(read_end.get(), some.data(), some.size())) > 0;) {
      socket.append(some.data(), static_cast<std::size_t>(got));
    }
    setenv("ANTDT_SOCKET", socket.c_str(), 1);
    setenv("ANTDT_JOB_ID", "job-1", 1);
    setenv("ANTDT_WORKER_ID", "w0", 1);
    setenv("ANTDT_ATTEMPT", "1", 1);
    std::string called = "the-worker";
    std::array<char*, 2> arguments{called.data(), nullptr};
    _exit(run_program(1, arguments.data(), program));
  }
  void begin(const std::string& socket) {
    EXPECT_EQ(write(told_.get(), socket.data(), socket.size()),
              static_cast<ssize_t>(socket.size()));
    told_ = OwnedFd();
  }
  // As waitpid() says it.
  [[nodiscard]] int await_end() const {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    return status;
  }

 private:
  OwnedFd told_;
  pid_t pid_ = -1;
};

TEST(WorkerMain, AFailedDeviceDoesNotKeepTheReasonFromBeingTold) {
  WorkerProcess worker(
      failing_with({ErrorKind::kInternal, "CUDA error: an illegal memory access was encountered"}));
  FakeJob job(1, {{wire::PhaseKind::kTrain, 100}}, {{{'w', 0}, 10, 1}});
  worker.begin(job.environment(0).socket);
  const int status = worker.await_end();
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  job.await_bye({'w', 0});
  const auto byes = job.seen().byes;
  ASSERT_TRUE(byes.contains({'w', 0}));
  EXPECT_THAT(byes.at({'w', 0}).error, HasSubstr("an illegal memory access"));
}

// Otherwise it is started again as often as its budget allows, and its records are suspected.
TEST(WorkerMain, WhatDoesNotFitAMessageEndsItForGood) {
  WorkerProcess worker(failing_with({ErrorKind::kTooLarge, "the rows of one batch are 73 MB"}));
  FakeJob job(1, {{wire::PhaseKind::kTrain, 100}}, {{{'w', 0}, 10, 1}});
  worker.begin(job.environment(0).socket);
  const int status = worker.await_end();
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 93);
}

}  // namespace
}  // namespace antdt::trainer
