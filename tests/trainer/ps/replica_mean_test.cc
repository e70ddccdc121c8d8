// The mean of workers' replicas, compared with a straightforward computation of it.
#include "trainer/ps/rows/replica_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace antdt::ps::replica_mean_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

TEST(ReplicaMean, IsThatOfTheNewestReplicaOfEachWorker) {
  ReplicaMean mean({3, 9}, 2);
  mean.exchange(w(0), {1, 2, 3, 4});
  EXPECT_THAT(mean.mean(), ElementsAre(1, 2, 3, 4));
  mean.exchange(w(1), {3, 2, 1, 0});
  EXPECT_THAT(mean.mean(), ElementsAre(2, 2, 2, 2));
  mean.exchange(w(0), {5, 2, 3, 4});
  EXPECT_THAT(mean.mean(), ElementsAre(4, 2, 2, 2));
  EXPECT_EQ(mean.exchanges(), 3U);
}

TEST(ReplicaMean, AWorkerThatLeavesTakesItsReplicaAlongAndItsNextAttemptIsAnotherWorker) {
  ReplicaMean mean({1}, 1);
  mean.exchange(w(0), {1});
  mean.exchange(w(1), {5});
  mean.leave(w(0));
  EXPECT_THAT(mean.mean(), ElementsAre(5));
  mean.exchange(w(0, 2), {7});
  EXPECT_THAT(mean.mean(), ElementsAre(6));
  mean.leave(w(0));  // again: nothing is there
  EXPECT_THAT(mean.mean(), ElementsAre(6));
  mean.leave(w(0, 2));
  mean.leave(w(1));
  EXPECT_TRUE(mean.replicas().empty());
  mean.exchange(w(2), {2});
  EXPECT_THAT(mean.mean(), ElementsAre(2)) << "of what left nothing remains";
}

TEST(ReplicaMean, AReplicaThatIsOutdatedLeavesItUntilItsWorkerExchangesAgain) {
  ReplicaMean mean({1}, 1);
  mean.exchange(w(0), {100});
  for (std::uint64_t i = 0; i < 2 * ReplicaMean::kRounds; ++i) mean.exchange(w(1), {2});
  EXPECT_THAT(mean.mean(), ElementsAre(51)) << "not yet";
  mean.exchange(w(1), {2});
  EXPECT_THAT(mean.mean(), ElementsAre(2));
  mean.exchange(w(0), {4});
  EXPECT_THAT(mean.mean(), ElementsAre(3));
}

TEST(ReplicaMean, WorkersThatExchangeInTurnsAreNeverOutdated) {
  ReplicaMean mean({1}, 1);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    mean.exchange(w(i % 7), {1});
    EXPECT_EQ(mean.replicas().size(), std::min(i + 1, 7U));
  }
}

// A replica that is far from the others loses digits in the sum. When it leaves they are there.
TEST(ReplicaMean, WhatLeavesTakesItsRoundingAlong) {
  ReplicaMean mean({1}, 1);
  mean.exchange(w(0), {0.1F});
  mean.exchange(w(1), {1e30F});
  mean.leave(w(1));
  EXPECT_THAT(mean.mean(), ElementsAre(0.1F));
}

// The newest replicas of present workers, added up each time, in long double.
class Reference {
 public:
  void exchange(Member worker, const std::vector<float>& values) {
    replicas_[worker] = values;
    sent_[worker] = ++exchanges_;
    const std::uint64_t most = ReplicaMean::kRounds * replicas_.size();
    std::erase_if(replicas_, [&](const auto& r) { return exchanges_ - sent_[r.first] > most; });
  }
  void leave(Member worker) { replicas_.erase(worker); }
  [[nodiscard]] const std::map<Member, std::vector<float>>& replicas() const { return replicas_; }
  [[nodiscard]] std::vector<float> mean() const {
    std::vector<float> mean;
    for (std::size_t i = 0; i < replicas_.begin()->second.size(); ++i) {
      long double sum = 0;
      for (const auto& [worker, values] : replicas_) sum += values[i];
      mean.push_back(static_cast<float>(sum / static_cast<long double>(replicas_.size())));
    }
    return mean;
  }

