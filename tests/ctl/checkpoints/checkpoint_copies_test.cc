#include "ctl/checkpoints/checkpoint_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/overloaded.h"

namespace antdt::ctl::copies {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kFirst = "s0000000010-l1-g1-w0.1";
constexpr const char* kSecond = "s0000000020-l1-g1-w0.1";

std::string text_of(const Effect& effect) {
  return std::visit(
      Overloaded{
          [](const ProbeHost& e) { return fmt::format("{}: probe {}", e.task, e.host); },
          [](const FetchPart& e) {
            return fmt::format("{}: fetch {} from {}", e.task, e.unfinished, e.part.host);
          },
          [](const PushCopy& e) {
            return fmt::format("{}: push {} to {} by {}", e.task, e.name, e.host, e.unfinished);
          },
          [](const CleanHost& e) {
            return fmt::format("{}: clean {}, {}up to {} of g{}", e.task, e.host,
                               e.keep ? "" : "only unfinished, ", e.up_to.number,
                               e.up_to.generation);
          },
          [](const FetchCopy& e) {
            return fmt::format("{}: fetch back {} from {}", e.task, e.name, e.host);
          },
          [](const CancelTask& e) { return fmt::format("cancel {}", e.task); },
          [](const TellGathered& e) { return fmt::format("gathered {} [{}]", e.number, e.error); },
          [](const TellReached& e) { return fmt::format("reached {} [{}]", e.number, e.error); },
          [](const TellFound& e) {
            return fmt::format("found{}{}{}", e.fetched ? ", fetched" : "",
                               e.unfetched.empty() ? "" : ", " + e.unfetched.front(),
                               e.silent.empty() ? "" : ", " + e.silent.front());
          },
          [](const PublishCopyNote& e) { return fmt::format("note {}: {}", e.kind, e.text); }},
      effect);
}

class CheckpointCopiesTest : public ::testing::Test {
 protected:
  std::vector<std::string> step(const Input& input) {
    Effects effects;
    copies.step(input, now, effects);
    EXPECT_EQ(copies.broken_invariant(), "");
    std::vector<std::string> texts;
    for (const Effect& effect : effects) texts.push_back(text_of(effect));
    return texts;
  }
  // Answers its probe: another directory, with these checkpoints.
  void apart(const std::string& host, const std::vector<std::string>& whole = {}) {
    EXPECT_THAT(step(HostAppeared{host}), ElementsAre(fmt::format("{}: probe {}", ++task, host)));
    EXPECT_THAT(step(HostProbed{task, false, whole}), IsEmpty());
  }
  void shared(const std::string& host, const std::vector<std::string>& whole = {}) {
    step(HostAppeared{host});
    EXPECT_THAT(step(HostProbed{++task, true, whole}), IsEmpty());
  }
  std::vector<std::string> written(std::uint64_t number, const std::string& unfinished,
                                   const std::vector<std::string>& hosts) {
    PartsWritten e{number, unfinished, {}};
    for (const std::string& host : hosts) e.parts.push_back({host, {{host + ".f32", 4, "00"}}});
    return step(e);
  }
  CheckpointCopies copies{2};
  MonoTime now{std::chrono::seconds(100)};
  TaskId task = 0;
};

TEST_F(CheckpointCopiesTest, FilesOfASeparateHostAreFetchedAndThatHostKeepsItsCopy) {
  apart("b");
  apart("c");
  EXPECT_THAT(written(1, ".tmp-10-g1-w0.1", {"c"}), ElementsAre("3: fetch .tmp-10-g1-w0.1 from c"));
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("gathered 1 []"));
  // The writer's host already has the files, and gets the rest and the name.
  EXPECT_THAT(step(CheckpointsListed{{kFirst}, kFirst, ".tmp-10-g1-w0.1"}),
              ElementsAre(fmt::format("4: push {} to c by .tmp-10-g1-w0.1", kFirst),
                          "5: clean b, up to 10 of g1"));
  EXPECT_FALSE(copies.idle());
  EXPECT_THAT(step(TaskDone{4}), ElementsAre("6: clean c, up to 10 of g1"));
  step(TaskDone{5});
  step(TaskDone{6});
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
  EXPECT_TRUE(copies.idle());
}

TEST_F(CheckpointCopiesTest, NothingIsCopiedWhereTheRunDirectoryIsShared) {
  shared("b");
  EXPECT_THAT(written(1, ".tmp-10-g1-w0.1", {"b"}), ElementsAre("gathered 1 []"));
  EXPECT_THAT(step(CheckpointsListed{{kFirst}, kFirst, ".tmp-10-g1-w0.1"}), IsEmpty());
  EXPECT_THAT(step(CheckpointNeeded{1, "b", kFirst}), ElementsAre("reached 1 []"));
  EXPECT_FALSE(copies.any_apart());
  EXPECT_TRUE(copies.idle());
}

