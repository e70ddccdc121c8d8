// A program on libantdt.so, in a world of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <numeric>
#include <thread>
#include <utility>

#include "tests/trainer/c_api/program.h"

namespace antdt {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string kinds(const std::vector<antdt_order>& log) {
  std::string text;
  for (const antdt_order& order : log) text += std::string(antdt_order_name(order.kind)) + " ";
  return text;
}

TEST(WorldOfOne, EachRecordEntersTheStateOnceAnEpochAndTheProgramLeavesWithZero) {
  antdt_options options = alone(1000);
  options.epochs = 3;
  antdt_job* const job = opened(options);
  CountingProgram program(job, 1000);
  const antdt_order leave = program.run();
  EXPECT_EQ(leave.code, 0);
  EXPECT_STREQ(leave.text, "");
  EXPECT_THAT(program.counts, Each(3.0));
  antdt_order after{};
  after.struct_size = sizeof(after);
  EXPECT_EQ(antdt_next(job, &after, 0), ANTDT_ENDED);
  EXPECT_THAT(antdt_last_error(), HasSubstr("leave"));
  antdt_close(job);
}

TEST(WorldOfOne, AStepIsItsMicroBatchesThenReduceThenApplyWithTheSummedWeight) {
  antdt_options options = alone(8);
  options.micro_batch = 4;
  options.accumulation = 2;
  antdt_job* const job = opened(options);
  CountingProgram program(job, 8);
  program.run();
  EXPECT_EQ(kinds(program.log), "phase-begin compute compute reduce apply phase-end leave ");
  EXPECT_EQ(program.log[0].phase_records, 8U);
  EXPECT_EQ(program.log[1].last, 0);
  EXPECT_EQ(program.log[2].last, 1);
  EXPECT_EQ(program.log[1].position, 0U);
  EXPECT_EQ(program.log[2].position, 4U);
  EXPECT_EQ(program.log[4].weight, 8);
  EXPECT_EQ(program.log[4].rate, 1);
  EXPECT_EQ(program.log[5].complete, 1);
  EXPECT_EQ(program.log[0].size, 1U);
  antdt_close(job);
}

TEST(WorldOfOne, AnEvaluationFollowsEachEpochAndComesInOrder) {
  antdt_options options = alone(64);
  options.epochs = 2;
  options.eval_records = 100;
  antdt_job* const job = opened(options);
  CountingProgram program(job, 64);
  program.run();
  const std::vector<std::uint64_t> once = numbers(100);
  std::vector<std::uint64_t> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(program.evaluated, twice);
  std::vector<std::pair<std::uint64_t, int>> phases;
  for (const antdt_order& order : program.log) {
    if (order.kind == ANTDT_ORDER_PHASE_BEGIN) phases.emplace_back(order.epoch, order.evaluation);
  }
  const std::vector<std::pair<std::uint64_t, int>> expected = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  EXPECT_EQ(phases, expected);
  antdt_close(job);
}

TEST(WorldOfOne, TheOrderOfTheRecordsFollowsFromTheSeedAndTheEpoch) {
  const auto order_of = [](std::uint64_t seed, std::uint32_t flags) {
    antdt_options options = alone(500);
    options.seed = seed;
    options.epochs = 2;
    options.flags = flags;
    antdt_job* const job = opened(options);
    CountingProgram program(job, 500);
    program.run();
    antdt_close(job);
    return program.trained;
  };
  const auto seven = order_of(7, 0);
  EXPECT_EQ(seven, order_of(7, 0));
  EXPECT_NE(seven, order_of(8, 0));
  EXPECT_FALSE(std::equal(seven.begin(), seven.begin() + 500, seven.begin() + 500));
  const auto plain = order_of(7, ANTDT_NO_SHUFFLE);
  EXPECT_EQ(std::vector(plain.begin(), plain.begin() + 500), numbers(500));
}

TEST(WorldOfOne, TheAnnouncedStepIsTheOneThatComes) {
  antdt_options options = alone(400);
  options.read_ahead = 100;
  antdt_job* const job = opened(options);
  CountingProgram program(job, 400);
  std::vector<std::uint64_t> told;
  std::thread loader;
  std::promise<void> asked;  // the loader has the answer to its first question
  const std::future<void> answer = asked.get_future();
  program.run([&](const antdt_order& order) {
    // Otherwise the program may be over before the loader has begun.
    if (order.kind == ANTDT_ORDER_COMPUTE) answer.wait_for(std::chrono::milliseconds(kPatience));
    if (order.kind != ANTDT_ORDER_PHASE_BEGIN) return false;
    loader = std::thread([&told, &asked, job, order] {
      bool first = true;
      std::vector<std::uint64_t> some(30);
      std::uint64_t from = 0, count = 0;
      while (told.size() < 400) {
        from = told.size();
        const int said = antdt_ahead(job, order.generation, order.phase, &from, some.data(),
                                     some.size(), &count, kPatience);
        if (std::exchange(first, false)) asked.set_value();
        if (said != ANTDT_OK) return;
        told.resize(from);  // passed over, because the program was quicker
        told.insert(told.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
      }
    });
    return false;
  });
  loader.join();
  ASSERT_FALSE(told.empty());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i] == 0) continue;  // passed over, or record 0
    EXPECT_EQ(told[i], program.trained[i]) << i;
    ++compared;
  }
  EXPECT_GT(compared, 0U);
  std::uint64_t from = 0, record = 0, count = 0;
  EXPECT_EQ(antdt_ahead(job, 1, 1, &from, &record, 1, &count, 0), ANTDT_INTERRUPTED);
  antdt_close(job);
}

