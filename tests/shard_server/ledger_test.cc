// Tests in addition to the transcripts: images, checkpoints, very large data sets.
#include "shard_server/ledger/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "recorder.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

const Member kFirst{{'w', 0}, Attempt{1}};
const Member kSecond{{'w', 1}, Attempt{1}};

LedgerConfig config(std::uint64_t records, std::uint64_t shard_records = 10) {
  LedgerConfig config;
  config.train = {records, shard_records, Shuffle::kFull, 3};
  config.eval = {records / 2, shard_records, Shuffle::kNone, 3};
  return config;
}

ledger::FetchRequested fetch(Member member, std::uint64_t seq, std::uint64_t place,
                             std::uint64_t want) {
  return {member, {}, seq, {1, place, want, {}}};
}

Recorder two_members(const LedgerConfig& config) {
  Recorder recorder(config);
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::MemberAdmitted{kSecond, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  return recorder;
}

TEST(LedgerTest, APlaceBeyondWhatWasGrantedIsRefusedAndNamed) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  const ledger::Effects effects = recorder.step(fetch(kFirst, 2, 101, 100));
  const auto* refuse = find_effect<ledger::SendRefusal>(effects);
  ASSERT_NE(refuse, nullptr);
  EXPECT_EQ(refuse->seq, 2U);
  EXPECT_NE(refuse->refused.reason.find("its place is 101"), std::string::npos);
}

// The data grew while the first phase was open.
TEST(LedgerTest, APhaseKeepsTheRecordsThatTheDataHadWhenItWasOpened) {
  Recorder recorder(config(100));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}, 100});
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(fetch(kFirst, 2, 40, 100));
  const std::string image = recorder.ledger().image();

  LedgerConfig grown = config(100);
  grown.train.records = 150;
  EXPECT_FALSE(Ledger::restore(grown, image)) << "nobody said that the data grew";
  grown.train.began_with = 100;
  auto restored = Ledger::restore(grown, image);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->image(), image);
  Ledger replayed = recorder.continued(Ledger(grown), 0);
  EXPECT_EQ(replayed.image(), image);
  EXPECT_EQ(replayed.records(), 100U);

  ledger::Effects effects;
  const auto step = [&](const ledger::Input& input) {
    effects.clear();
    replayed.step(input, {}, effects);
  };
  for (std::uint64_t seq = 3; !replayed.complete(); ++seq) {
    ASSERT_LT(seq, 10U);
    step(fetch(kFirst, seq, replayed.holders().at(kFirst.worker).end, 100));
  }
  step(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}, 151});
  EXPECT_EQ(replayed.phase().number, 1U) << "the data never had so many records";
  step(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}, 150});
  EXPECT_EQ(replayed.phase().number, 2U);
  EXPECT_EQ(replayed.records(), 150U);
  EXPECT_TRUE(Ledger::restore(grown, replayed.image()));
}

// Journals of earlier releases do not say how many records a phase has.
TEST(LedgerTest, APhaseOfAnOldJournalHasTheRecordsThatTheRunBeganWith) {
  Recorder recorder(config(100));
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  LedgerConfig grown = config(100);
  grown.train.records = 150;
  grown.train.began_with = 100;
  EXPECT_EQ(recorder.continued(Ledger(grown), 0).records(), 100U);
}

// At a checkpoint, and after a restore from it, the records are in the model all the same.
TEST(LedgerTest, RecordsCommittedBeforeTheyWereSkippedDoNotCountAsSkipped) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 40));
  recorder.step(fetch(kFirst, 2, 20, 0));
  recorder.step(ledger::SkipDeclared{1, {10, 60}, "bad"});  // 10 done, 20 held, 20 free
  const auto image = recorder.ledger().image_at({{kFirst.worker, 30}});
  ASSERT_TRUE(image) << image.error().message;
  const auto then = Ledger::restore(config(1000), *image);
  ASSERT_TRUE(then) << then.error().message;
  EXPECT_EQ(then->image(), *image);
  EXPECT_EQ(then->committed_positions().intervals(), (std::vector<Interval>{{0, 30}}));
  const EpochAccount account = recorder.accounts().at(*then).epochs().front();
  EXPECT_EQ(account.once, 30U);
  EXPECT_EQ(account.skipped, 30U) << "10 that were held then, and 20 that nobody held";
  // Records that are given back are left out of the grant from then on.
  recorder.step(fetch(kFirst, 3, 30, 0));
  recorder.step(ledger::MemberLost{kFirst});
  EXPECT_EQ(recorder.ledger().committed_positions().intervals(), (std::vector<Interval>{{0, 30}}));
  EXPECT_EQ(recorder.ledger().skipped(), 30U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
}