// The job was resumed, so the launching host's own agent finds checkpoints.
TEST_F(CheckpointCopiesTest, WhatAHostFindsInTheSharedDirectoryIsNoSecondCopy) {
  shared("launching", {kFirst});
  apart("b");
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}),
              ElementsAre(fmt::format("3: push {} to b by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_EQ(copies.copies_of(kFirst), 1U);
  step(TaskDone{3});
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
}

// Its run directory is another job's, and is not touched.
TEST_F(CheckpointCopiesTest, APartOnAHostWhoseRunDirectoryIsAnothersIsNotWaitedFor) {
  EXPECT_THAT(step(HostAppeared{"b"}), ElementsAre("1: probe b"));
  EXPECT_THAT(written(1, ".tmp-10-g1-w0.1", {"b"}), IsEmpty());
  EXPECT_THAT(step(TaskFailed{1, "it is another job's", false, false, true}),
              ElementsAre("note copy-failed: b: it is another job's",
                          "gathered 1 [b: it is another job's]"));
  // It may be removed there meanwhile.
  now += CheckpointCopies::kFirstPause;
  EXPECT_THAT(step(TimePassed{}), ElementsAre("2: probe b"));
  EXPECT_THAT(step(HostProbed{2, false, {}}), IsEmpty());
  EXPECT_THAT(written(2, ".tmp-11-g1-w0.1", {"b"}), ElementsAre("3: fetch .tmp-11-g1-w0.1 from b"));
}

// It was removed there while the job ran, and another job came.
TEST_F(CheckpointCopiesTest, AHostWhoseRunDirectoryBecameAnothersIsProbedUntilItIsThisJobsAgain) {
  apart("a");
  step(CheckpointsListed{{kFirst}});  // 2: push
  step(CheckpointNeeded{1, "a", kFirst});
  EXPECT_THAT(step(TaskFailed{2, "it is another job's", false, false, true}),
              ElementsAre("note copy-failed: a: it is another job's",
                          "reached 1 [a: it is another job's]"));
  for (TaskId probe = 3; probe < 7; ++probe) {
    now += CheckpointCopies::kLongestPause;
    EXPECT_THAT(step(TimePassed{}), ElementsAre(fmt::format("{}: probe a", probe)));
    EXPECT_THAT(step(TaskFailed{probe, "it is another job's", false, false, true}), IsEmpty());
  }
  now += CheckpointCopies::kLongestPause;
  step(TimePassed{});
  EXPECT_THAT(step(HostProbed{7, false, {}}),
              ElementsAre(fmt::format("8: push {} to a by .tmp-0-{}", kFirst, kFirst)));
}

TEST_F(CheckpointCopiesTest, FilesOfSeveralServersAreGatheredFromAll) {
  apart("b");
  apart("c");
  EXPECT_THAT(written(1, ".tmp-1-g1", {"b", "c"}),
              ElementsAre("3: fetch .tmp-1-g1 from b", "4: fetch .tmp-1-g1 from c"));
  EXPECT_THAT(step(TaskDone{4}), IsEmpty());
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("gathered 1 []"));
}

TEST_F(CheckpointCopiesTest, OneOfTheHostsOfSeveralServersGetsTheRestAndTheOthersPartsGo) {
  apart("b");
  apart("c");
  written(5, ".tmp-5-g1", {"b", "c"});
  step(TaskDone{3});
  step(TaskDone{4});
  EXPECT_THAT(step(CheckpointsListed{{kFirst}, kFirst, ".tmp-5-g1"}),
              ElementsAre(fmt::format("5: push {} to b by .tmp-5-g1", kFirst),
                          "6: clean c, up to 5 of g1"));
}

TEST_F(CheckpointCopiesTest, APartThatBrokeOffGoesOnWhileAnotherServersPartArrives) {
  apart("b");
  apart("c");
  written(1, ".tmp-1-g1", {"b", "c"});
  step(TaskFailed{3, "nothing was heard", false});
  EXPECT_THAT(step(TaskDone{4}), IsEmpty()) << "b's part is still to come";
  now += CheckpointCopies::kFirstPause;
  EXPECT_THAT(step(TimePassed{}), ElementsAre("5: fetch .tmp-1-g1 from b"));
  EXPECT_THAT(step(TaskDone{5}), ElementsAre("gathered 1 []"));
}