TEST(WorldOfOne, BuffersAreReducedWhileTheLastMicroBatchGoesOn) {
  antdt_job* const job = opened(alone(32));
  CountingProgram program(job, 32);
  std::vector<float> early(1000, 2.5F);
  program.run([&](const antdt_order& order) {
    if (order.kind == ANTDT_ORDER_COMPUTE) {
      EXPECT_EQ(order.last, 1);
      EXPECT_EQ(antdt_reduce(job, early.data(), early.size(), ANTDT_F32), ANTDT_OK);
      EXPECT_EQ(antdt_wait(job, kPatience), ANTDT_OK);
      EXPECT_THAT(early, Each(2.5F)) << "the sum over one member";
    }
    return false;
  });
  EXPECT_THAT(program.counts, Each(1.0));
  antdt_close(job);
}

TEST(WorldOfOne, AStateOnRequestIsWantedBeforeItIsRead) {
  antdt_options options = alone(32);
  options.flags = ANTDT_STATE_ON_REQUEST;
  antdt_job* const job = opened(options);
  CountingProgram program(job, 32);
  program.run();
  EXPECT_THAT(kinds(program.log), HasSubstr("state-wanted"));
  EXPECT_THAT(program.counts, Each(1.0));
  antdt_close(job);
}

TEST(WorldOfOne, AFailureOfTheProgramEndsItsPartWithItsMessage) {
  antdt_job* const job = opened(alone(1000));
  CountingProgram program(job, 1000);
  const antdt_order leave = program.run([&](const antdt_order& order) {
    if (order.kind != ANTDT_ORDER_COMPUTE) return false;
    EXPECT_EQ(antdt_failed(job, "record 17 has no label"), ANTDT_OK);
    return true;
  });
  EXPECT_EQ(leave.code, 1);
  EXPECT_THAT(leave.text, HasSubstr("record 17 has no label"));
  EXPECT_THAT(leave.text, HasSubstr("compute"));
  antdt_close(job);
}

TEST(WorldOfOne, EveryOrderMayBeAnsweredWithAFailure) {
  for (const int kind : {ANTDT_ORDER_PHASE_BEGIN, ANTDT_ORDER_REDUCE, ANTDT_ORDER_APPLY,
                         ANTDT_ORDER_EVALUATE, ANTDT_ORDER_PHASE_END}) {
    antdt_options options = alone(64);
    options.eval_records = 10;
    antdt_job* const job = opened(options);
    CountingProgram program(job, 64);
    const antdt_order leave = program.run([&](const antdt_order& order) {
      if (order.kind != kind) return false;
      EXPECT_EQ(antdt_failed(job, "no"), ANTDT_OK);
      return true;
    });
    EXPECT_EQ(leave.code, 1) << antdt_order_name(kind);
    antdt_close(job);
  }
}

