// The ledger against a model that lists every record, under random events:
// messages lost and repeated, members lost, generations settled, restarts.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "core/wire/shard_messages.h"
#include "recorder.h"
#include "records_of.h"
#include "tests/sanitized.h"

namespace antdt::shard_server {
namespace {

constexpr std::uint64_t kRecords = 230;
constexpr int kWorkers = 4;

// Workers 0 and 1 are in the first domain, and 2 and 3 in the second.
Pins pinned(const std::vector<PinnedRun>& runs) { return {{"eu", "us"}, runs}; }

LedgerConfig config(bool pins) {
  LedgerConfig config;
  config.train = {kRecords, 20, Shuffle::kFull, 5};
  config.eval = {kRecords / 2, 20, Shuffle::kNone, 5};
  config.retry_limit = 1'000'000;
  if (!pins) return config;
  constexpr DomainNumber kEu{1}, kUs{2};
  config.train.pins = pinned({{70, kEu}, {50, kUs}, {33, kEu}, {77, kUs}});
  config.eval.pins = pinned({{15, kUs}, {60, kEu}, {40, kUs}});
  return config;
}

// A worker as the client library is: one request at a time, grants in order.
struct Worker {
  Member member;
  Generation generation;
  bool joined = false;
  std::uint64_t seq = 0;
  std::optional<ledger::FetchRequested> outstanding;
  std::vector<std::uint64_t> granted;  // every record since the phase or generation began
  std::uint64_t taken = 0;             // how many of them it has trained
  std::uint64_t place = 0;             // how many of them are in the model for good
  std::uint64_t late_seq = 0;          // of the last request that gave late records back
  std::uint64_t recall = 0;            // the last recall that it obeyed, and what that took
  std::uint64_t recalled = 0;
};

class Model {
 public:
  Model(std::uint32_t seed, bool pins) : random_(seed), config_(config(pins)), recorder_(config_) {
    if (pins) step(ledger::DataPinned{config_.train.pins});
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back({});
      workers_.back().member = {{'w', static_cast<std::uint32_t>(i)}, Attempt{1}};
    }
    open_next();
  }