TEST_F(CheckpointCopiesTest, AServersHostThatSharesTheDirectoryIsNotFetchedFrom) {
  shared("a");
  apart("b");
  EXPECT_THAT(written(1, ".tmp-1-g1", {"a", "b"}), ElementsAre("3: fetch .tmp-1-g1 from b"));
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("gathered 1 []"));
}

TEST_F(CheckpointCopiesTest, EachHostWithAServerGetsTheCheckpointThatTheyAllGoBackTo) {
  apart("b", {kFirst});
  apart("c");
  apart("d");
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}), IsEmpty()) << "b has the second copy";
  EXPECT_THAT(step(CheckpointNeeded{1, "b", kFirst}), ElementsAre("reached 1 []"));
  EXPECT_THAT(step(CheckpointNeeded{2, "c", kFirst}),
              ElementsAre(fmt::format("4: push {} to c by .tmp-0-{}", kFirst, kFirst)));
  // The other server of that host.
  EXPECT_THAT(step(CheckpointNeeded{3, "c", kFirst}), IsEmpty());
  EXPECT_THAT(step(CheckpointNeeded{4, "d", kFirst}),
              ElementsAre(fmt::format("5: push {} to d by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_THAT(step(TaskDone{5}), ElementsAre("reached 4 []"));
  EXPECT_THAT(step(TaskDone{4}), ElementsAre("reached 2 []", "reached 3 []"));
  EXPECT_EQ(copies.copies_of(kFirst), 4U);
}

TEST_F(CheckpointCopiesTest, ACheckpointReportedTwiceIsFetchedOnce) {
  apart("b");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  EXPECT_THAT(written(1, ".tmp-10-g1-w0.1", {"b"}), IsEmpty());
  step(TaskDone{2});
  step(CheckpointsListed{{kFirst}, kFirst, ".tmp-10-g1-w0.1"});
  EXPECT_THAT(written(1, ".tmp-10-g1-w0.1", {"b"}), ElementsAre("gathered 1 []"));
}

TEST_F(CheckpointCopiesTest, ABrokenTransferGoesOnAfterAPauseThatGrows) {
  apart("b");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  EXPECT_THAT(step(TaskFailed{2, "nothing was heard", false}),
              ElementsAre("note copy-failed: b: nothing was heard"));
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
  now += CheckpointCopies::kFirstPause;
  EXPECT_THAT(step(TimePassed{}), ElementsAre("3: fetch .tmp-10-g1-w0.1 from b"));
  EXPECT_THAT(step(TaskFailed{3, "nothing was heard", false}), IsEmpty());  // said before
  now += CheckpointCopies::kFirstPause;
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
  now += CheckpointCopies::kFirstPause;
  EXPECT_THAT(step(TimePassed{}), ElementsAre("4: fetch .tmp-10-g1-w0.1 from b"));
}

TEST_F(CheckpointCopiesTest, AMissingCopyIsNotWaitedFor) {
  apart("b");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  EXPECT_THAT(
      step(TaskFailed{2, "it is not there", true}),
      ElementsAre("note copy-failed: b: it is not there", "gathered 1 [b: it is not there]"));
}

TEST_F(CheckpointCopiesTest, AHostThatIsLostTakesWhatOnlyItHadWithIt) {
  apart("b");
  apart("c");
  written(1, ".tmp-1-g1", {"b", "c"});
  const auto lost = step(HostVanished{"c"});
  ASSERT_EQ(lost.size(), 3U);
  EXPECT_THAT(lost, UnorderedElementsAre("cancel 4", "cancel 3",
                                         HasSubstr("gathered 1 [c was lost before")));
  EXPECT_THAT(step(TaskDone{3}), IsEmpty());
}

TEST_F(CheckpointCopiesTest, AHostWhoseLinkWasAwayLosesNothingThatWasGathered) {
  apart("b");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  EXPECT_THAT(step(HostAppeared{"b"}), ElementsAre("cancel 2", "3: probe b"));
  EXPECT_THAT(step(HostProbed{3, false}), ElementsAre("4: fetch .tmp-10-g1-w0.1 from b"));
  EXPECT_THAT(step(TaskDone{4}), ElementsAre("gathered 1 []"));
}

TEST_F(CheckpointCopiesTest, ACopyThatWasLostIsMadeElsewhere) {
  apart("b");
  apart("c");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  step(TaskDone{3});
  step(CheckpointsListed{{kFirst}, kFirst, ".tmp-10-g1-w0.1"});
  step(TaskDone{4});
  step(TaskDone{5});
  step(TaskDone{6});
  ASSERT_TRUE(copies.idle());
  EXPECT_THAT(step(HostVanished{"b"}),
              ElementsAre(fmt::format("7: push {} to c by .tmp-10-g1-w0.1", kFirst)));
  step(TaskDone{7});
  // When a host is back, its copies are known again, and count.
  EXPECT_THAT(step(HostAppeared{"b"}), ::testing::Contains("9: probe b"));
  step(HostProbed{9, false, {kFirst}});
  EXPECT_EQ(copies.copies_of(kFirst), 3U);
}

TEST_F(CheckpointCopiesTest, APrunedCheckpointIsRemovedEverywhereAndNoLongerSent) {
  apart("b");
  step(CheckpointsListed{{kFirst}});  // a push of it is under way
  EXPECT_THAT(step(CheckpointsListed{{kSecond}, kSecond, ".tmp-20-g1-w0.1"}),
              ElementsAre("cancel 2", fmt::format("3: push {} to b by .tmp-20-g1-w0.1", kSecond)));
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("4: clean b, up to 20 of g1"));
}

TEST_F(CheckpointCopiesTest, LeftoversOfAbandonedTrainingAreRemovedWhateverTheirNumber) {
  EXPECT_LT(age_of(".tmp-50-g1-w0.1"), age_of(".tmp-20-g3-w0.2"));
  EXPECT_LT(age_of(".tmp-10-g3-w0.2"), age_of(".tmp-20-g3-w0.2"));
  EXPECT_EQ(age_of(fmt::format(".tmp-0-{}", kFirst)), (Age{1, 0}));
  EXPECT_EQ(age_of(kFirst), std::nullopt);
}

// At step 50 the job went back to an older checkpoint. New checkpoints have lower numbers than the
// kept ones, and may be in progress while a host is cleaned.
TEST_F(CheckpointCopiesTest, FilesWrittenAfterARewindAreNotRemoved) {
  constexpr const char* kGoneOn = "s0000000020-l2-g3-w0.2";
  apart("b");
  step(CheckpointsListed{{"s0000000050-l1-g1-w0.1"}, "s0000000050-l1-g1-w0.1", ".tmp-50-g1-w0.1"});
  step(TaskDone{2});
  step(TaskDone{3});
  step(CheckpointsListed{{kGoneOn}, kGoneOn, ".tmp-20-g3-w0.2"});
  EXPECT_THAT(step(TaskDone{4}), ElementsAre("5: clean b, up to 20 of g3"));
  EXPECT_GT(age_of(".tmp-30-g3-w0.2"), (Age{3, 20}));
}

TEST_F(CheckpointCopiesTest, AHostThatIsAboutToReadGetsItsCopyFirst) {
  apart("b");
  step(CheckpointsListed{{kFirst, kSecond}});
  ASSERT_EQ(task, 1U);  // 2 pushes the second
  EXPECT_THAT(step(CheckpointNeeded{7, "b", kFirst}),
              ElementsAre("cancel 2", fmt::format("3: push {} to b by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_THAT(
      step(TaskDone{3}),
      ElementsAre("reached 7 []", fmt::format("4: push {} to b by .tmp-0-{}", kSecond, kSecond)));
  EXPECT_THAT(step(CheckpointNeeded{8, "b", "s0000000001-l1-g1-w0.1"}),
              ElementsAre(HasSubstr("is not kept")));
  EXPECT_THAT(step(CheckpointNeeded{9, "c", kFirst}), ElementsAre("reached 9 [c is not there]"));
}

TEST_F(CheckpointCopiesTest, ANewerCheckpointOfAnotherHostIsFetchedBack) {
  step(HostAppeared{"b"});
  EXPECT_THAT(step(NewestWanted{kFirst}), IsEmpty());  // b has not reported its checkpoints
  EXPECT_THAT(
      step(HostProbed{1, false, {kFirst, kSecond}}),
      ElementsAre(HasSubstr("is not whole here"), fmt::format("2: fetch back {} from b", kSecond)));
  EXPECT_THAT(step(TaskDone{2}), ElementsAre("found, fetched"));
  EXPECT_THAT(step(NewestChosen{}), ElementsAre("3: clean b, up to 0 of g0"));
}

// The job daemon starts before it knows the content of the run's directory.
TEST_F(CheckpointCopiesTest, AReaderWaitsUntilTheCopiesOnTheLaunchingHostAreKnown) {
  apart("b");
  EXPECT_THAT(step(CheckpointNeeded{1, "b", kFirst}), IsEmpty());
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}),
              ElementsAre(fmt::format("2: push {} to b by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_THAT(step(TaskDone{2}), ElementsAre("reached 1 []"));
}

TEST_F(CheckpointCopiesTest, NoHostRemovesANewerCheckpointThatTheLaunchingHostLost) {
  apart("b", {kFirst, kSecond});
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}), IsEmpty());
  EXPECT_THAT(
      step(NewestWanted{kFirst}),
      ElementsAre(HasSubstr("is not whole here"), fmt::format("2: fetch back {} from b", kSecond)));
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
  EXPECT_THAT(step(TaskDone{2}), ElementsAre("found, fetched"));
  EXPECT_THAT(step(NewestWanted{kSecond}), ElementsAre("found")) << "it is looked for once more";
  EXPECT_THAT(step(NewestChosen{}), ElementsAre("3: clean b, up to 0 of g0"));
  EXPECT_THAT(step(TaskDone{3}), IsEmpty());
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
  EXPECT_EQ(copies.copies_of(kSecond), 2U) << "it was not removed there";
}

