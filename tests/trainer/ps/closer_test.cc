// Which pushes count.
#include "trainer/ps/closer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace antdt::ps::closer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

wire::PsCommit commit(std::uint64_t number, std::uint64_t version, std::uint64_t from,
                      std::uint64_t to, std::uint64_t phase = 0) {
  return {number, version, phase, from, to, static_cast<double>(to - from)};
}

std::string text(const wire::PsPlaces& places) {
  std::string line = fmt::format("{}.{} phase {}:", places.worker, places.attempt, places.phase);
  for (const wire::PsRange& range : places.applied)
    line += fmt::format(" {}-{}", range.from, range.to);
  return line;
}

std::vector<std::string> text(const closer::Effects& effects) {
  std::vector<std::string> lines;
  for (const closer::Effect& effect : effects) {
    if (const auto* decide = std::get_if<closer::Decide>(&effect)) {
      const wire::PsDecision* d = &decide->decision;
      std::string line = fmt::format("decision {}:", d->number);
      for (const auto& p : d->pushes) line += fmt::format(" {}#{}", p.worker, p.number);
      for (const auto& l : d->left) line += fmt::format(" -{}", l.worker);
      if (d->cut != 0) line += fmt::format(" cut {} to {}", d->cut, d->directory);
      lines.push_back(line + fmt::format(" /{}", d->weight));
    } else if (const auto* a = std::get_if<closer::AnswerCommit>(&effect)) {
      lines.push_back(fmt::format("{} #{} {}", a->to.worker, a->decided.number, a->decided.status));
    } else {
      lines.push_back(fmt::format("{} refused", std::get<closer::RefuseCommit>(effect).to.worker));
    }
  }
  return lines;
}

class CloserTest : public ::testing::Test {
 protected:
  std::vector<std::string> add(std::vector<Member> workers, std::uint32_t backups = 0) {
    closer::Effects effects;
    closer.step(closer::WorkersAdded{workers, backups}, effects);
    return text(effects);
  }
  std::vector<std::string> commits(Member member, const wire::PsCommit& c) {
    closer::Effects effects;
    closer.step(closer::CommitHeard{member, c}, effects);
    return text(effects);
  }
  std::vector<std::string> idle(Member member) {
    closer::Effects effects;
    closer.step(closer::IdleHeard{member}, effects);
    return text(effects);
  }
  std::vector<std::string> cut(std::uint64_t number) {
    closer::Effects effects;
    closer.step(closer::CutMarked{number, "here"}, effects);
    return text(effects);
  }
  std::vector<std::string> last_cut(std::uint64_t number) {
    closer::Effects effects;
    closer.step(closer::LastCutSet{number}, effects);
    return text(effects);
  }
  std::string revoke(Member member) {
    closer::Effects effects;
    closer.step(closer::WorkerRevoked{member}, effects);
    after = text(effects);
    return text(closer.places(member));
  }
  Closer closer{true};
  std::vector<std::string> after;
};

TEST_F(CloserTest, AStepIsMadeWhenEveryWorkerHasCommittedAndInTheOrderOfTheWorkers) {
  add({w(0), w(1)});
  EXPECT_THAT(commits(w(1), commit(1, 0, 0, 8)), IsEmpty());
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 4)),
              ElementsAre("decision 1: w0#1 w1#1 /12", "w0 #1 applied", "w1 #1 applied"));
}

TEST_F(CloserTest, WithABackupTheLastWorkerIsLateAndSaysSo) {
  add({w(0), w(1), w(2)}, 1);
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(commits(w(2), commit(1, 0, 0, 8)),
              ElementsAre("decision 1: w0#1 w2#1 /16", "w0 #1 applied", "w2 #1 applied"));
  EXPECT_THAT(commits(w(1), commit(1, 0, 0, 8)), ElementsAre("w1 #1 late"));
  EXPECT_EQ(text(closer.places(w(1))), "w1.1 phase 0:");
  // Its next push counts, and the records that were late are a gap.
  commits(w(1), commit(2, 1, 8, 16));
  commits(w(0), commit(2, 1, 8, 16));
  EXPECT_EQ(text(closer.places(w(1))), "w1.1 phase 0: 8-16");
  EXPECT_EQ(text(closer.places(w(0))), "w0.1 phase 0: 0-16");
  EXPECT_EQ(closer.counts().applied, 4U);
  EXPECT_EQ(closer.counts().late, 1U);
}

