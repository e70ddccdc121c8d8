// Records that are pinned to domains: the stream, the grants, images, and the accounts.
#include "shard_server/pins/pins.h"

#include <gtest/gtest.h>

#include <set>

#include "recorder.h"
#include "records_of.h"
#include "shard_server/accounts/audit.h"
#include "shard_server/ledger/record_codec.h"

namespace antdt::shard_server {
namespace {

constexpr DomainNumber kEu{1}, kUs{2};
const Member kInEu{{'w', 0}, Attempt{1}};
const Member kInUs{{'w', 1}, Attempt{1}};

Pins pins_of(const std::vector<PinnedRun>& runs) { return {{"eu", "us"}, runs}; }

DataSet pinned_data(std::uint64_t shard_records, Shuffle shuffle, const Pins& pins) {
  DataSet data{pins.records(), shard_records, shuffle, 7};
  data.pins = pins;
  return data;
}

LedgerConfig pinned_config(const Pins& pins = pins_of({{60, kEu}, {40, kUs}})) {
  LedgerConfig config;
  config.train = pinned_data(10, Shuffle::kFull, pins);
  config.eval = {0, 10, Shuffle::kNone, 7};
  return config;
}

Recorder with_two_domains() {
  Recorder recorder(pinned_config());
  recorder.step(ledger::DataPinned{pinned_config().train.pins});
  recorder.step(ledger::MemberAdmitted{kInEu, {}, kEu});
  recorder.step(ledger::MemberAdmitted{kInUs, {}, kUs});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}, 100});
  return recorder;
}

ledger::FetchRequested asks(Member member, std::uint64_t seq, std::uint64_t place,
                            std::uint64_t want) {
  return {member, {}, seq, {1, place, want, {}}};
}

wire::Grants answer(Recorder& recorder, Member member, std::uint64_t seq, std::uint64_t place) {
  return find_effect<ledger::SendGrants>(recorder.step(asks(member, seq, place, 1000)))->grants;
}

// Fetches until there is nothing more, and commits all of it. Returns the last answer.
wire::GrantStatus train_all(Recorder& recorder, Member member, std::set<std::uint64_t>& trained) {
  for (std::uint64_t seq = 1, place = 0;; ++seq) {
    const wire::Grants grants = answer(recorder, member, seq, place);
    if (grants.status != wire::GrantStatus::kGranted) return grants.status;
    const auto records = records_of(grants.pieces);
    trained.insert(records.begin(), records.end());
    place += records.size();
  }
}

TEST(PinsTest, RunsOfOneDomainAreJoinedAndCutAtARecord) {
  Pins pins;
  pins.add(10, "eu");
  pins.add(0, "none");
  pins.add(5, "eu");
  pins.add(7, "us");
  EXPECT_EQ(pins, pins_of({{15, kEu}, {7, kUs}}));
  EXPECT_EQ(pins.first(12).runs, (std::vector<PinnedRun>{{12, kEu}}));
  EXPECT_EQ(pins.first(16).runs, (std::vector<PinnedRun>{{15, kEu}, {1, kUs}}));
  EXPECT_EQ(pins.name_of(kUs), "us");
  EXPECT_EQ(pins.number_of("us"), kUs);
  EXPECT_EQ(pins.number_of("asia"), DomainNumber{});
  EXPECT_TRUE(pins.are_possible());
  pins.runs.push_back({3, DomainNumber{3}});
  EXPECT_FALSE(pins.are_possible());
}

TEST(PinsTest, GrownPinsExtendEarlierOnes) {
  const Pins earlier = pins_of({{60, kEu}, {40, kUs}});
  EXPECT_TRUE(earlier.extend(earlier));
  EXPECT_TRUE(pins_of({{60, kEu}, {45, kUs}, {5, kEu}}).extend(earlier));
  const Pins with_a_new_domain{{"eu", "us", "asia"}, {{60, kEu}, {40, kUs}, {30, DomainNumber{3}}}};
  EXPECT_TRUE(with_a_new_domain.extend(earlier));
  EXPECT_FALSE(earlier.extend(with_a_new_domain));
  EXPECT_FALSE(pins_of({{59, kEu}, {41, kUs}}).extend(earlier));
  EXPECT_FALSE((Pins{{"asia", "eu", "us"}, with_a_new_domain.runs}).extend(earlier));
  EXPECT_FALSE(earlier.extend({}));
  EXPECT_FALSE(Pins{}.extend(earlier));
  EXPECT_TRUE(Pins{}.extend({}));
}