// The job daemon that stored the model was lost, and its successor ends the job.
TEST_F(CheckpointCopiesTest, WhenTheJobIsDoneUnfinishedFilesAreRemovedWhateverTheirAge) {
  apart("b", {kFirst});
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}), IsEmpty());
  Effects effects;
  copies.step(TrainingDone{{kFirst}}, now, effects);
  ASSERT_EQ(effects.size(), 1U);
  const auto& clean = std::get<CleanHost>(effects[0]);
  EXPECT_THAT(clean.keep.value(), ElementsAre(kFirst));
  EXPECT_GT(clean.up_to, *age_of(".tmp-20-g3-w0.2"));
}

TEST_F(CheckpointCopiesTest, AHostThatMayHaveACopyIsAskedBeforeAnotherCopyIsMade) {
  step(HostAppeared{"b"});
  step(HostAppeared{"c"});
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(step(HostProbed{1, false, {}}), IsEmpty()) << "c has not said what it has";
  EXPECT_THAT(step(HostProbed{2, false, {kFirst}}), IsEmpty());
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
}

TEST_F(CheckpointCopiesTest, AFetchThatBreaksOffIsTriedAgainBeforeTrainingGoesBackFurther) {
  apart("b", {kSecond});
  step(NewestWanted{kFirst});
  for (TaskId fetch = 2; fetch < 2 + CheckpointCopies::kTries; ++fetch) {
    EXPECT_THAT(step(TaskFailed{fetch, "nothing was heard", false}),
                ::testing::Not(::testing::Contains(HasSubstr("fetch back"))));
    now += CheckpointCopies::kLongestPause;
    const auto next = step(TimePassed{});
    if (fetch + 1 < 2 + CheckpointCopies::kTries) {
      EXPECT_THAT(next, ElementsAre(fmt::format("{}: fetch back {} from b", fetch + 1, kSecond)));
    } else {
      EXPECT_THAT(next, IsEmpty());
    }
  }
  // It is looked for again, without another word about it, and nothing was removed meanwhile.
  EXPECT_THAT(step(NewestWanted{kFirst}),
              ElementsAre(fmt::format("5: fetch back {} from b", kSecond)));
}