TEST(WorldOfOne, AMemberThatAsksToLeaveLeavesAfterTheStepAndCanBeResumed) {
  antdt_job* const job = opened(alone(100'000));
  CountingProgram program(job, 100'000);
  const antdt_order leave = program.run([&](const antdt_order& order) {
    if (order.kind == ANTDT_ORDER_APPLY) {
      EXPECT_EQ(antdt_leave(job), ANTDT_OK);
    }
    return false;
  });
  EXPECT_EQ(leave.code, 75);
  EXPECT_LT(std::accumulate(program.counts.begin(), program.counts.end(), 0.0), 1000);
  antdt_close(job);
}

// Of an epoch of 100 records, 40 are in the state after the step in which it says so.
TEST(WorldOfOne, AProgramEndsTheTrainingWithinAnEpochWhichIsEvaluated) {
  antdt_options options = alone(100);
  options.eval_records = 30;
  options.micro_batch = 20;
  options.epochs = 5;
  antdt_job* job = opened(options);
  CountingProgram program(job, 100);
  const antdt_order leave = program.run([&](const antdt_order& order) {
    if (order.kind != ANTDT_ORDER_APPLY || order.epoch != 1 || program.trained.size() < 140) {
      return false;
    }
    std::thread([&] { EXPECT_EQ(antdt_end_training(job, "enough"), ANTDT_OK); }).join();
    EXPECT_EQ(antdt_end_training(job, "said again"), ANTDT_OK);
    return false;
  });
  EXPECT_EQ(leave.code, 0);
  EXPECT_EQ(program.trained.size(), 140U);
  EXPECT_EQ(std::accumulate(program.counts.begin(), program.counts.end(), 0.0), 140);
  EXPECT_EQ(program.evaluated.size(), 60U) << "after the first epoch and after the second";
  antdt_close(job);
}

TEST(WorldOfOne, AProgramEndsTheTrainingAsAnEpochBegins) {
  antdt_options options = alone(100);
  options.eval_records = 30;
  options.epochs = 5;
  antdt_job* job = opened(options);
  CountingProgram program(job, 100);
  EXPECT_EQ(antdt_end_training(job, "too early"), ANTDT_USAGE);
  const antdt_order leave = program.run([&](const antdt_order& order) {
    const bool begins = order.kind == ANTDT_ORDER_PHASE_BEGIN && order.evaluation == 0;
    if (begins && order.epoch == 2) {
      EXPECT_EQ(antdt_end_training(job, "enough"), ANTDT_OK);
    }
    return false;
  });
  EXPECT_EQ(leave.code, 0);
  EXPECT_EQ(program.trained.size(), 200U);
  EXPECT_EQ(program.evaluated.size(), 60U);
  antdt_close(job);
}

TEST(WorldOfOne, TheJobMayBeClosedWhateverItDoes) {
  antdt_close(nullptr);
  antdt_close(opened(alone(10)));  // before it began
  for (const int kind :
       {ANTDT_ORDER_PHASE_BEGIN, ANTDT_ORDER_COMPUTE, ANTDT_ORDER_REDUCE, ANTDT_ORDER_APPLY}) {
    antdt_job* const job = opened(alone(1000));
    CountingProgram program(job, 1000);
    antdt_order order = next(job);
    while (order.kind != kind) {
      program.obey(order);
      order = next(job);
    }
    antdt_close(job);
  }
}

TEST(WorldOfOne, OrdersMayBeTakenAndAnsweredByDifferentThreads) {
  antdt_job* const job = opened(alone(640));
  CountingProgram program(job, 640);
  bool over = false;
  while (!over) {
    std::thread([&] {
      const antdt_order order = next(job);
      over = order.kind == ANTDT_ORDER_LEAVE;
      if (!over) std::thread([&] { program.obey(order); }).join();
    }).join();
  }
  EXPECT_THAT(program.counts, Each(1.0));
  antdt_close(job);
}

TEST(WorldOfOne, ItSaysWhoItIs) {
  antdt_job* const job = opened(alone(1));
  antdt_about about{};
  about.struct_size = sizeof(about);
  ASSERT_EQ(antdt_describe(job, &about), ANTDT_OK);
  EXPECT_EQ(about.in_job, 0U);
  EXPECT_STREQ(about.worker, "w0");
  EXPECT_STREQ(about.run_dir, "");
  EXPECT_EQ(about.attempt, 1U);
  antdt_close(job);
  EXPECT_EQ(antdt_abi_version(), static_cast<std::uint32_t>(ANTDT_ABI_VERSION));
  EXPECT_STRNE(antdt_version(), "");
}

}  // namespace
}  // namespace antdt