TEST(LedgerTest, APhaseThatIsCutIsOverWhenItsMembersHaveGivenBackWhatTheyHold) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 40));
  EXPECT_TRUE(recorder.step(ledger::PhaseCut{1, "enough"}).empty());
  EXPECT_FALSE(recorder.ledger().complete());
  EXPECT_EQ(recorder.ledger().ungranted(), 0U);
  const auto ended = recorder.step(
      ledger::GenerationSettled{Generation{2}, {{kFirst, 30, false}}, {kFirst, kSecond}});
  EXPECT_TRUE(std::ranges::any_of(ended, [](const ledger::Effect& effect) {
    return std::holds_alternative<ledger::EndPhase>(effect);
  }));
  EXPECT_EQ(recorder.ledger().committed(), 30U);
  EXPECT_EQ(recorder.ledger().skipped(), 970U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
}

TEST(LedgerTest, OnlyTheOpenPhaseOfTrainingCanBeCutAndForAReason) {
  Recorder recorder = two_members(config(1000));
  const auto refused = [&](const ledger::PhaseCut& cut) {
    const auto effects = recorder.step(cut);
    return effects.size() == 1 && std::holds_alternative<ledger::SendRefusal>(effects[0]);
  };
  EXPECT_TRUE(refused({2, "enough"}));
  EXPECT_TRUE(refused({1, ""}));
  EXPECT_TRUE(refused({1, std::string(201, 'x')}));
  EXPECT_FALSE(refused({1, "enough"}));
}

// The checkpoint is of a step that is earlier, or later, than what the ledger has committed.
TEST(LedgerTest, ACheckpointHasTheSkipsOfItsOwnStep) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 40));
  auto skipping = fetch(kFirst, 2, 0, 0);
  skipping.request.skipped = {{10, 12, "torn"}, {19, 21, "torn"}, {30, 31, "long"}};
  recorder.step(skipping);
  recorder.step(fetch(kFirst, 3, 20, 0));
  const auto skipped_at = [&](std::uint64_t place) {
    const auto image = recorder.ledger().image_at({{kFirst.worker, place}});
    EXPECT_TRUE(image) << image.error().message;
    const auto then = Ledger::restore(config(1000), *image);
    const auto accounts = Accounts::restore(recorder.accounts().at(*then).image());
    EXPECT_TRUE(accounts) << accounts.error().message;
    const EpochAccount account = accounts->epochs().front();
    EXPECT_EQ(account.once + account.skipped, place);
    return account.skipped;
  };
  EXPECT_EQ(skipped_at(10), 0U);
  EXPECT_EQ(skipped_at(11), 1U);
  EXPECT_EQ(skipped_at(20), 3U);
  EXPECT_EQ(skipped_at(21), 4U);
  EXPECT_EQ(skipped_at(40), 5U);
  // What the checkpoint does not have is granted again, and nothing is known of it.
  const auto image = recorder.ledger().image_at({{kFirst.worker, 11}});
  const auto then = Ledger::restore(config(1000), *image);
  const auto rewound =
      recorder.ledger().rewind(Lineage{2}, *image, recorder.accounts().at(*then).image());
  ASSERT_TRUE(rewound) << rewound.error().message;
  recorder.write(*rewound);
  EXPECT_EQ(recorder.accounts().epochs().front().skipped, 1U);
  recorder.step(ledger::GenerationSettled{Generation{2}, {}, {kSecond}});
  recorder.step({ledger::FetchRequested{kSecond, Generation{2}, 1, {1, 0, 100, {}}}});
  recorder.step({ledger::FetchRequested{kSecond, Generation{2}, 2, {1, 30, 0, {}}}});
  EXPECT_EQ(recorder.accounts().epochs().front().skipped, 1U);
  EXPECT_EQ(recorder.accounts().epochs().front().once, 40U);
}