TEST_F(CloserTest, AnIdleWorkerIsNotWaitedForUntilItPushesAgain) {
  add({w(0), w(1)});
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(idle(w(1)), ElementsAre("decision 1: w0#1 /8", "w0 #1 applied"));
  EXPECT_THAT(commits(w(0), commit(2, 1, 8, 16)),
              ElementsAre("decision 2: w0#2 /8", "w0 #2 applied"));
  commits(w(1), commit(1, 2, 0, 8));
  EXPECT_THAT(commits(w(0), commit(3, 2, 16, 24)),
              ElementsAre("decision 3: w0#3 w1#1 /16", "w0 #3 applied", "w1 #1 applied"));
  EXPECT_THAT(commits(w(0), commit(4, 3, 24, 32)), IsEmpty()) << "w1 counts again";
}

TEST_F(CloserTest, ACheckpointIsDecidedBetweenStepsAndOnce) {
  add({w(0), w(1)});
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(cut(1), ElementsAre("decision 1: cut 1 to here /0"));
  EXPECT_THAT(cut(1), IsEmpty());
  EXPECT_THAT(commits(w(1), commit(1, 0, 0, 8)),
              ElementsAre("decision 2: w0#1 w1#1 /16", "w0 #1 applied", "w1 #1 applied"));
  EXPECT_THAT(cut(2), ElementsAre("decision 3: cut 2 to here /0"));
  EXPECT_EQ(closer.updates(), 1U);
}

TEST_F(CloserTest, AGroupThatGoesOnFromACheckpointGoesOnFromItsStep) {
  closer = Closer(true, 7);
  add({w(0), w(1)});
  EXPECT_THAT(commits(w(0), commit(1, 7, 0, 8)), IsEmpty()) << "everybody is waited for";
  EXPECT_THAT(commits(w(1), commit(1, 6, 0, 8)), ElementsAre("w1 #1 late"));
  commits(w(1), commit(2, 7, 8, 16));
  EXPECT_EQ(closer.updates(), 8U);
}

TEST_F(CloserTest, NobodyMakesAStepOfNothing) {
  add({w(0), w(1)});
  EXPECT_THAT(idle(w(0)), IsEmpty());
  EXPECT_THAT(idle(w(1)), IsEmpty());
}

TEST_F(CloserTest, ARepeatedMessageIsAnsweredAgainAndChangesNothing) {
  add({w(0)});
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 8)), ElementsAre("w0 #1 applied"));
  EXPECT_EQ(closer.decisions(), 1U);
  EXPECT_EQ(closer.counts().applied, 1U);
  EXPECT_EQ(closer.counts().repeated, 1U);
}

TEST_F(CloserTest, PlacesAreThoseOfTheNewestPhaseAndNobodyGoesBackToOneBefore) {
  add({w(0)});
  commits(w(0), commit(1, 0, 0, 8, 2));
  commits(w(0), commit(2, 1, 8, 16, 2));
  EXPECT_EQ(text(closer.places(w(0))), "w0.1 phase 2: 0-16");
  EXPECT_THAT(commits(w(0), commit(3, 2, 4, 8, 2)), ElementsAre("w0 refused"));
  EXPECT_THAT(commits(w(0), commit(3, 2, 4, 8, 5)),
              ElementsAre("decision 3: w0#3 /4", "w0 #3 applied"))
      << "places of a phase of its own";
  EXPECT_EQ(text(closer.places(w(0))), "w0.1 phase 5: 4-8");
  EXPECT_THAT(commits(w(0), commit(4, 3, 16, 24, 2)), ElementsAre("w0 refused"));
  EXPECT_EQ(closer.updates(), 3U);
}