TEST(PinnedStreamTest, EverySectionHasTheRecordsOfItsDomainOnce) {
  for (const Shuffle shuffle : {Shuffle::kFull, Shuffle::kShards, Shuffle::kNone}) {
    for (const std::uint64_t shard_records : {1, 7, 10, 64}) {
      for (std::uint64_t extra = 1; extra <= 21; ++extra) {
        const Pins pins = pins_of({{extra, kUs}, {20, kEu}, {7, kUs}, {extra + 3, kEu}});
        const EpochStream stream(pinned_data(shard_records, shuffle, pins), Epoch{1},
                                 PhaseKind::kTrain);
        const auto order = records_of(stream.pieces(0, stream.size()));
        ASSERT_EQ(std::set(order.begin(), order.end()).size(), pins.records());
        ASSERT_EQ(order.size(), pins.records());
        const auto parts = stream.parts();
        ASSERT_EQ(parts.size(), 2U);
        for (const EpochStream::Part& part : parts) {
          for (std::uint64_t p = part.positions.from; p < part.positions.to; ++p) {
            ASSERT_EQ(pins.first(order[p] + 1).runs.back().domain, part.domain);
            ASSERT_EQ(records_of(stream.pieces(p, p + 1)), (std::vector{order[p]}));
            ASSERT_GT(stream.reach(p, 1), p);
            ASSERT_LE(stream.reach(p, 1000), part.positions.to);
          }
        }
      }
    }
  }
}

TEST(PinnedStreamTest, AStreamWithoutPinsIsWhatItAlwaysWas) {
  const DataSet plain{95, 10, Shuffle::kFull, 7};
  const EpochStream stream(plain, Epoch{2}, PhaseKind::kTrain);
  const std::uint64_t seed = combine_seed(7, 2);
  const Permutation shards(10, combine_seed(seed, 0));
  const auto pieces = stream.pieces(0, 95);
  ASSERT_EQ(pieces.size(), 10U);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(pieces[i].shard, shards(i));
    EXPECT_EQ(pieces[i].order_seed, combine_seed(seed, shards(i) + 1));
  }
}

TEST(PinnedLedgerTest, AWorkerIsGrantedRecordsOfItsDomainAndThenWaitsForTheOthers) {
  Recorder recorder = with_two_domains();
  std::set<std::uint64_t> of_us, of_eu;
  EXPECT_EQ(train_all(recorder, kInUs, of_us), wire::GrantStatus::kWait);
  EXPECT_EQ(of_us.size(), 40U);
  EXPECT_EQ(*of_us.begin(), 60U);
  EXPECT_EQ(recorder.ledger().left_in(kUs), 0U);
  EXPECT_EQ(recorder.ledger().left_in(kEu), 60U);
  EXPECT_FALSE(recorder.ledger().complete());
  EXPECT_EQ(train_all(recorder, kInEu, of_eu), wire::GrantStatus::kEnd);
  EXPECT_EQ(*of_eu.rbegin(), 59U);
  EXPECT_TRUE(recorder.ledger().complete());
}

TEST(PinnedLedgerTest, RecordsOfALostWorkerWaitForTheNextOneOfItsDomain) {
  Recorder recorder = with_two_domains();
  const auto held = records_of(answer(recorder, kInEu, 1, 0).pieces);
  recorder.step(ledger::MemberLost{kInEu});
  std::set<std::uint64_t> of_us, of_eu;
  EXPECT_EQ(train_all(recorder, kInUs, of_us), wire::GrantStatus::kWait);
  EXPECT_EQ(of_us.size(), 40U);
  const Member again{kInEu.worker, Attempt{2}};
  recorder.step(ledger::MemberAdmitted{again, {}, kEu});
  EXPECT_EQ(train_all(recorder, again, of_eu), wire::GrantStatus::kEnd);
  for (const std::uint64_t record : held) EXPECT_TRUE(of_eu.contains(record));
}

