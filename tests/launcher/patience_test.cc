#include "launcher/commands/show/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>

namespace antdt::cli {
namespace {

using std::chrono::milliseconds;
using testing::Each;

// A path whose looks return only when the test ends.
class PatienceTest : public testing::Test {
 protected:
  ~PatienceTest() override { answers_.set_value(); }
  // Owns all that it uses, for threads that outlive the test.
  [[nodiscard]] auto look() const {
    return [answered = answered_](const std::string& path) {
      if (path == "standing") answered.wait();
      return path + " was seen";
    };
  }

  std::promise<void> answers_;
  std::shared_future<void> answered_ = answers_.get_future();
};

TEST_F(PatienceTest, APathThatDoesNotAnswerCostsTheOthersNothingButTheWait) {
  const auto found = each_within(milliseconds(200), {"a", "standing", "b"}, look());
  EXPECT_THAT(found, testing::ElementsAre("a was seen", std::nullopt, "b was seen"));
}

TEST_F(PatienceTest, MorePathsThanThreadsAreAllSeen) {
  const std::vector<std::string> many(500, "a");
  const auto found = each_within(std::chrono::minutes(1), many, look());
  EXPECT_EQ(found.size(), many.size());
  EXPECT_THAT(found, Each(std::optional<std::string>("a was seen")));
}

TEST_F(PatienceTest, ThereMayBeNoPaths) {
  EXPECT_TRUE(each_within(milliseconds(200), std::vector<std::string>{}, look()).empty());
}

TEST_F(PatienceTest, WhoIsLateIsLeftBehind) {
  const auto late = [how = look()] { return how("standing"); };
  const auto soon = [how = look()] { return how("a"); };
  EXPECT_EQ(within(milliseconds(20), late), std::nullopt);
  EXPECT_EQ(within(std::chrono::minutes(1), soon), "a was seen");
}

TEST_F(PatienceTest, WhileALookAtAPathIsPendingItIsNotLookedAtAgain) {
  const auto pending = std::make_shared<PendingLooks>();
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto look_at = [&](const std::string& path, milliseconds patience) {
    return within(patience, path, pending, [how = look(), begun, path] {
      ++*begun;
      return how(path);
    });
  };
  EXPECT_EQ(look_at("standing", milliseconds(20)), std::nullopt);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(look_at("standing", std::chrono::minutes(1)), std::nullopt) << "at once";
  }
  EXPECT_LE(*begun, 1);
  EXPECT_EQ(look_at("a", std::chrono::minutes(1)), "a was seen");
  EXPECT_EQ(look_at("a", std::chrono::minutes(1)), "a was seen") << "the first look has returned";
}

TEST(PendingLooks, OnlyOneLookAtAPathIsUnderWay) {
  PendingLooks looks;
  EXPECT_TRUE(looks.begin("a"));
  EXPECT_FALSE(looks.begin("a"));
  EXPECT_TRUE(looks.begin("b"));
  looks.done("a");
  EXPECT_TRUE(looks.begin("a"));
}

TEST(Patience, AThreadThatIsLeftBehindTakesNoSignalOfThoseThatWaitForIt) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  auto stands = std::make_shared<std::promise<void>>();
  std::shared_future<void> gone = stands->get_future().share();
  EXPECT_FALSE(within(std::chrono::milliseconds(1), [gone] {
    gone.wait();
    return true;
  }));
  const auto none = each_within(std::chrono::milliseconds(1), {"a"}, [gone](const std::string&) {
    gone.wait();
    return true;
  });
  EXPECT_FALSE(none.at(0));
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  kill(getpid(), SIGUSR1);  // whose default is the end of the process
  int taken = 0;
  EXPECT_EQ(sigwait(&signals, &taken), 0);
  EXPECT_EQ(taken, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  stands->set_value();
}

}  // namespace
}  // namespace antdt::cli