TEST_F(CheckpointCopiesTest, WhatCouldNotBeFetchedAndWhoSaysNothingIsTold) {
  apart("b", {kSecond});
  EXPECT_THAT(step(HostAppeared{"c"}), ElementsAre("2: probe c"));
  task = 2;
  step(NewestWanted{kFirst});
  EXPECT_THAT(step(TaskFailed{2, "Stale file handle", false}),
              ::testing::Contains(fmt::format("3: fetch back {} from b", kSecond)));
  std::vector<std::string> said;
  for (int n = 0; n < 3 * int{CheckpointCopies::kTries} && said.empty(); ++n) {
    for (TaskId id = 3; id < 20; ++id) {
      for (const std::string& text : step(TaskFailed{id, "Input/output error", false})) {
        if (text.starts_with("found")) said.push_back(text);
      }
    }
    now += CheckpointCopies::kLongestPause;
    step(TimePassed{});
  }
  EXPECT_THAT(said,
              ElementsAre(fmt::format(
                  "found, checkpoint {} cannot be fetched from b: Input/output error, c does not "
                  "say whether it has checkpoints: Input/output error",
                  kSecond)));
}

TEST_F(CheckpointCopiesTest, AnOlderOneThatIsFetchedDoesNotHideTheNewerThatCannotBe) {
  apart("b", {kFirst, kSecond});
  step(NewestWanted{""});
  for (TaskId fetch = 2; fetch < 2 + CheckpointCopies::kTries; ++fetch) {
    step(TaskFailed{fetch, "Stale file handle", false});
    now += CheckpointCopies::kLongestPause;
    if (fetch + 1 < 2 + CheckpointCopies::kTries) step(TimePassed{});
  }
  EXPECT_THAT(step(TimePassed{}),
              ::testing::Contains(fmt::format("5: fetch back {} from b", kFirst)));
  EXPECT_THAT(
      step(TaskDone{5}),
      ElementsAre(fmt::format("found, fetched, checkpoint {} cannot be fetched from b: Stale "
                              "file handle",
                              kSecond)));
  EXPECT_THAT(step(TimePassed{}), IsEmpty()) << "nothing is removed before one is chosen";
}

