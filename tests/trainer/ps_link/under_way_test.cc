// Tests of several requests of a worker that are under way at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/os/fs.h"
#include "tests/trainer/ps_link/testing.h"

namespace antdt::ps {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class PsUnderWayTest : public PsLinkTest {
 protected:
  // Starts two servers for the first `workers` workers, and worker 0 with row 7 pulled.
  void begin(std::uint32_t workers) {
    group.workers.resize(workers);
    for (std::uint32_t s = 0; s < 2; ++s)
      servers_.push_back(std::make_unique<ServerThread>(group, s));
    auto made = link(0);
    ASSERT_TRUE(made) << made.error().message;
    own_ = std::move(*made);
    auto pulled = own_->pull({{0, {7}}}, 0);
    ASSERT_TRUE(pulled) << pulled.error().message;
    begun_ = std::move(*pulled);
  }
  // Sends the `n`-th push, of one row of two floats and of place n - 1.
  static Status say_push(WorkerLink& link, const WorkerLink::Pulled& pulled, std::uint64_t n,
                         std::uint64_t step) {
    return link.say_push({{0, {{7}, {1, 1}}}}, pulled, {n, step, 1, n - 1, n, 1});
  }
  static Result<wire::PsDecided> decision(WorkerLink& link) {
    while (true) {
      if (const auto decided = link.take_decision()) return *decided;
      ANTDT_RETURN_IF_ERROR(link.wait());
    }
  }

  std::vector<std::unique_ptr<ServerThread>> servers_;
  std::unique_ptr<WorkerLink> own_;
  WorkerLink::Pulled begun_;
};

class PsUnderWayAtABarrier : public PsUnderWayTest {};

// The pull of the next step is sent before this step's push: the servers hold it back.
TEST_P(PsUnderWayAtABarrier, APullThatWaitsForAStepDoesNotStandInThePushesWay) {
  ASSERT_NO_FATAL_FAILURE(begin(1));
  const auto next = own_->say_pull({{0, {7}}}, 1);
  ASSERT_TRUE(next);
  ASSERT_TRUE(own_->advance());
  EXPECT_FALSE(own_->is_here(*next));
  ASSERT_TRUE(say_push(*own_, begun_, 1, 0));
  const auto pulled = own_->take(*next);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_THAT(pulled->values.at(0), testing::ElementsAre(1, 1)) << "after the step";
  const auto decided = decision(*own_);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->status, wire::PsFate::kApplied);
}

TEST_P(PsUnderWayAtABarrier, AnAnswerToAForgottenRequestIsIgnored) {
  ASSERT_NO_FATAL_FAILURE(begin(1));
  const auto late = own_->say_pull({{0, {7}}}, 1);
  ASSERT_TRUE(late);
  own_->forget(*late);
  ASSERT_TRUE(own_->push({{0, {{7}, {1, 1}}}}, begun_, {1, 0, 1, 0, 1, 1}));
  const auto pulled = own_->pull({{0, {7, 8}}}, 1);
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_THAT(pulled->values.at(0), testing::ElementsAre(1, 1, 0, 0));
}

TEST_P(PsUnderWayAtABarrier, AnAbortEndsAllThatIsUnderWay) {
  ASSERT_NO_FATAL_FAILURE(begin(2));
  const auto next = own_->say_pull({{0, {7}}}, 1);
  ASSERT_TRUE(next && say_push(*own_, begun_, 1, 0));
  own_->abort();
  for (const Status& status : {own_->advance(), own_->wait()}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kAborted);
  }
  const auto taken = own_->take(*next);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::kAborted);
}

INSTANTIATE_TEST_SUITE_P(Barrier, PsUnderWayAtABarrier, testing::Values(Consistency::kBarrier));

class PsUnderWayWithoutOne : public PsUnderWayTest {};

// A home accepts a commit only after the one before it (closer.h): if they were sent at once, they
// would be refused.
TEST_P(PsUnderWayWithoutOne, PushesAreDecidedInTheirOrderAndEachIsInTheRowsOnce) {
  ASSERT_NO_FATAL_FAILURE(begin(kWorkers));
  constexpr std::uint64_t kPushes = 5;
  for (std::uint64_t n = 1; n <= kPushes; ++n) ASSERT_TRUE(say_push(*own_, begun_, n, 0));
  for (std::uint64_t n = 1; n <= kPushes; ++n) {
    const auto decided = decision(*own_);
    ASSERT_TRUE(decided) << decided.error().message;
    EXPECT_EQ(decided->number, n);
    EXPECT_EQ(decided->status, wire::PsFate::kApplied);
  }
  EXPECT_FALSE(own_->take_decision());
  const std::uint64_t decided = own_->settle().value_or(0);
  EXPECT_EQ(decided, kPushes);
  const auto after = own_->pull({{0, {7}}}, 0);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_THAT(after->values.at(0), testing::ElementsAre(kPushes, kPushes));
}

INSTANTIATE_TEST_SUITE_P(Unbounded, PsUnderWayWithoutOne, testing::Values(Consistency::kUnbounded));

}  // namespace
}  // namespace antdt::ps