TEST_F(CloserTest, ARevokedWorkerHasWhatWasAppliedAndCommitsNothingMore) {
  add({w(0), w(1)});
  commits(w(0), commit(1, 0, 0, 8));
  commits(w(1), commit(1, 0, 0, 8));
  commits(w(1), commit(2, 1, 8, 16));  // waits for w0
  EXPECT_EQ(revoke(w(1)), "w1.1 phase 0: 0-8");
  EXPECT_THAT(after, ElementsAre("decision 2: -w1 /0"));
  EXPECT_EQ(revoke(w(1)), "w1.1 phase 0: 0-8") << "asked again";
  EXPECT_THAT(after, IsEmpty());
  EXPECT_THAT(commits(w(1), commit(2, 1, 8, 16)), ElementsAre("w1 refused"));
  EXPECT_THAT(commits(w(0), commit(2, 1, 8, 16)),
              ElementsAre("decision 3: w0#2 /8", "w0 #2 applied"));
  EXPECT_EQ(closer.updates(), 2U) << "leaving is no step";
}

TEST_F(CloserTest, AnAttemptThatWasRevokedNeverComesBackAndTheNextOneDoes) {
  add({w(0)});
  EXPECT_EQ(revoke(w(1)), "w1.1 phase 0:") << "of one that it has not heard of";
  EXPECT_THAT(after, ElementsAre("decision 1: -w1 /0")) << "another server may have";
  add({w(1), w(1, 2)});
  EXPECT_THAT(commits(w(1), commit(1, 0, 0, 8)), ElementsAre("w1 refused"));
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 8)), IsEmpty());
  EXPECT_THAT(commits(w(1, 2), commit(1, 0, 0, 8)),
              ElementsAre("decision 2: w0#1 w1#1 /16", "w0 #1 applied", "w1 #1 applied"));
  std::vector<std::string> all;
  for (const wire::PsPlaces& places : closer.places()) all.push_back(text(places));
  EXPECT_THAT(all, ElementsAre("w0.1 phase 0: 0-8", "w1.2 phase 0: 0-8"));
}

TEST_F(CloserTest, ThePlacesOfACheckpointDoNotGrowWithEveryAttemptThatEverWas) {
  add({w(0)});
  commits(w(0), commit(1, 0, 0, 8));
  for (std::uint32_t attempt = 1; attempt <= 1000; ++attempt) {
    add({w(1, attempt)});
    commits(w(1, attempt), commit(1, closer.updates(), 0, 8));
    commits(w(0), commit(1 + attempt, closer.updates(), 8 * attempt, 8 * attempt + 8));
    revoke(w(1, attempt));
  }
  ASSERT_EQ(closer.places().size(), 1U);
  EXPECT_EQ(closer.places()[0].worker, w(0).worker);
  EXPECT_EQ(closer.places(w(1, 7)).attempt, Attempt{7}) << "its home answers for it all the same";
}

TEST_F(CloserTest, AStepThatWaitedOnlyForTheOneThatIsLostIsMade) {
  add({w(0), w(1)});
  commits(w(0), commit(1, 0, 0, 8));
  revoke(w(1));
  EXPECT_THAT(after, ElementsAre("decision 1: -w1 /0", "decision 2: w0#1 /8", "w0 #1 applied"));
}

TEST_F(CloserTest, ANewcomerIsNotWaitedForBeforeItsFirstCommit) {
  add({w(0)});
  commits(w(0), commit(1, 0, 0, 8));
  add({w(1)});
  EXPECT_THAT(commits(w(0), commit(2, 1, 8, 16)),
              ElementsAre("decision 2: w0#2 /8", "w0 #2 applied"));
  EXPECT_THAT(commits(w(1), commit(1, 1, 0, 8)), ElementsAre("w1 #1 late"));
  EXPECT_THAT(commits(w(0), commit(3, 2, 16, 24)), IsEmpty()) << "now it is";
}

TEST_F(CloserTest, PlacesThatGoBackAndInvalidWeightsAreRefused) {
  add({w(0)});
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(commits(w(0), commit(2, 1, 4, 12)), ElementsAre("w0 refused"));
  EXPECT_THAT(commits(w(0), commit(2, 1, 8, 8)), ElementsAre("w0 refused"));
  EXPECT_THAT(commits(w(0), commit(2, 9, 8, 16)), ElementsAre("w0 refused"));
  for (const double weight : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e308}) {
    wire::PsCommit of = commit(2, 1, 8, 16);
    of.weight = weight;
    EXPECT_THAT(commits(w(0), of), ElementsAre("w0 refused")) << weight;
  }
}