TEST_F(CheckpointCopiesTest, AHostThatWasAwayIsCleanedWhenItIsBack) {
  apart("b");
  apart("c");
  step(CheckpointsListed{{kSecond}, kSecond, ".tmp-20-g1-w0.1"});  // 3: push to b, 4: clean c
  step(TaskDone{3});
  step(TaskDone{4});
  step(TaskDone{5});  // clean b
  ASSERT_TRUE(copies.idle());
  step(HostVanished{"c"});
  EXPECT_THAT(step(HostAppeared{"c"}), ElementsAre("6: probe c"));
  EXPECT_THAT(step(HostProbed{6, false, {kFirst}}), ElementsAre("7: clean c, up to 20 of g1"));
  EXPECT_EQ(copies.copies_of(kFirst), 1U);
  step(TaskDone{7});
  EXPECT_EQ(copies.copies_of(kFirst), 0U);
}

TEST_F(CheckpointCopiesTest, IfNoHostHasANewerCheckpointTheOwnOneIsFound) {
  apart("b", {kFirst});
  EXPECT_THAT(step(NewestWanted{kFirst}), ElementsAre("found"));
  EXPECT_THAT(step(NewestWanted{""}),
              ::testing::Contains(fmt::format("2: fetch back {} from b", kFirst)));
  // The copy there was damaged, too.
  EXPECT_THAT(step(TaskFailed{2, "it is damaged", true}), ::testing::Contains("found"));
}

TEST_F(CheckpointCopiesTest, AFullDiskIsReportedOnceAndAnotherHostTakesTheCopy) {
  apart("b");
  apart("c");
  step(CheckpointsListed{{kFirst}, kFirst, ".tmp-10-g1-w0.1"});  // 3: push to b, 4: clean c
  step(TaskDone{4});
  EXPECT_THAT(step(TaskFailed{3, "No space left on device", false}),
              ElementsAre("note copy-failed: b: No space left on device",
                          fmt::format("5: push {} to c by .tmp-10-g1-w0.1", kFirst)));
}

// Its reader is not the only one, and another host has room.
TEST_F(CheckpointCopiesTest, AReaderWhoseHostHasNoRoomHearsOfItAfterSomeTries) {
  apart("a");
  apart("b", {kFirst});
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(step(CheckpointNeeded{1, "a", kFirst}),
              ElementsAre(fmt::format("3: push {} to a by .tmp-0-{}", kFirst, kFirst)));
  step(CheckpointNeeded{2, "a", kFirst});
  for (TaskId push = 3; push < 2 + CheckpointCopies::kTries; ++push) {
    step(TaskFailed{push, "No space left on device", false});
    now += CheckpointCopies::kLongestPause;
    EXPECT_THAT(step(TimePassed{}), ElementsAre(HasSubstr("to a by"))) << "it is tried again";
  }
  EXPECT_THAT(step(TaskFailed{2 + CheckpointCopies::kTries, "No space left on device", false}),
              ElementsAre("reached 1 [a: No space left on device]",
                          "reached 2 [a: No space left on device]"));
  EXPECT_THAT(step(CheckpointNeeded{3, "b", kFirst}), ElementsAre("reached 3 []"));
  now += CheckpointCopies::kLongestPause;
  EXPECT_THAT(step(TimePassed{}), IsEmpty()) << "nobody waits for it, and there are two copies";
}