// The job daemon was away: the request waits to be repeated while the worker trains on and reports
// its position.
TEST(LedgerTest, AFetchThatLaterProgressOvertookTakesNothingBack) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(ledger::ProgressReported{kFirst, {}, 1, 80});
  const ledger::Effects effects = recorder.step(fetch(kFirst, 2, 50, 100));
  const auto* reply = find_effect<ledger::SendGrants>(effects);
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->grants.status, wire::GrantStatus::kGranted);
  EXPECT_EQ(recorder.ledger().committed(), 80U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
}

TEST(LedgerTest, APartialOfAPlaceThatWasPassedIsRefused) {
  Recorder recorder(config(1000));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}});
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(fetch(kFirst, 2, 50, 0));
  auto again = fetch(kFirst, 3, 20, 0);
  again.request.partials.emplace_back();
  EXPECT_TRUE(find_effect<ledger::SendRefusal>(recorder.step(again)));
}

TEST(LedgerTest, ABadPartialIsRefusedAndCommitsNothing) {
  Recorder recorder(config(1000));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}});
  recorder.step(fetch(kFirst, 1, 0, 100));
  auto bad = fetch(kFirst, 2, 50, 0);
  bad.request.partials.emplace_back();
  bad.request.partials[0].bins = {wire::EvalPartial::kScoreBins};
  EXPECT_TRUE(find_effect<ledger::SendRefusal>(recorder.step(bad)));
  EXPECT_EQ(recorder.ledger().committed(), 0U);
}

TEST(LedgerTest, NamedSumsOfAnEvaluationAreInTheJournalAndInTheImage) {
  Recorder recorder(config(1000));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}});
  recorder.step(fetch(kFirst, 1, 0, 100));
  const std::string without = recorder.ledger().image();
  auto with = fetch(kFirst, 2, 40, 0);
  with.request.partials.resize(3);
  with.request.partials[0].named = {{"hits", 3}, {"tokens", 40}};
  with.request.partials[2].named = {{"tokens", 2.5}};
  recorder.step(with);
  const wire::NamedSums sums = {{"hits", 3}, {"tokens", 42.5}};
  EXPECT_EQ(recorder.ledger().evaluation().named, sums);
  EXPECT_EQ(recorder.replayed().evaluation().named, sums);
  const std::string image = recorder.ledger().image();
  EXPECT_EQ(Ledger::restore(config(1000), image).value().evaluation().named, sums);
  EXPECT_EQ(Ledger::restore(config(1000), without).value().image(), without);
  for (std::size_t size = 0; size < image.size(); ++size) {
    EXPECT_FALSE(Ledger::restore(config(1000), image.substr(0, size))) << size;
  }
}

TEST(LedgerTest, MembersTogetherGiveFewNames) {
  Recorder recorder(config(1000));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}});
  recorder.step(fetch(kFirst, 1, 0, 100));
  for (int i = 0; i < 65; ++i) {
    auto next = fetch(kFirst, 2 + i, 1 + i, 0);
    next.request.partials.resize(1);
    next.request.partials[0].named = {{fmt::format("sum{}", i), 1}};
    const ledger::Effects effects = recorder.step(next);
    const auto* refused = find_effect<ledger::SendRefusal>(effects);
    EXPECT_EQ(refused != nullptr, i == 64) << i;
    if (refused != nullptr) {
      EXPECT_NE(refused->refused.reason.find("65 named sums, 64 at most"), std::string::npos);
    }
  }
  EXPECT_EQ(recorder.ledger().committed(), 64U);
}