TEST_F(CloserTest, RequestsOfAWorkerFromBeforeALatePushWaitNoMore) {
  add({w(0), w(1)}, 1);
  commits(w(1), commit(1, 0, 0, 8));  // a step without the other
  add({w(0), w(1)}, 0);
  EXPECT_THAT(commits(w(0), commit(1, 1, 0, 8)), IsEmpty()) << "it waits for the other";
  EXPECT_THAT(commits(w(0), commit(2, 0, 0, 8)), ElementsAre("w0 #2 late"));
  EXPECT_THAT(commits(w(1), commit(2, 1, 8, 16)), IsEmpty()) << "and so does the other now";
  Closer same(true, 0);
  EXPECT_TRUE(same.restore(closer.image()));
}

TEST_F(CloserTest, BehindTheLastCheckpointOfItsGroupNoStepIsMade) {
  add({w(0), w(1)});
  EXPECT_THAT(last_cut(2), IsEmpty());
  commits(w(0), commit(1, 0, 0, 8));
  EXPECT_THAT(commits(w(1), commit(1, 0, 0, 8)), Not(IsEmpty())) << "it is not cut yet";
  EXPECT_THAT(cut(2), ElementsAre("decision 2: cut 2 to here /0"));
  commits(w(0), commit(2, 1, 8, 16));
  EXPECT_THAT(commits(w(1), commit(2, 1, 8, 16)), IsEmpty());
  EXPECT_EQ(revoke(w(1)), "w1.1 phase 0: 0-8");
  EXPECT_THAT(after, ElementsAre("decision 3: -w1 /0")) << "nor for the one that is left";
}

TEST_F(CloserTest, WhenTheLastCheckpointIsGivenUpTheStepIsMade) {
  add({w(0)});
  last_cut(1);
  cut(1);
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 8)), IsEmpty());
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 8)), IsEmpty()) << "said again";
  EXPECT_THAT(last_cut(0), ElementsAre("decision 2: w0#1 /8", "w0 #1 applied"));
  EXPECT_THAT(last_cut(0), IsEmpty());
}

TEST_F(CloserTest, ABackupKnowsThatNothingFollowsTheLastCheckpoint) {
  add({w(0)});
  last_cut(1);
  cut(1);
  commits(w(0), commit(1, 0, 0, 8));
  Closer backup{true};
  ASSERT_TRUE(backup.restore(closer.image()));
  closer = std::move(backup);
  EXPECT_THAT(commits(w(0), commit(1, 0, 0, 8)), IsEmpty());
  EXPECT_THAT(last_cut(0), ElementsAre("decision 2: w0#1 /8", "w0 #1 applied"));
}

TEST(CloserWithoutABarrier, DecidesWhatWaitedBehindALastCheckpointThatIsGivenUp) {
  Closer closer(false);
  closer::Effects effects;
  closer.step(closer::WorkersAdded{{w(0), w(1)}, 0}, effects);
  closer.step(closer::LastCutSet{3}, effects);
  closer.step(closer::CutMarked{3, "here"}, effects);
  closer.step(closer::CommitHeard{w(1), commit(1, 0, 0, 8)}, effects);
  closer.step(closer::CommitHeard{w(0), commit(1, 0, 0, 4)}, effects);
  EXPECT_THAT(text(effects), ElementsAre("decision 1: cut 3 to here /0"));
  effects.clear();
  closer.step(closer::LastCutSet{0}, effects);
  EXPECT_THAT(text(effects), ElementsAre("decision 2: w0#1 /4", "w0 #1 applied",
                                         "decision 3: w1#1 /8", "w1 #1 applied"));
}

TEST(CloserWithoutABarrier, DecidesEachPushByItself) {
  Closer closer(false);
  closer::Effects effects;
  closer.step(closer::WorkersAdded{{w(0), w(1)}, 0}, effects);
  closer.step(closer::CommitHeard{w(1), commit(1, 0, 0, 8)}, effects);
  closer.step(closer::CommitHeard{w(1), commit(2, 0, 8, 16)}, effects);
  closer.step(closer::CommitHeard{w(0), commit(1, 0, 0, 8)}, effects);
  EXPECT_THAT(text(effects),
              ElementsAre("decision 1: w1#1 /8", "w1 #1 applied", "decision 2: w1#2 /8",
                          "w1 #2 applied", "decision 3: w0#1 /8", "w0 #1 applied"));
}

}  // namespace
}  // namespace antdt::ps::closer_test