 private:
  std::map<Member, std::vector<float>> replicas_;
  std::map<Member, std::uint64_t> sent_;
  std::uint64_t exchanges_ = 0;
};

TEST(ReplicaMean, AgreesWithAPlainSumOverManyExchangesOfWorkersThatComeAndGo) {
  constexpr std::size_t kFloats = 6;
  std::mt19937 random(7);
  std::normal_distribution<float> step(0, 0.01F), first(0, 1);
  ReplicaMean mean({1, 2, 3}, 2);
  Reference reference;
  std::map<Member, std::vector<float>> replicas;
  std::uint32_t attempts = 1;
  for (int i = 0; i < 50'000; ++i) {
    // The last of them exchanges seldom, so that it is outdated at times.
    const Member worker = w(random() % 40 == 0 ? 5 : random() % 5, attempts);
    auto& values = replicas.try_emplace(worker, kFloats).first->second;
    if (!reference.replicas().contains(worker))
      std::ranges::generate(values, [&] { return first(random); });
    for (float& value : values) value += step(random);
    mean.exchange(worker, values);
    reference.exchange(worker, values);
    if (random() % 1000 == 0) {
      mean.leave(worker);
      reference.leave(worker);
      if (worker.worker.index == 0) ++attempts;  // all are replaced bit by bit
    }
    if (reference.replicas().empty() || random() % 50 != 0) continue;
    ASSERT_EQ(mean.replicas().size(), reference.replicas().size());
    const std::vector<float> expected = reference.mean(), found = mean.mean();
    for (std::size_t k = 0; k < kFloats; ++k) {
      ASSERT_NEAR(found[k], expected[k], 1e-7 * (1 + std::abs(expected[k]))) << "after " << i;
    }
  }
}

// ------------------------------------------------------------------------- image

TEST(ReplicaMean, ItsImageGoesOnToTheLastBit) {
  std::mt19937 random(3);
  std::normal_distribution<float> some(0, 1);
  ReplicaMean mean({1, 4}, 1);
  for (int i = 0; i < 500; ++i) mean.exchange(w(i % 3), {some(random), some(random)});
  auto copy = ReplicaMean::restored(mean.image(), 1);
  ASSERT_TRUE(copy) << copy.error().message;
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> values{some(random), some(random)};
    mean.exchange(w(i % 4), values);
    copy->exchange(w(i % 4), values);
    ASSERT_EQ(mean.mean(), copy->mean());
  }
  EXPECT_EQ(mean.exchanges(), copy->exchanges());
}

TEST(ReplicaMean, ADamagedImageIsRefused) {
  ReplicaMean mean({1, 4}, 1);
  mean.exchange(w(0), {1, 2});
  const auto error = [](const ReplicaMeanImage& image) {
    const auto restored = ReplicaMean::restored(image, 1);
    return restored ? "none" : restored.error().message;
  };
  ReplicaMeanImage image = mean.image();
  EXPECT_EQ(error(image), "none");
  image.sum.pop_back();
  EXPECT_THAT(error(image), HasSubstr("doubles are expected"));
  image = mean.image();
  image.replicas[0].values += "more";
  EXPECT_THAT(error(image), HasSubstr("floats are expected"));
  image = mean.image();
  image.replicas[0].exchange = 2;
  EXPECT_THAT(error(image), HasSubstr("a replica of exchange 2 of 1"));
  image = mean.image();
  std::swap(image.keys[0], image.keys[8]);
  EXPECT_THAT(error(image), HasSubstr("do not rise"));
}

}  // namespace
}  // namespace antdt::ps::replica_mean_test