TEST(LedgerTest, AnAnswerNeverHasMoreThanAThousandPieces) {
  Recorder recorder(config(1'000'000, 10));
  recorder.step(ledger::MemberAdmitted{kFirst, {}});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  const ledger::Effects effects = recorder.step(fetch(kFirst, 1, 0, 1'000'000));
  EXPECT_EQ(find_effect<ledger::SendGrants>(effects)->grants.pieces.size(), 1024U);
}

TEST(LedgerTest, AnImageOfOtherDataIsRefusedAndSaysWhichData) {
  const Recorder recorder = two_members(config(1000));
  const std::string image = recorder.replayed().image();
  const auto restored = Ledger::restore(config(2000), image);
  ASSERT_FALSE(restored);
  EXPECT_NE(restored.error().message.find("1000 records"), std::string::npos);
  EXPECT_NE(restored.error().message.find("2000"), std::string::npos);
}

TEST(LedgerTest, ADamagedImageIsAnErrorWhereverItIsDamaged) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(fetch(kSecond, 1, 0, 100));
  recorder.step(ledger::MemberLost{kFirst});
  const std::string image = recorder.ledger().image();
  for (std::size_t size = 0; size < image.size(); ++size) {
    EXPECT_FALSE(Ledger::restore(config(1000), image.substr(0, size))) << size;
  }
  // A changed byte is an error or another state, never a crash.
  for (std::size_t at = 0; at < image.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = image;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      static_cast<void>(Ledger::restore(config(1000), changed).has_value());
    }
  }
}

TEST(LedgerTest, ARecordThatDoesNotFitIsAnErrorOfTheJournal) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  Ledger fresh(config(1000));
  const auto replayed = fresh.replay(recorder.journal().back());
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().kind, ErrorKind::kCorrupt);
  // The same grant twice.
  Ledger twice = recorder.replayed();
  EXPECT_FALSE(twice.replay(recorder.journal().back()));
}

// When the members of a new generation report positions, a peer may send one twice.
TEST(LedgerTest, AGenerationWithTwoPlacesOfOneMemberIsRefused) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  const std::string before = recorder.ledger().image();
  const ledger::Effects effects = recorder.step(ledger::GenerationSettled{
      Generation{1}, {{kFirst, 10, false}, {kFirst, 20, false}}, {kFirst}});
  const auto* refuse = find_effect<ledger::SendRefusal>(effects);
  ASSERT_NE(refuse, nullptr);
  EXPECT_NE(refuse->refused.reason.find("two places of w0"), std::string::npos);
  EXPECT_EQ(recorder.ledger().image(), before);
}

// A journal that contradicts itself must not be used in part.
TEST(LedgerTest, AGrantThatLeavesOutOrRepeatsPositionsIsAnErrorOfTheJournal) {
  const auto replay = [](const std::vector<Range>& granted) {
    Recorder recorder = two_members(config(1000));
    ledger::FetchAnswered answered;
    answered.member = kFirst;
    answered.seq = 1;
    answered.status = AnswerStatus::kGranted;
    answered.granted = granted;
    return recorder.ledger().replay(encode_record(answered)).has_value();
  };
  EXPECT_TRUE(replay({{{0, 10}, 0}, {{10, 20}, 0}}));
  EXPECT_FALSE(replay({{{5, 10}, 0}}));
  EXPECT_FALSE(replay({{{0, 10}, 0}, {{5, 20}, 0}}));
  EXPECT_FALSE(replay({{{0, 10}, 0}, {{0, 10}, 0}}));
}

TEST(LedgerTest, ACheckpointsImageIsThatOfItsPlaces) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  const auto image = recorder.ledger().image_at({{kFirst.worker, 60}});
  ASSERT_TRUE(image);
  EXPECT_EQ(recorder.ledger().committed(), 0U);
  EXPECT_EQ(Ledger::restore(config(1000), *image)->committed(), 60U);
  EXPECT_FALSE(recorder.ledger().image_at({{kFirst.worker, 101}}));
}