TEST(PinnedLedgerTest, AWorkerOfNoDomainIsGrantedNothing) {
  Recorder recorder = with_two_domains();
  const Member stray{{'w', 2}, Attempt{1}};
  recorder.step(ledger::MemberAdmitted{stray, {}});
  EXPECT_EQ(answer(recorder, stray, 1, 0).status, wire::GrantStatus::kWait);
}

TEST(PinnedLedgerTest, AnImageRemembersPinsAndRefusesOthers) {
  Recorder recorder = with_two_domains();
  answer(recorder, kInEu, 1, 0);
  answer(recorder, kInUs, 1, 0);
  recorder.step(ledger::SkipDeclared{1, {55, 65}, "unreadable"});
  const std::string image = recorder.ledger().image();
  const auto restored = Ledger::restore(pinned_config(), image);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->image(), image);
  EXPECT_EQ(recorder.replayed().image(), image);
  const auto others = Ledger::restore(pinned_config(pins_of({{40, kEu}, {60, kUs}})), image);
  ASSERT_FALSE(others);
  EXPECT_NE(others.error().message.find("pinned to other domains"), std::string::npos);
  LedgerConfig without = pinned_config();
  without.train.pins = {};
  EXPECT_FALSE(Ledger::restore(without, image));
  EXPECT_FALSE(Ledger::restore(pinned_config(), Ledger(without).image()));
}

// As antdt run --resume --grow finds it if the records that were added are of a new domain.
TEST(PinnedLedgerTest, DataThatGrewByANewDomainGoOnWithTheirJournalAndImages) {
  Recorder recorder = with_two_domains();
  answer(recorder, kInEu, 1, 0);
  LedgerConfig grown =
      pinned_config({{"eu", "us", "asia"}, {{60, kEu}, {40, kUs}, {30, DomainNumber{3}}}});
  grown.train.began_with = 100;
  Ledger replayed(grown);
  for (const std::string& record : recorder.journal()) {
    const auto applied = replayed.replay(record);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  const auto restored = Ledger::restore(grown, recorder.ledger().image());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->image(), replayed.image());
  EXPECT_EQ(restored->records(), 100U) << "an epoch that was begun keeps its records";

  Accounts accounts = recorder.accounts();
  ASSERT_TRUE(accounts.apply(encode_record(ledger::DataPinned{grown.train.pins})));
  ASSERT_TRUE(
      accounts.apply(encode_record(ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{1}, 130})));
  EXPECT_EQ(accounts.epochs().at(0).domains.size(), 2U);
  ASSERT_EQ(accounts.epochs().at(1).domains.size(), 3U);
  EXPECT_EQ(accounts.epochs().at(1).domains.at(2).records, 30U);
  const auto again = Accounts::restore(accounts.image());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->epochs().at(0).domains.size(), 2U);
}

TEST(PinnedLedgerTest, PinsOfEarlierDataAreNotWrittenDownAnyMore) {
  Recorder recorder = with_two_domains();
  const ledger::DataPinned fewer{pins_of({{60, kEu}, {30, kUs}})};
  EXPECT_TRUE(find_effect<ledger::SendRefusal>(recorder.step(fewer)));
  EXPECT_TRUE(recorder.ledger().replay(encode_record(fewer)));
}

// A worker of each domain, and an evaluation that all workers share.
Recorder with_an_evaluation_for_all() {
  LedgerConfig config = pinned_config();
  config.eval.records = 100;
  Recorder recorder(config);
  recorder.step(ledger::DataPinned{config.train.pins});
  recorder.step(ledger::MemberAdmitted{kInEu, {}, kEu});
  recorder.step(ledger::MemberAdmitted{kInUs, {}, kUs});
  recorder.step(ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}, 100});
  return recorder;
}

TEST(PinnedLedgerTest, AnEvaluationThatIsNotPinnedIsDividedAmongTheWorkersOfAllDomains) {
  Recorder recorder = with_an_evaluation_for_all();
  EXPECT_EQ(recorder.ledger().members_in(kEu), 2U);
  EXPECT_EQ(records_of(answer(recorder, kInEu, 1, 0).pieces).size(), 25U) << "as for two workers";
  EXPECT_EQ(recorder.ledger().left_in(kUs), 100U);
}