TEST_F(CheckpointCopiesTest, ACopyThatItsReaderCouldNotReadIsSentOnceMore) {
  apart("a", {kFirst});
  apart("b", {kFirst});
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(step(CheckpointNeeded{1, "a", kFirst}), ElementsAre("reached 1 []"));
  EXPECT_THAT(step(CopiesDoubted{kFirst}),
              ElementsAre(fmt::format("3: push {} to a by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_FALSE(copies.idle());
  EXPECT_THAT(step(CheckpointNeeded{2, "a", kFirst}), IsEmpty()) << "it waits for that";
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("reached 2 []"));
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
}

TEST_F(CheckpointCopiesTest, ADoubtedCopyStaysDoubtedWhenItsHostsLinkBreaks) {
  apart("a", {kFirst});
  apart("b");
  step(CheckpointsListed{{kFirst}});
  step(CopiesDoubted{kFirst});  // 3: compared with the launching host's
  EXPECT_THAT(step(HostAppeared{"a"}), ElementsAre("cancel 3", "4: probe a"));
  EXPECT_THAT(step(HostProbed{4, false, {kFirst}}),
              ElementsAre(fmt::format("5: push {} to a by .tmp-0-{}", kFirst, kFirst)));
  EXPECT_THAT(step(CheckpointNeeded{1, "a", kFirst}), IsEmpty()) << "it waits for that";
  EXPECT_THAT(step(TaskDone{5}), ::testing::Contains("reached 1 []"));
  // It was compared, and counts from now on.
  step(HostAppeared{"a"});
  step(HostProbed{6, false, {kFirst}});
  EXPECT_EQ(copies.copies_of(kFirst), 2U);
}

// Its bytes would be sent for ever, and a job that is done would wait for them.
TEST_F(CheckpointCopiesTest, WhatIsDamagedHereIsNotSentAgainAndAgain) {
  apart("b");
  EXPECT_THAT(step(CheckpointsListed{{kFirst}}),
              ElementsAre(fmt::format("2: push {} to b by .tmp-0-{}", kFirst, kFirst)));
  for (TaskId sent = 2; sent < 2 + CheckpointCopies::kTries; ++sent) {
    EXPECT_EQ(copies.idle(), false);
    const auto said = step(TaskFailed{sent, "another checksum", true, false});
    const bool last = sent == 1 + CheckpointCopies::kTries;
    EXPECT_EQ(std::ranges::any_of(
                  said, [](const auto& s) { return s.find("not copied to b any more") != s.npos; }),
              last);
    now += CheckpointCopies::kLongestPause;
    step(TimePassed{});
  }
  EXPECT_TRUE(copies.idle());
  EXPECT_THAT(copies.lacking(), IsEmpty());
}

// It is the launching host's own that is bad.
TEST_F(CheckpointCopiesTest, ADoubtedCopyIsFetchedBackIfItIsTheNewest) {
  apart("a", {kFirst, kSecond});
  step(CopiesDoubted{kSecond});
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(step(NewestWanted{kFirst}),
              ::testing::Contains(fmt::format("2: fetch back {} from a", kSecond)));
}

TEST_F(CheckpointCopiesTest, WhatTheLaunchingHostHasNoRoomForIsGivenUp) {
  apart("b");
  written(1, ".tmp-10-g1-w0.1", {"b"});
  EXPECT_THAT(step(TaskFailed{2, "No space left on device", false, true}),
              ElementsAre("note copy-failed: b: No space left on device",
                          "gathered 1 [b: No space left on device]"));
}

// Otherwise a disk that is full of them stays full.
TEST_F(CheckpointCopiesTest, WhatIsLeftOfFailedCheckpointsGoesBeforeOneIsStored) {
  apart("b");
  EXPECT_THAT(step(CheckpointsGivenUp{{1, 5}}),
              ElementsAre("2: clean b, only unfinished, up to 5 of g1"));
  step(TaskDone{2});
  EXPECT_THAT(step(TimePassed{}), IsEmpty());
  step(CheckpointsListed{{kFirst}, kFirst, ".tmp-6-g1"});  // 3: push
  EXPECT_THAT(step(TaskDone{3}), ElementsAre("4: clean b, up to 6 of g1"));
  EXPECT_THAT(step(CheckpointsGivenUp{{1, 3}}), IsEmpty());
  EXPECT_THAT(step(TaskDone{4}), ElementsAre("5: clean b, up to 6 of g1"));
}

TEST_F(CheckpointCopiesTest, AHostWhoseCopiesMayBeNeededLosesOnlyWhatIsUnfinished) {
  apart("b", {kFirst, kSecond});
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(step(CheckpointsGivenUp{{1, 5}}),
              ElementsAre("2: clean b, only unfinished, up to 5 of g1"));
  step(TaskDone{2});
  EXPECT_THAT(step(NewestWanted{kFirst}),
              ::testing::Contains(fmt::format("3: fetch back {} from b", kSecond)));
}

TEST_F(CheckpointCopiesTest, ThoseWithTooFewCopiesAreNamedWhileAHostCouldTakeThem) {
  apart("b");
  step(CheckpointsListed{{kFirst}});
  EXPECT_THAT(copies.lacking(), ElementsAre(kFirst));
  step(TaskDone{2});
  EXPECT_THAT(copies.lacking(), IsEmpty());
}

// Under random failures of hosts and tasks every request is answered.
TEST(CheckpointCopiesRandom, EverybodyIsAnswered) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 rng(seed);
    CheckpointCopies copies(1 + seed % 3);
    MonoTime now{std::chrono::seconds(1)};
    const std::vector<std::string> names = {"a", "b", "c"};
    std::set<TaskId> tasks;
    std::set<TaskId> probes;
    std::set<std::uint64_t> gathering, needing;
    std::vector<std::string> kept;
    std::uint64_t number = 0;
    bool finding = false, choosing = false;
    const auto step = [&](const Input& input) {
      Effects effects;
      copies.step(input, now, effects);
      ASSERT_EQ(copies.broken_invariant(), "") << "seed " << seed;
      for (const Effect& effect : effects) {
        std::visit(
            Overloaded{[&](const ProbeHost& e) { tasks.insert(e.task), probes.insert(e.task); },
                       [&](const FetchPart& e) { tasks.insert(e.task); },
                       [&](const PushCopy& e) { tasks.insert(e.task); },
                       [&](const CleanHost& e) {
                         EXPECT_FALSE(choosing && e.keep) << "seed " << seed;
                         tasks.insert(e.task);
                       },
                       [&](const FetchCopy& e) { tasks.insert(e.task); },
                       [&](const CancelTask& e) { tasks.erase(e.task); },
                       [&](const TellGathered& e) { EXPECT_EQ(gathering.erase(e.number), 1U); },
                       [&](const TellReached& e) { EXPECT_EQ(needing.erase(e.number), 1U); },
                       [&](const TellFound&) { EXPECT_TRUE(std::exchange(finding, false)); },
                       [&](const PublishCopyNote&) {}},
            effect);
      }
    };
    const auto finish = [&](bool well) {
      if (tasks.empty()) return;
      const TaskId task = *std::next(tasks.begin(), rng() % tasks.size());
      tasks.erase(task);
      const bool probe = probes.erase(task) > 0;
      if (!well) return step(TaskFailed{task, "broken", rng() % 8 == 0});
      if (!probe) return step(TaskDone{task});
      std::vector<std::string> whole;  // of now, of before, and some that the launching host lost
      for (std::uint64_t back = 0; back < rng() % 4; ++back) {
        if (number >= back) whole.push_back(fmt::format("s{:010}-l1-g1-w0.1", number - back));
      }
      step(HostProbed{task, task % 5 == 0, whole});
    };
    for (int n = 0; n < 200; ++n) {
      now += std::chrono::milliseconds(rng() % 700);
      const std::string& host = names[rng() % names.size()];
      switch (rng() % 10) {
        case 0:
          step(HostAppeared{host});
          break;
        case 1:
          if (rng() % 3 == 0) step(HostVanished{host});
          break;
        case 2: {
          gathering.insert(++number);
          PartsWritten written{number, fmt::format(".tmp-{}-g1-w0.1", number), {{host, {}}}};
          step(written);
          break;
        }
        case 3:
          kept.push_back(fmt::format("s{:010}-l1-g1-w0.1", ++number));
          if (kept.size() > 2) kept.erase(kept.begin());
          step(CheckpointsListed{kept, kept.back(), fmt::format(".tmp-{}-g1-w0.1", number)});
          break;
        case 4:
          if (kept.empty()) break;
          needing.insert(++number);
          step(CheckpointNeeded{number, host, kept[rng() % kept.size()]});
          break;
        case 5:
          if (!finding) {
            if (choosing && rng() % 2 == 0) {
              choosing = false;
              step(NewestChosen{});
              break;
            }
            finding = choosing = true;
            step(NewestWanted{kept.empty() ? "" : kept.back()});
          }
          break;
        case 6:
          if (!kept.empty()) step(CopiesDoubted{kept[rng() % kept.size()]});
          break;
        case 7:
          step(CheckpointsGivenUp{{1, number}});
          break;
        default:
          finish(rng() % 4 != 0);
      }
    }
    for (const std::string& host : names) step(HostAppeared{host});
    for (int n = 0; n < 500 && !(copies.idle() && tasks.empty()); ++n) {
      now += std::chrono::seconds(20);
      step(TimePassed{});
      finish(true);
    }
    EXPECT_TRUE(copies.idle()) << "seed " << seed;
    EXPECT_THAT(gathering, IsEmpty()) << "seed " << seed;
    EXPECT_THAT(needing, IsEmpty()) << "seed " << seed;
    EXPECT_FALSE(finding) << "seed " << seed;
  }
}

}  // namespace
}  // namespace antdt::ctl::copies