TEST(LedgerTest, ACheckpointThatWasPassedMeanwhileIsThatOfItsPlaces) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 30));
  recorder.step(fetch(kSecond, 1, 0, 30));
  recorder.step(fetch(kFirst, 2, 30, 30));
  recorder.step(fetch(kFirst, 3, 60, 30));
  const auto image = recorder.ledger().image_at({{kFirst.worker, 20}, {kSecond.worker, 10}});
  ASSERT_TRUE(image) << image.error().message;
  const auto then = Ledger::restore(config(1000), *image);
  ASSERT_TRUE(then) << then.error().message;
  EXPECT_EQ(then->committed(), 30U);
  EXPECT_EQ(then->holders().at(kFirst.worker).grants,
            (std::vector<Range>{{{20, 30}, 0}, {{60, 120}, 0}}));
}

TEST(LedgerTest, ACheckpointOfAPlaceLongAgoIsRefused) {
  Recorder recorder = two_members(config(100'000));
  for (std::uint64_t seq = 1; seq <= 3 * kRecentRanges; ++seq) {
    recorder.step(fetch(kFirst, seq, (seq - 1) * 10, 10));
    recorder.step(fetch(kSecond, seq, (seq - 1) * 10, 10));
  }
  EXPECT_TRUE(recorder.ledger().image_at({{kFirst.worker, 10 * (2 * kRecentRanges + 2)}}));
  EXPECT_FALSE(recorder.ledger().image_at({{kFirst.worker, 10}}));
}

TEST(LedgerTest, AfterARewindRecordsCommittedSinceTheCheckpointAreGrantedAgain) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(fetch(kFirst, 2, 40, 0));
  const std::string ledger_image = recorder.ledger().image();
  const std::string accounts_image = recorder.accounts().image();
  recorder.step(fetch(kFirst, 3, 100, 200));
  recorder.step(fetch(kFirst, 4, 300, 0));
  EXPECT_EQ(recorder.ledger().committed(), 300U);

  const auto persist = recorder.ledger().rewind(Lineage{2}, ledger_image, accounts_image);
  ASSERT_TRUE(persist) << persist.error().message;
  recorder.write(*persist);
  EXPECT_EQ(recorder.ledger().committed(), 40U);
  EXPECT_EQ(recorder.ledger().outstanding(), 0U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
  EXPECT_EQ(recorder.accounts().epochs()[0].once, 40U);

  // A former member is fenced.
  const ledger::Effects stale = recorder.step(fetch(kFirst, 5, 300, 10));
  EXPECT_EQ(find_effect<ledger::SendGrants>(stale)->grants.status, wire::GrantStatus::kStale);
  const Member again{kFirst.worker, Attempt{2}};
  recorder.step(ledger::MemberAdmitted{again, {}});
  for (std::uint64_t seq = 1, place = 0; !recorder.ledger().complete(); ++seq) {
    recorder.step(fetch(again, seq, place, 200));
    place = recorder.ledger().holders().at(again.worker).end;
  }
  EXPECT_EQ(recorder.accounts().epochs()[0].once, 1000U);
  EXPECT_EQ(recorder.accounts().epochs()[0].repeated, 0U);
}

TEST(LedgerTest, AWorkerThatIsGrantedAgainHearsThatItsRecallIsOver) {
  Recorder recorder = two_members(config(400));
  recorder.step(ledger::SharesPlanned{{{kFirst.worker, 50, 0}, {kSecond.worker, 50, 0}}});
  recorder.step(fetch(kFirst, 1, 0, 200));
  recorder.step(fetch(kSecond, 1, 0, 200));
  recorder.step(ledger::SharesPlanned{{{kFirst.worker, 90, 0}, {kSecond.worker, 10, 0}}});
  const ledger::Effects waiting = recorder.step(fetch(kFirst, 2, 180, 100));
  const auto* recall = find_effect<ledger::SendRecall>(waiting);
  ASSERT_NE(recall, nullptr);
  const auto over = [&](const ledger::Effects& effects) {
    return find_effect<ledger::SendGrants>(effects)->grants.recalls_over;
  };
  EXPECT_EQ(over(recorder.step(fetch(kSecond, 2, 10, 100))), recall->number - 1) << "it stands";
  // All that it held is trained: nothing is left to be given back.
  EXPECT_EQ(over(recorder.step(fetch(kSecond, 3, 200, 100))), recall->number);
  EXPECT_EQ(over(recorder.step(fetch(kSecond, 3, 200, 100))), recall->number) << "said again";
}

TEST(LedgerTest, RecordsOfAWorkerThatLeftAreGrantedNextAndNotCountedAsLost) {
  Recorder recorder = two_members(config(1000));
  recorder.step(fetch(kFirst, 1, 0, 100));
  recorder.step(fetch(kFirst, 2, 30, 0));
  recorder.step(ledger::MemberLeft{kFirst});
  EXPECT_EQ(recorder.ledger().outstanding(), 0U);
  EXPECT_EQ(recorder.ledger().committed(), 30U);
  recorder.step(fetch(kSecond, 1, 0, 70));
  const auto& grants = recorder.ledger().holders().at(kSecond.worker).grants;
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].at.size(), 70U);
  EXPECT_EQ(grants[0].retries, 0U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
  const ledger::Effects stale = recorder.step(fetch(kFirst, 3, 40, 10));
  EXPECT_EQ(find_effect<ledger::SendGrants>(stale)->grants.status, wire::GrantStatus::kStale);
}

TEST(LedgerTest, AGrantFromBeforeARewindIsNotRepeatedAfterIt) {
  Recorder recorder = two_members(config(1000));
  const std::string ledger_image = recorder.ledger().image();
  const std::string accounts_image = recorder.accounts().image();
  recorder.step(fetch(kFirst, 1, 0, 200));
  recorder.write(*recorder.ledger().rewind(Lineage{2}, ledger_image, accounts_image));
  const auto restored = Ledger::restore(config(1000), recorder.ledger().image());
  EXPECT_TRUE(restored) << restored.error().message;
  recorder.step(ledger::GenerationSettled{Generation{5}, {}, {kFirst}});
  ledger::FetchRequested again = fetch(kFirst, 1, 0, 200);
  again.generation = Generation{5};
  const ledger::Effects told = recorder.step(again);
  EXPECT_EQ(find_effect<ledger::SendGrants>(told)->grants.status, wire::GrantStatus::kWait);
  EXPECT_TRUE(find_effect<ledger::SendGrants>(told)->grants.pieces.empty());
}

TEST(LedgerTest, SharesThatChangeNothingAreNotWrittenDown) {
  Recorder recorder = two_members(config(1000));
  const ledger::SharesPlanned shares{{{kFirst.worker, 10, 100}, {kSecond.worker, 20, 100}}};
  recorder.step(shares);
  const std::size_t written = recorder.journal().size();
  recorder.step(shares);
  EXPECT_EQ(recorder.journal().size(), written);
}

TEST(LedgerTest, StateAndReplayDoNotGrowWithABillionShards) {
  const std::uint64_t kShard = 1000;
  Recorder recorder(config(1'000'000'000 * kShard, kShard));
  constexpr std::uint32_t kMembers = 64;
  for (std::uint32_t i = 0; i < kMembers; ++i) {
    recorder.step(ledger::MemberAdmitted{{{'w', i}, Attempt{1}}, {}});
  }
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  for (std::uint64_t round = 0; round < 200; ++round) {
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      const std::uint64_t place = round == 0 ? 0 : (round - 1) * 64 * kShard;
      recorder.step(fetch({{'w', i}, Attempt{1}}, round + 1, place, 64 * kShard));
    }
  }
  EXPECT_GT(recorder.ledger().committed(), 190ULL * 64 * 64 * kShard);
  EXPECT_LT(recorder.ledger().image().size(), 64U << 10);
  EXPECT_LT(recorder.accounts().image().size(), 8192U);
  EXPECT_EQ(recorder.replayed().image(), recorder.ledger().image());
}

}  // namespace
}  // namespace antdt::shard_server