TEST(PinnedLedgerTest, RecordsOfAnEvaluationThatIsNotPinnedAreRecalledFromWorkersOfOtherDomains) {
  Recorder recorder = with_an_evaluation_for_all();
  std::uint64_t held = 0;
  for (std::uint64_t seq = 1; recorder.ledger().ungranted() > 0; ++seq) {
    held += records_of(answer(recorder, kInEu, seq, 0).pieces).size();
  }
  EXPECT_EQ(held, 100U);
  const auto effects = recorder.step(asks(kInUs, 1, 0, 1000));
  const auto* const waits = find_effect<ledger::SendGrants>(effects);
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(waits->grants.status, wire::GrantStatus::kWait);
  EXPECT_EQ(waits->grants.retry_ms, 20U) << "records may come, so the wait is short";
  const auto* const recall = find_effect<ledger::SendRecall>(effects);
  ASSERT_NE(recall, nullptr);
  EXPECT_EQ(recall->member, kInEu);
  EXPECT_EQ(recall->recall.keep_to, 50U);
}

TEST(PinnedLedgerTest, AJournalInWhichARecordLeftItsDomainIsRefused) {
  Recorder recorder = with_two_domains();
  ledger::FetchAnswered record{kInUs, 1, 0, AnswerStatus::kGranted, 0, {{{0, 10}, 0}}, {}};
  const auto replayed = recorder.ledger().replay(encode_record(record));
  ASSERT_FALSE(replayed);
  EXPECT_NE(replayed.error().message.find("0:10"), std::string::npos);
}

// The accounts count by themselves, whatever the ledger let pass.
TEST(PinnedAccountsTest, TheAuditFindsARecordThatWasTrainedInAnotherDomain) {
  Recorder recorder = with_two_domains();
  std::set<std::uint64_t> trained;
  train_all(recorder, kInUs, trained);
  Accounts accounts = recorder.accounts();
  EXPECT_EQ(audit(accounts).exit_code, 5);
  const ledger::FetchAnswered granted{kInUs, 90, 40, AnswerStatus::kGranted, 0, {{{0, 3}, 0}}, {}};
  ASSERT_TRUE(accounts.apply(encode_record(granted)));
  const ledger::ProgressReported progress{kInUs, {}, 1, 43};
  ASSERT_TRUE(accounts.apply(encode_record(progress)));
  const AuditReport report = audit(*Accounts::restore(accounts.image()));
  EXPECT_EQ(report.epochs.at(0).elsewhere, 3U);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_NE(audit_table(report).find("3 were trained by a worker of another domain"),
            std::string::npos);
  EXPECT_NE(audit_table(report).find("broken: records were trained in another domain"),
            std::string::npos);
}

TEST(PinnedAccountsTest, PinsThatDoNotExtendTheEarlierOnesAreCorrupt) {
  Recorder recorder = with_two_domains();
  Accounts accounts = recorder.accounts();
  for (const Pins& other : {Pins{}, Pins{{"eu"}, {{100, kEu}}}, pins_of({{60, kEu}, {30, kUs}})}) {
    const auto applied = accounts.apply(encode_record(ledger::DataPinned{other}));
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::kCorrupt);
    EXPECT_EQ(accounts.pins(), pinned_config().train.pins);
    EXPECT_EQ(accounts.epochs().at(0).domains.size(), 2U);
  }
}

TEST(PinnedAccountsTest, TheAuditSaysWhatWasTrainedInEachDomain) {
  Recorder recorder = with_two_domains();
  std::set<std::uint64_t> trained;
  train_all(recorder, kInUs, trained);
  train_all(recorder, kInEu, trained);
  recorder.step(ledger::JobFinished{});
  const AuditReport report = audit(recorder.accounts());
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.epochs.at(0).domains.at(0).trained, 60U);
  EXPECT_NE(audit_table(report).find("epoch 1: domain us: 40 of its 40 records trained"),
            std::string::npos);
  EXPECT_NE(audit_json(report).find(R"({"name":"eu","records":60,"trained":60})"),
            std::string::npos);
}

}  // namespace
}  // namespace antdt::shard_server
