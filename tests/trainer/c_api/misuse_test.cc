// Wrong calls of libantdt.so change nothing, and say what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/trainer/c_api/program.h"

namespace antdt {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// A world of one whose first order is still to come.
class Misuse : public testing::Test {
 protected:
  ~Misuse() override { antdt_close(job_); }
  // The first order of that kind, which is now pending.
  antdt_order at(int kind) {
    antdt_order order = next(job_);
    while (order.kind != kind && order.kind != ANTDT_ORDER_LEAVE) {
      program_.obey(order);
      order = next(job_);
    }
    EXPECT_EQ(order.kind, kind);
    return order;
  }
  // After all these errors the job goes on unchanged.
  void goes_on(const antdt_order& in_hand) {
    program_.obey(in_hand);
    EXPECT_EQ(program_.run().code, 0);
    EXPECT_THAT(program_.counts, Each(1.0));
  }
  static void expect_usage(int said, const std::string& words) {
    EXPECT_EQ(said, ANTDT_USAGE);
    EXPECT_THAT(antdt_last_error(), HasSubstr(words));
  }

  antdt_job* job_ = opened(alone(100));
  CountingProgram program_{job_, 100};
};

TEST_F(Misuse, AnOrderIsAnsweredBeforeTheNext) {
  const antdt_order compute = at(ANTDT_ORDER_COMPUTE);
  antdt_order order{};
  order.struct_size = sizeof(order);
  expect_usage(antdt_next(job_, &order, 0),
               "the order 'compute' has not been answered: call antdt_done_compute");
  goes_on(compute);
}

TEST_F(Misuse, AnAnswerMatchesAPendingOrderAndItsKind) {
  expect_usage(antdt_done(job_), "antdt_done: no order is in hand");
  const antdt_order compute = at(ANTDT_ORDER_COMPUTE);
  expect_usage(antdt_done(job_),
               "antdt_done: the order 'compute' is answered by antdt_done_compute");
  antdt_metrics sums{};
  sums.struct_size = sizeof(sums);
  expect_usage(antdt_done_evaluate(job_, &sums), "answered by antdt_done_compute");
  expect_usage(antdt_done_compute(job_, -1, 0), "weight");
  expect_usage(antdt_done_compute(job_, std::nan(""), 0), "weight");
  goes_on(compute);
}

TEST_F(Misuse, BuffersAreReducedAtTheirMomentAndOfTheTypesThatThereAre) {
  std::vector<double> values(10);
  const auto reduce = [&](int dtype) { return antdt_reduce(job_, values.data(), 10, dtype); };
  expect_usage(reduce(ANTDT_F64), "while the order 'reduce' is in hand");
  const antdt_order order = at(ANTDT_ORDER_REDUCE);
  expect_usage(reduce(ANTDT_I64), "neither ANTDT_F32 nor ANTDT_F64");
  expect_usage(antdt_reduce(job_, nullptr, 10, ANTDT_F64), "values is NULL");
  goes_on(order);
}

TEST_F(Misuse, PartsAreRegisteredDuringAnOrderAndGrowOnlyInApply) {
  std::vector<double> other(100), more(200);
  antdt_part part{sizeof(part), ANTDT_F64, "more", more.data(), 1600, nullptr, 0, 0};
  const antdt_order compute = at(ANTDT_ORDER_COMPUTE);
  expect_usage(antdt_register(job_, &part), "'more' is new");
  part.name = "counts";
  expect_usage(antdt_register(job_, &part), "'counts' has 1600 bytes and had 800");
  expect_usage(antdt_unregister(job_, "counts"), "'apply' alone");
  EXPECT_EQ(antdt_done_compute(job_, 1, 0), ANTDT_OK);
  part = {sizeof(part), ANTDT_F64, "counts", other.data(), 800, nullptr, 0, 0};
  expect_usage(antdt_register(job_, &part), "while an order is in hand");
  const antdt_order apply = at(ANTDT_ORDER_APPLY);
  part = {sizeof(part), ANTDT_F64, "more", more.data(), 1600, nullptr, 0, 0};
  EXPECT_EQ(antdt_register(job_, &part), ANTDT_OK) << antdt_last_error();
  EXPECT_EQ(antdt_unregister(job_, "more"), ANTDT_OK);
  expect_usage(antdt_unregister(job_, "more"), "no part is called 'more'");
  static_cast<void>(compute);
  program_.obey(apply);
  EXPECT_EQ(program_.run().code, 0);
}

TEST_F(Misuse, APartHasANameATypeAndAsManyBytesAsItsShapeSays) {
  std::vector<double> values(6);
  const std::uint64_t shape[] = {2, 4};
  const antdt_part good{sizeof(good), ANTDT_F64, "p", values.data(), 48, nullptr, 0, 0};
  antdt_part part = good;
  part.name = "a name";
  expect_usage(antdt_register(job_, &part), "'a name' cannot be the name of a part");
  part = good;
  part.name = nullptr;
  expect_usage(antdt_register(job_, &part), "part.name is NULL");
  part = good;
  part.data = nullptr;
  expect_usage(antdt_register(job_, &part), "part.data is NULL");
  part = good;
  part.dtype = 99;
  expect_usage(antdt_register(job_, &part), "99 of 'p' is no ANTDT_ type");
  part = good;
  part.shape = shape;
  part.dimensions = 2;
  expect_usage(antdt_register(job_, &part), "'p' has 48 bytes, and its shape makes 8 elements");
  part = good;
  part.bytes = 47;
  expect_usage(antdt_register(job_, &part), "47 bytes");
  part = good;
  part.struct_size = 4;
  expect_usage(antdt_register(job_, &part), "struct_size");
  expect_usage(antdt_register(job_, nullptr), "part is NULL");
}

TEST_F(Misuse, NullsAndStructuresOfAnotherSizeAreRefused) {
  expect_usage(antdt_next(nullptr, nullptr, 0), "antdt_next: job is NULL");
  expect_usage(antdt_next(job_, nullptr, 0), "order is NULL");
  antdt_order order{};
  expect_usage(antdt_next(job_, &order, 0), "order.struct_size is 0; set it to the size");
  expect_usage(antdt_describe(job_, nullptr), "about is NULL");
  expect_usage(antdt_done_evaluate(job_, nullptr), "sums is NULL");
  expect_usage(antdt_ahead(job_, 1, 1, nullptr, nullptr, 0, nullptr, 0), "antdt_ahead");
  expect_usage(antdt_open(nullptr, nullptr), "job is NULL");
  EXPECT_EQ(antdt_leave(nullptr), ANTDT_USAGE);
}

TEST_F(Misuse, ScoresAreInRisingBins) {
  antdt_options options = alone(10);
  options.eval_records = 10;
  antdt_close(job_);
  job_ = opened(options);
  CountingProgram program(job_, 10);
  antdt_order order = next(job_);
  while (order.kind != ANTDT_ORDER_EVALUATE) {
    program.obey(order);
    order = next(job_);
  }
  const std::uint32_t falling[] = {5, 4}, beyond[] = {5, ANTDT_SCORE_BINS}, rising[] = {5, 6};
  const std::uint64_t counts[] = {1, 2};
  antdt_metrics sums{};
  sums.struct_size = sizeof(sums);
  sums.bins = 2;
  sums.records = 3;
  sums.bin = falling;
  sums.negatives = sums.positives = counts;
  expect_usage(antdt_done_evaluate(job_, &sums), "not rising");
  sums.bin = beyond;
  expect_usage(antdt_done_evaluate(job_, &sums), "beyond ANTDT_SCORE_BINS");
  sums.bin = nullptr;
  expect_usage(antdt_done_evaluate(job_, &sums), "an array of bins is NULL");
  sums.bin = rising;
  sums.named_count = 2;
  expect_usage(antdt_done_evaluate(job_, &sums), "sums.named is NULL");
  antdt_sum named[] = {{"tokens", 7}, {nullptr, 1}};
  sums.named = named;
  expect_usage(antdt_done_evaluate(job_, &sums), "a named sum's name is NULL");
  named[1].name = "tokens";
  expect_usage(antdt_done_evaluate(job_, &sums), "the sum 'tokens' is there twice");
  named[1].name = "hits of five";
  expect_usage(antdt_done_evaluate(job_, &sums), "its name is not 1 to 64 letters");
  named[1].name = "hits";
  EXPECT_EQ(antdt_done_evaluate(job_, &sums), ANTDT_OK);
}

TEST_F(Misuse, OnlyARecordOfTheCurrentOrderIsSkipped) {
  expect_usage(antdt_skip(job_, 3, "torn"), "record 3 is not one of an order in hand");
  const antdt_order compute = at(ANTDT_ORDER_COMPUTE);
  EXPECT_EQ(antdt_skip(job_, compute.records[0], "torn"), ANTDT_OK);
  expect_usage(antdt_skip(job_, 100, "torn"), "record 100 is not one");
  goes_on(compute);
}

TEST_F(Misuse, AChildThatIsForkedAfterwardsIsToldToOpenForItself) {
  const antdt_order compute = at(ANTDT_ORDER_COMPUTE);
  const pid_t child = fork();
  if (child == 0) {
    antdt_order order{};
    order.struct_size = sizeof(order);
    const bool refused =
        antdt_done(job_) == ANTDT_FORKED && antdt_next(job_, &order, 60'000) == ANTDT_FORKED &&
        std::string(antdt_last_error()).find("Open in the child instead") != std::string::npos;
    antdt_close(job_);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  goes_on(compute);
}

TEST_F(Misuse, NoWaitOutlastsItsTimeout) {
  at(ANTDT_ORDER_COMPUTE);
  std::uint64_t from = 1'000'000, record = 0, count = 0;
  EXPECT_EQ(antdt_ahead(job_, 1, 1, &from, &record, 1, &count, 1), ANTDT_TIMEOUT);
  EXPECT_EQ(antdt_wait(job_, 0), ANTDT_OK) << "nothing is being reduced";
}

// Errors of antdt_open, with and without the environment that the agent sets.
class Opening : public testing::Test {
 protected:
  ~Opening() override {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    set_[name] = value;
    setenv(name.c_str(), value.c_str(), 1);
  }
  static void expect_refused(const antdt_options* options, int code, const std::string& words) {
    antdt_job* job = nullptr;
    EXPECT_EQ(antdt_open(options, &job), code);
    EXPECT_EQ(job, nullptr);
    EXPECT_THAT(antdt_last_error(), HasSubstr(words));
  }
  std::map<std::string, std::string> set_;
};

TEST_F(Opening, AWorldOfOneNeedsToKnowHowManyRecordsThereAre) {
  expect_refused(nullptr, ANTDT_CONFIG, "options.records is 0");
  antdt_options options = alone(10);
  options.flags = ANTDT_ONLY_IN_A_JOB;
  expect_refused(&options, ANTDT_CONFIG, "there is no job");
}

TEST_F(Opening, OptionsAreOfThisVersion) {
  antdt_options options = alone(10);
  options.abi_version = 2;
  expect_refused(&options, ANTDT_USAGE, "built for version 2 of the interface");
  options = alone(10);
  options.struct_size = 8;
  expect_refused(&options, ANTDT_USAGE, "ANTDT_OPTIONS_INIT");
  options = alone(10);
  options.flags = 64;
  expect_refused(&options, ANTDT_USAGE, "options.flags is 0x40");
}

TEST_F(Opening, TheEnvironmentIsWhatAnAgentSets) {
  set("ANTDT_SOCKET", "/nowhere/workers.sock");
  expect_refused(nullptr, ANTDT_CONFIG, "ANTDT_JOB_ID is not set");
  set("ANTDT_JOB_ID", "j");
  set("ANTDT_WORKER_ID", "w0");
  set("ANTDT_ATTEMPT", "1");
  set("ANTDT_PROTOCOL", "torchrun");
  expect_refused(nullptr, ANTDT_CONFIG, "write protocol = \"antdt\"");
  set("ANTDT_PROTOCOL", "antdt");
  antdt_options options = ANTDT_OPTIONS_INIT;
  options.timeout_ms = 50;
  expect_refused(&options, ANTDT_UNREACHABLE, "no agent answered");
}

}  // namespace
}  // namespace antdt