  void run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFatalFailure(); ++i) {
      now_ += std::chrono::milliseconds(random(100));
      random_event();
      check();
    }
    // There are no further faults; the rest is finished.
    for (int i = 0; i < 3000 && !recorder_.ledger().complete(); ++i) {
      now_ += std::chrono::milliseconds(100);
      for (Worker& worker : workers_) {
        if (!worker.joined) admit(worker);
        if (!worker.outstanding) worker.taken = worker.place = worker.granted.size();
        fetch(worker, 40, false);
      }
      check();
    }
    ASSERT_TRUE(recorder_.ledger().complete());
    check_epoch_is_whole();
    check_replay();
  }

  [[nodiscard]] int recalls() const { return recalls_; }
  [[nodiscard]] int late() const { return late_; }

 private:
  std::uint64_t random(std::uint64_t below) { return random_() % below; }
  Worker& any_worker() { return workers_[random(workers_.size())]; }
  ledger::Effects step(const ledger::Input& event) { return recorder_.step(event, now_); }

  void random_event() {
    Worker& worker = any_worker();
    if (!worker.joined) return admit(worker);
    switch (random(24)) {
      case 0:
        return lose(worker);
      case 1:
        return settle();
      case 2:
        return recorder_.restart();
      case 3:
        return old_attempt_speaks(worker);
      case 4:
        return impossible_place(worker);
      case 5:
        return share();
      case 6:
        return skip();
      case 7:
      case 8:
        return progress(worker);
      case 9:
        if (recorder_.ledger().complete()) {
          check_epoch_is_whole();
          open_next();
        }
        return;
      default:
        work(worker);
        return fetch(worker, random(60), random(4) == 0);
    }
  }

  void open_next() {
    ++phase_;
    const PhaseKind kind = phase_ % 3 == 0 ? PhaseKind::kEval : PhaseKind::kTrain;
    const ledger::Effects effects =
        step(ledger::PhaseOpened{phase_, kind, Epoch{static_cast<std::uint32_t>(phase_ - 1)}});
    ASSERT_FALSE(find_effect<ledger::SendRefusal>(effects));
    const std::uint64_t size = kind == PhaseKind::kTrain ? kRecords : kRecords / 2;
    commits_.assign(size, 0);
    skipped_.assign(size, false);
    last_committed_ = 0;
    for (Worker& worker : workers_) reset(worker);
  }

  static void reset(Worker& worker) {
    worker.granted.clear();
    worker.taken = worker.place = 0;
    worker.recall = worker.recalled = 0;
    worker.outstanding.reset();
  }

  [[nodiscard]] DomainNumber domain_of(const Worker& worker) const {
    return DomainNumber{config_.train.pins.empty() ? 0 : 1 + worker.member.worker.index / 2};
  }

  void admit(Worker& worker) {
    worker.joined = true;
    reset(worker);
    worker.generation = generation_;
    step(ledger::MemberAdmitted{worker.member, generation_, domain_of(worker)});
  }

  void lose(Worker& worker) {
    step(ledger::MemberLost{worker.member});
    forget(worker, committed_of(worker));
    worker.member.attempt.value += 1;
    worker.seq = worker.late_seq = 0;
    worker.joined = false;
  }

  // The worker's records past `committed` have no holder any more.
  void forget(Worker& worker, std::uint64_t committed) {
    commit(worker, committed);
    reset(worker);
    committed_place_.erase(worker.member.worker);
  }

  void settle() {
    ledger::GenerationSettled settled{generation_.next(), {}, {}};
    std::map<WorkerId, std::uint64_t> places;
    for (Worker& worker : workers_) {
      if (!worker.joined) continue;
      const std::uint64_t known = committed_of(worker);
      const std::uint64_t place = known + random(worker.taken - known + 1);
      places[worker.member.worker] = place;
      settled.places.push_back({worker.member, place, random(2) == 0});
    }
    for (Worker& worker : workers_) {
      if (worker.joined) forget(worker, places.at(worker.member.worker));
      if (random(4) == 0) worker.member.attempt.value += 1, worker.seq = worker.late_seq = 0;
      worker.joined = random(5) != 0;
      if (!worker.joined) continue;
      worker.generation = generation_.next();
      settled.members.push_back(worker.member);
      if (!config_.train.pins.empty()) settled.domains.push_back(domain_of(worker));
    }
    ASSERT_FALSE(find_effect<ledger::SendRefusal>(step(settled)));
    generation_ = generation_.next();
    for (Worker& worker : workers_) {
      if (!worker.joined) worker.member.attempt.value += 1, worker.seq = worker.late_seq = 0;
    }
  }

  void share() {
    ledger::SharesPlanned shares;
    for (Worker& worker : workers_) {
      if (worker.joined) shares.shares.push_back({worker.member.worker, random(20), random(60)});
    }
    step(shares);
  }

  void skip() {
    const std::uint64_t size = commits_.size();
    const std::uint64_t from = random(size);
    const Interval at{from, std::min(size, from + 1 + random(6))};
    if (random(4) != 0) return;
    step(ledger::SkipDeclared{phase_, at, "bad"});
    const auto& kind = recorder_.ledger().phase();
    const EpochStream stream(kind.kind == PhaseKind::kTrain ? config_.train : config_.eval,
                             kind.epoch, kind.kind);
    for (const std::uint64_t record : records_of(stream.pieces(at.from, at.to))) {
      skipped_[record] = true;
    }
  }

  void work(Worker& worker) {
    worker.taken += random(worker.granted.size() - worker.taken + 1);
    // A worker that gives records back knows no position behind them before the answer.
    if (worker.outstanding && worker.outstanding->request.late > 0) return;
    worker.place += random(worker.taken - worker.place + 1);
  }

  void progress(Worker& worker) {
    step(ledger::ProgressReported{worker.member, worker.generation, phase_, worker.place});
    commit(worker, worker.place);
  }

  void fetch(Worker& worker, std::uint64_t want, bool answer_is_lost) {
    if (!worker.outstanding) {
      worker.outstanding = ledger::FetchRequested{
          worker.member, worker.generation, ++worker.seq, {phase_, worker.place, want, {}}};
      const bool training = recorder_.ledger().phase().kind == PhaseKind::kTrain;
      if (training && worker.taken > worker.place && random(5) == 0) {
        worker.outstanding->request.late = 1 + random(worker.taken - worker.place);
      }
    }
    deliver_fetch(worker, answer_is_lost);
    if (random(5) == 0 && worker.outstanding) deliver_fetch(worker, answer_is_lost);
  }

  void deliver_fetch(Worker& worker, bool answer_is_lost) {
    const ledger::FetchRequested request = *worker.outstanding;
    const std::size_t written = recorder_.journal().size();
    const ledger::Effects effects = step(request);
    commit(worker, request.request.place);
    give_back_late(worker, request);
    const auto* reply = find_effect<ledger::SendGrants>(effects);
    ASSERT_NE(reply, nullptr);
    ASSERT_NE(reply->grants.status, wire::GrantStatus::kStale);
    ASSERT_EQ(reply->seq, request.seq);
    const auto records = records_of(reply->grants.pieces);
    for (const std::uint64_t record : records) {
      ASSERT_FALSE(recorder_.journal().size() > written && skipped_[record]);
    }
    if (reply->grants.status == wire::GrantStatus::kEnd) check_epoch_is_whole();
    if (!answer_is_lost) {
      for (const std::uint64_t record : records) check_is_free(record, worker);
      worker.granted.insert(worker.granted.end(), records.begin(), records.end());
      worker.outstanding.reset();
      // The same request is repeated late, and gets the same answer.
      if (random(3) == 0) {
        const ledger::Effects again = step(request);
        ASSERT_EQ(records_of(find_effect<ledger::SendGrants>(again)->grants.pieces), records);
        ASSERT_EQ(again.size(), 1U);
      }
    }
    deliver_recalls(effects);
  }

  static auto iterator_at(std::vector<std::uint64_t>& records, std::uint64_t place) {
    return records.begin() + static_cast<std::ptrdiff_t>(place);
  }
  void give_back_late(Worker& worker, const ledger::FetchRequested& request) {
    const auto [place, late] = std::pair(request.request.place, request.request.late);
    if (late == 0 || worker.late_seq == request.seq) return;
    worker.late_seq = request.seq;
    worker.granted.erase(iterator_at(worker.granted, place),
                         iterator_at(worker.granted, place + late));
    worker.taken -= late;
    ++late_;
  }

  [[nodiscard]] DomainNumber pinned_to(std::uint64_t record) {
    const bool trains = recorder_.ledger().phase().kind == PhaseKind::kTrain;
    const Pins until = (trains ? config_.train : config_.eval).pins.first(record + 1);
    return until.empty() ? DomainNumber{} : until.runs.back().domain;
  }

  // A record has one holder at most, and none once it is in the model.
  void check_is_free(std::uint64_t record, const Worker& to) {
    ASSERT_EQ(commits_.at(record), 0) << "record " << record;
    ASSERT_EQ(pinned_to(record), domain_of(to)) << "record " << record;
    for (const Worker& worker : workers_) {
      for (std::uint64_t i = committed_of(worker); i < worker.granted.size(); ++i) {
        ASSERT_NE(worker.granted[i], record)
            << to_string(worker.member.worker) << " has what " << to_string(to.member.worker);
      }
    }
  }

  void deliver_recalls(const ledger::Effects& effects) {
    for (const ledger::Effect& effect : effects) {
      const auto* recall = std::get_if<ledger::SendRecall>(&effect);
      if (recall == nullptr || random(3) == 0) continue;  // lost
      Worker& worker = workers_.at(recall->member.worker.index);
      if (worker.outstanding) continue;
      if (worker.recall != recall->number) {
        const std::uint64_t end = std::min<std::uint64_t>(
            worker.granted.size(), std::max(recall->recall.keep_to, worker.taken));
        worker.recall = recall->number;
        worker.recalled = worker.granted.size() - end;
        worker.granted.resize(end);
      }
      ++recalls_;
      if (random(3) == 0) continue;  // the answer is lost
      const ledger::RecallAnswered answer{
          worker.member, worker.generation, recall->number, phase_, 0, worker.recalled};
      step(answer);
      step(answer);
    }
  }

  void old_attempt_speaks(Worker& worker) {
    if (worker.member.attempt.value < 2) return;
    const std::string before = recorder_.ledger().image();
    Member old = worker.member;
    old.attempt.value -= 1;
    const ledger::Effects effects = step(ledger::FetchRequested{
        old, worker.generation, 1 + random(50), {phase_, random(50), 20, {}}});
    ASSERT_EQ(find_effect<ledger::SendGrants>(effects)->grants.status, wire::GrantStatus::kStale);
    step(ledger::ProgressReported{old, worker.generation, phase_, random(50)});
    step(ledger::MemberLost{old});
    step(ledger::MemberAdmitted{old, worker.generation});
    ASSERT_EQ(recorder_.ledger().image(), before);
  }

  void impossible_place(Worker& worker) {
    const Holder& holder = recorder_.ledger().holders().at(worker.member.worker);
    const std::string before = recorder_.ledger().image();
    const std::uint64_t beyond = holder.end + 1 + random(100);
    step(ledger::ProgressReported{worker.member, worker.generation, phase_, beyond});
    ASSERT_TRUE(find_effect<ledger::SendRefusal>(step(ledger::FetchRequested{
        worker.member, worker.generation, worker.seq + 1, {phase_, beyond, 9, {}}})));
    ASSERT_EQ(recorder_.ledger().image(), before);
  }

  [[nodiscard]] std::uint64_t committed_of(const Worker& worker) const {
    const auto found = committed_place_.find(worker.member.worker);
    return found == committed_place_.end() || found->second.first != stamp(worker)
               ? 0
               : found->second.second;
  }
  // Identifies the beginning from which places are counted.
  [[nodiscard]] std::tuple<Member, std::uint64_t, std::uint64_t> stamp(const Worker& worker) const {
    return {worker.member, worker.generation.value, phase_};
  }
  void commit(const Worker& worker, std::uint64_t place) {
    for (std::uint64_t i = committed_of(worker); i < place; ++i) {
      commits_.at(worker.granted.at(i)) += 1;
    }
    committed_place_[worker.member.worker] = {stamp(worker), std::max(place, committed_of(worker))};
  }

  void check() {
    const Ledger& ledger = recorder_.ledger();
    std::uint64_t committed = 0;
    for (const int times : commits_) {
      ASSERT_LE(times, 1);
      committed += static_cast<std::uint64_t>(times);
    }
    ASSERT_EQ(ledger.committed(), committed);
    ASSERT_GE(committed, last_committed_);
    last_committed_ = committed;
    for (const Worker& worker : workers_) {
      if (!worker.joined) continue;
      const Holder& holder = ledger.holders().at(worker.member.worker);
      ASSERT_EQ(holder.place, committed_of(worker));
      ASSERT_GE(holder.end, worker.granted.size());
    }
    check_positions();
    if (random(8) == 0) check_replay();
    if (random(15) == 0) remember_image();
  }

  // Every position that the ledger reports as committed is, skipped records included.
  void check_positions() {
    const Ledger& ledger = recorder_.ledger();
    const Phase& phase = ledger.phase();
    const EpochStream stream(phase.kind == PhaseKind::kTrain ? config_.train : config_.eval,
                             phase.epoch, phase.kind);
    std::vector<int> committed(commits_.size(), 0);
    for (const Interval at : ledger.committed_positions().intervals()) {
      for (const std::uint64_t record : records_of(stream.pieces(at.from, at.to))) {
        ++committed[record];
      }
    }
    for (std::size_t record = 0; record < commits_.size(); ++record) {
      ASSERT_EQ(committed[record], commits_[record] == 0 ? 0 : 1) << "record " << record;
    }
  }

  void check_epoch_is_whole() {
    for (std::size_t record = 0; record < commits_.size(); ++record) {
      ASSERT_TRUE(commits_[record] == 1 || skipped_[record]) << "record " << record;
    }
    if (recorder_.ledger().phase().kind != PhaseKind::kTrain) return;
    const EpochAccount account = recorder_.accounts().epochs().back();
    std::uint64_t skipped = 0;
    for (std::size_t i = 0; i < commits_.size(); ++i) skipped += commits_[i] == 0;
    ASSERT_EQ(account.skipped, skipped);
    ASSERT_EQ(account.once, kRecords - skipped);
    ASSERT_EQ(account.repeated + account.lost + account.remaining, 0U);
    ASSERT_EQ(account.elsewhere, 0U);
    std::uint64_t trained = 0;
    for (const EpochAccount::Domain& domain : account.domains) trained += domain.trained;
    ASSERT_EQ(trained, account.domains.empty() ? 0 : account.once);
  }

  void remember_image() {
    kept_image_ = recorder_.ledger().image();
    kept_at_ = recorder_.journal().size();
    const auto restored = Accounts::restore(recorder_.accounts().image());
    ASSERT_TRUE(restored);
    ASSERT_EQ(restored->image(), recorder_.accounts().image());
  }

  void check_replay() {
    ASSERT_EQ(recorder_.replayed().image(), recorder_.ledger().image());
    if (kept_image_.empty()) return;
    ASSERT_EQ(recorder_.replayed(kept_at_).image(), kept_image_);
    auto restored = Ledger::restore(config_, kept_image_);
    ASSERT_TRUE(restored) << restored.error().message;
    ASSERT_EQ(recorder_.continued(std::move(*restored), kept_at_).image(),
              recorder_.ledger().image());
  }

  std::mt19937 random_;
  const LedgerConfig config_;
  Recorder recorder_;
  MonoTime now_{};
  Generation generation_{1};
  std::uint64_t phase_ = 0;
  std::vector<Worker> workers_;
  std::vector<int> commits_;  // per record of the data set
  std::vector<bool> skipped_;
  std::map<WorkerId, std::pair<std::tuple<Member, std::uint64_t, std::uint64_t>, std::uint64_t>>
      committed_place_;
  std::uint64_t last_committed_ = 0;
  std::string kept_image_;
  std::size_t kept_at_ = 0;
  int recalls_ = 0;
  int late_ = 0;
};

class LedgerModelTest : public ::testing::TestWithParam<std::tuple<std::uint32_t, bool>> {};

TEST_P(LedgerModelTest, EveryRecordHasOneHolderAndIsCommittedOnce) {
  const auto [group, pins] = GetParam();
  int recalls = 0;
  int late = 0;
  constexpr std::uint32_t kSeeds = all_or_some(25, 10);  // with pins recalls are rare
  for (std::uint32_t seed = group * 25; seed < group * 25 + kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Model model(seed, pins);
    model.run(300);
    recalls += model.recalls();
    late += model.late();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(recalls, 0);
  EXPECT_GT(late, 0);
}

constexpr std::uint32_t kGroups = all_or_some(8U, 2U);
INSTANTIATE_TEST_SUITE_P(Seeds, LedgerModelTest,
                         ::testing::Combine(::testing::Range(0U, kGroups),
                                            ::testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(PinnedSeeds, LedgerModelTest,
                         ::testing::Combine(::testing::Range(0U, kGroups),
                                            ::testing::Values(true)));

}  // namespace
}  // namespace antdt::shard_server
