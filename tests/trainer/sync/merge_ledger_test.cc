// The ledger of merged records, compared with replicas that keep each update with its weight, while
// members are lost at any moment.
#include "trainer/sync/merge_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/sanitized.h"
#include "trainer/sync/ds_sync/groups.h"

namespace antdt::sync {
namespace {

// Breaks a rule, to show that the comparison finds it.
enum class Sabotage {
  kNone,
  kLaggardDrops,  // a survivor drops a round that another survivor has concluded
  kCommitAtOnce,  // a member calls committed what all contain after the round just concluded
  kKeepMixed,     // a dropped round leaves the mixed replicas
  kTellTooSoon,   // what a lost member gives back is told before all have the mean of all
  kForgetRecord,  // a lost member gives back one record less than it should
};

using Record = std::uint64_t;
// The records that one member trained in one round of the present generation, in which it is known
// by its index.
struct Update {
  std::uint32_t origin = 0;
  std::uint64_t place = 0;  // of the origin, after it
  std::vector<Record> records;
};
// A replica of a linear model: how much of each update of this generation is in it. What was in it
// before is in all replicas.
using Weights = std::vector<double>;

Weights mean(const std::vector<const Weights*>& replicas, std::size_t updates) {
  Weights sum(updates, 0);
  for (const Weights* replica : replicas) {
    for (std::size_t i = 0; i < replica->size(); ++i) {
      sum[i] += (*replica)[i] / static_cast<double>(replicas.size());
    }
  }
  return sum;
}

struct Member {
  Weights replica;                 // after the round that it concluded last
  std::optional<Weights> pending;  // after the present round, once that is concluded
  std::uint64_t concluded = 0;
  bool lost = false;
  std::vector<Record> trained;         // in this generation, in order
  std::vector<std::uint64_t> claimed;  // by origin, what it called committed
};

// A job of counters: every record of a pool must be in the model once. Groups, losses and what is
// concluded at whom are random; the checks compare the ledger with the replicas.
class Job {
 public:
  Job(std::uint64_t seed, Sabotage sabotage) : random_(seed), sabotage_(sabotage) {
    all_ = 30 + below(60);
    for (Record r = 0; r < all_; ++r) pool_.push_back(r);
    const auto members = 1 + below(9);
    for (std::uint64_t i = 0; i < members; ++i) members_.emplace_back();
  }

  // Why the accounts are wrong; empty: they are right.
  std::string run() {
    for (int generations = 0; !done_ && wrong_.empty(); ++generations) {
      if (generations == 200) return "it never ends";
      generation();
    }
    return wrong_;
  }
  std::uint64_t losses = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  // From equal replicas to equal replicas.
  void generation() {
    updates_.clear();
    for (Member& member : members_) {
      member.replica.clear();
      member.pending.reset();
      member.concluded = 0;
      member.trained.clear();
      member.claimed.assign(size(), 0);
    }
    ledger_.emplace(std::vector<std::uint64_t>(size(), 0));
    schedule_.emplace(size(), random_());
    const std::uint64_t rounds = 1 + below(12);
    bool broke = false;
    for (std::uint64_t round = 1; round <= rounds && !broke && wrong_.empty(); ++round) {
      const bool trains = begin_round(Step{round});
      broke = chance(0.15) && some_are_lost();
      broke ? resolve(trains) : conclude_all(trains);
    }
    settle();
  }

  Groups random_groups() {
    std::vector<std::uint32_t> ranks(size());
    for (std::uint32_t i = 0; i < size(); ++i) ranks[i] = i;
    std::ranges::shuffle(ranks, random_);
    Groups groups;
    for (const std::uint32_t rank : ranks) {
      if (groups.empty() || chance(0.4)) groups.emplace_back();
      groups.back().push_back(rank);
    }
    return groups;
  }

  // All mix and compute. Returns whether the round will be applied if it is concluded.
  bool begin_round(Step round) {
    groups_ = chance(0.7) ? schedule_->groups(round) : random_groups();
    const bool trains = !chance(0.1);
    mix(groups_);
    places_.clear();
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      Member& member = members_[rank];
      Update update{rank, 0, {}};
      for (auto take = trains ? below(4) : 0; take > 0 && !pool_.empty(); --take) {
        update.records.push_back(pool_.back());
        pool_.pop_back();
      }
      member.trained.insert(member.trained.end(), update.records.begin(), update.records.end());
      places_.push_back(member.trained.size());
      update.place = member.trained.size();
      if (trains) {
        member.pending->resize(updates_.size() + 1, 0);
        member.pending->back() = 1;
        updates_.push_back(std::move(update));
      } else if (sabotage_ != Sabotage::kKeepMixed) {
        member.pending = member.replica;
      }
    }
    return trains;
  }

  void mix(const Groups& groups) {
    for (const auto& group : groups) {
      std::vector<const Weights*> replicas;
      for (const std::uint32_t rank : group) replicas.push_back(&members_[rank].replica);
      const Weights mixed = mean(replicas, updates_.size());
      for (const std::uint32_t rank : group) members_[rank].pending = mixed;
    }
  }

  void conclude(Member& member) {
    member.replica = std::move(*member.pending);
    member.pending.reset();
    ++member.concluded;
  }

  void conclude_all(bool trains) {
    record(*ledger_, trains);
    for (Member& member : members_) {
      conclude(member);
      claim(member);
    }
    check_replicas();
    check_weights();
  }
  void record(MergeLedger& ledger, bool trains) const {
    trains ? ledger.applied(groups_, places_) : ledger.dropped();
    ledger.check_invariants();
  }
  // What the member would report when it has concluded the present round.
  void claim(Member& member) {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      member.claimed[origin] = claimed_by(*ledger_, origin);
    }
  }
  std::uint64_t claimed_by(const MergeLedger& ledger, std::uint32_t origin) const {
    if (sabotage_ != Sabotage::kCommitAtOnce) return ledger.committable(origin);
    std::uint64_t least = ~0ULL;
    for (std::uint32_t holder = 0; holder < size(); ++holder) {
      if (!ledger.lost(holder)) least = std::min(least, ledger.contained(holder, origin));
    }
    return least;
  }

  // Some members have concluded the present round when the first is lost. Returns false if nobody
  // would survive.
  bool some_are_lost() {
    std::vector<std::uint32_t> lost;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (!members_[rank].lost && chance(0.35)) lost.push_back(rank);
    }
    if (lost.empty() || lost.size() == living()) return false;
    losses += lost.size();
    falls_ = lost;
    return true;
  }
  std::size_t living() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members_, [](const Member& m) { return !m.lost; }));
  }

  // The round is concluded at some of those who took part. Then the lost are gone, and the
  // survivors all conclude it or all drop it. It is a round that is applied if it `trains`, or one
  // that `consolidates`.
  void resolve(bool trains, bool consolidates = false) {
    const std::uint64_t before = members_[first_living()].concluded;
    MergeLedger after = *ledger_;
    consolidates ? after.consolidated() : record(after, trains);
    const double likely = chance(0.4) ? 0 : chance(0.5) ? 1 : 0.4;
    for (Member& member : members_) {
      if (member.lost || !chance(likely)) continue;
      conclude(member);
      for (std::uint32_t origin = 0; origin < size(); ++origin) {
        member.claimed[origin] = claimed_by(after, origin);
      }
    }
    for (const std::uint32_t rank : falls_) members_[rank].lost = true;
    std::vector<Step> concluded;
    for (const Member& member : members_) {
      if (!member.lost) concluded.push_back(Step{member.concluded});
    }
    for (Member& member : members_) {
      if (member.lost || !member.pending) continue;
      const auto what = undecided(Step{member.concluded}, concluded);
      if (!what) return wrong("survivors are two rounds apart");
      if (*what == Undecided::kConclude && sabotage_ != Sabotage::kLaggardDrops) {
        conclude(member);
      } else {
        if (sabotage_ == Sabotage::kKeepMixed) member.replica = *member.pending;
        member.pending.reset();
      }
    }
    const std::uint64_t furthest = std::ranges::max(concluded).value;
    if (furthest > before) *ledger_ = std::move(after);
    for (Member& member : members_) member.concluded = furthest;
    for (const std::uint32_t rank : falls_) ledger_->lose(rank);
    falls_.clear();
    check_replicas();
  }
  std::size_t first_living() const {
    return static_cast<std::size_t>(
        std::ranges::find_if(members_, [](const Member& m) { return !m.lost; }) - members_.begin());
  }

  // The survivors mix everything, however many more are lost meanwhile; then the lost give back.
  void settle() {
    if (!wrong_.empty()) return;
    std::vector<std::uint64_t> told = merged_places();
    for (bool broke = true; broke && wrong_.empty();) {
      Groups all(1);
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (!members_[rank].lost) all[0].push_back(rank);
      }
      mix(all);
      broke = chance(0.3) && some_are_lost();
      if (broke) {
        resolve(false, true);
        continue;
      }
      ledger_->consolidated();
      for (Member& member : members_) {
        if (!member.lost) conclude(member);
      }
    }
    if (sabotage_ != Sabotage::kTellTooSoon) told = merged_places();
    if (!wrong_.empty()) return;
    check_replicas();
    check_claims();
    give_back(told);
    end_or_change();
  }
  std::vector<std::uint64_t> merged_places() const {
    std::vector<std::uint64_t> places;
    for (std::uint32_t rank = 0; rank < size(); ++rank) places.push_back(ledger_->merged(rank));
    return places;
  }
  // Whatever was taken and is not in the model is granted again.
  void give_back(const std::vector<std::uint64_t>& places) {
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      const auto& trained = members_[rank].trained;
      std::uint64_t from = places[rank];
      if (sabotage_ == Sabotage::kForgetRecord && members_[rank].lost) ++from;
      for (auto i = from; i < trained.size(); ++i) pool_.push_back(trained[i]);
    }
  }

  void end_or_change() {
    const Weights& model = members_[first_living()].replica;
    for (std::size_t i = 0; i < model.size(); ++i) {
      for (const Record record : updates_[i].records) model_[record] += model[i] > 0 ? 1 : 0;
    }
    for (const Member& member : members_) {
      if (!member.lost && member.replica != model) return wrong("replicas differ");
    }
    if (pool_.empty()) {
      done_ = true;
      return check_model();
    }
    std::erase_if(members_, [](const Member& m) { return m.lost; });
    while (size() < 10 && chance(0.5)) members_.emplace_back();
  }

  // ------------------------------------------------------------------------- checks
  // What the ledger says of each living holder and each origin is exactly what is in the replica.
  void check_replicas() {
    for (std::uint32_t holder = 0; holder < size(); ++holder) {
      const Member& member = members_[holder];
      if (member.lost) continue;
      for (std::size_t i = 0; i < updates_.size(); ++i) {
        if (updates_[i].records.empty()) continue;
        const bool there = i < member.replica.size() && member.replica[i] > 0;
        const std::uint64_t place = ledger_->contained(holder, updates_[i].origin);
        const bool told = updates_[i].place <= place;
        if (there != told) return wrong("a replica differs from the ledger");
      }
    }
    check_claims();
  }
  // What anybody has called committed, even if it is lost by now, is in every survivor's replica.
  void check_claims() {
    for (const Member& claimer : members_) {
      for (std::uint32_t origin = 0; origin < size(); ++origin) {
        for (std::uint32_t holder = 0; holder < size(); ++holder) {
          if (members_[holder].lost) continue;
          if (ledger_->contained(holder, origin) < claimer.claimed[origin]) {
            return wrong("what was committed is not in a survivor");
          }
        }
      }
    }
  }
  // Mixing keeps the sum of all replicas: each update has the weight of one member in it.
  void check_weights() {
    Weights sum(updates_.size(), 0);
    for (const Member& member : members_) {
      for (std::size_t i = 0; i < member.replica.size(); ++i) sum[i] += member.replica[i];
    }
    for (const double weight : sum) {
      if (weight > 0 && std::abs(weight - 1) > 1e-9)
        return wrong("an update has changed its weight");
    }
  }
  void check_model() {
    if (model_.size() != all_) return wrong("a record was never trained");
    for (const auto& [record, count] : model_) {
      if (count != 1) return wrong("a record is not in the model once");
    }
  }

  std::mt19937_64 random_;
  const Sabotage sabotage_;
  std::vector<Record> pool_;  // records that nobody has
  std::size_t all_ = 0;
  std::vector<Member> members_;
  std::vector<Update> updates_;
  std::map<Record, int> model_;  // how often each record is in it
  std::optional<MergeLedger> ledger_;
  std::optional<ds_sync::GroupSchedule> schedule_;
  Groups groups_;
  std::vector<std::uint64_t> places_;
  std::vector<std::uint32_t> falls_;
  bool done_ = false;
  std::string wrong_;
};

TEST(MergeLedger, SaysExactlyWhatIsInTheSurvivorsOfThousandsOfJobs) {
  const std::uint64_t jobs = testing::all_or_some<std::uint64_t>(4000, 400);
  std::uint64_t losses = 0;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    Job job(seed, Sabotage::kNone);
    ASSERT_EQ(job.run(), "") << "seed " << seed;
    losses += job.losses;
  }
  RecordProperty("lost_members", std::to_string(losses));
  EXPECT_GT(losses, jobs);
}

// The comparison can fail: it finds each broken rule.
TEST(MergeLedger, ABrokenRuleIsFound) {
  for (const auto sabotage :
       {Sabotage::kLaggardDrops, Sabotage::kCommitAtOnce, Sabotage::kKeepMixed,
        Sabotage::kTellTooSoon, Sabotage::kForgetRecord}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      found += Job(seed, sabotage).run().empty() ? 0 : 1;
    }
    RecordProperty("sabotage_" + std::to_string(static_cast<int>(sabotage)), found);
    EXPECT_GT(found, 0) << static_cast<int>(sabotage);
  }
}

// Four members in a grid of 2 x 2: an update is in its group after the next round, and in all after
// two. It is committed when one round more has shown that all have concluded that.
TEST(MergeLedger, AnUpdateIsCommittedThreeRoundsAfterItsOwn) {
  MergeLedger ledger({0, 0, 0, 0});
  const Groups rows{{0, 1}, {2, 3}};
  const Groups columns{{0, 2}, {1, 3}};
  ledger.applied(rows, std::vector<std::uint64_t>{5, 0, 0, 0});
  EXPECT_EQ(ledger.contained(0, 0), 5U);
  EXPECT_EQ(ledger.contained(1, 0), 0U);
  ledger.applied(columns, std::vector<std::uint64_t>{5, 0, 0, 0});
  EXPECT_EQ(ledger.contained(2, 0), 5U);
  EXPECT_EQ(ledger.contained(3, 0), 0U);
  ledger.applied(rows, std::vector<std::uint64_t>{5, 0, 0, 0});
  EXPECT_EQ(ledger.contained(3, 0), 5U);
  EXPECT_EQ(ledger.committable(0), 0U);
  ledger.dropped();
  EXPECT_EQ(ledger.committable(0), 5U);
}

TEST(MergeLedger, ALostMemberGivesBackWhatNoSurvivorContains) {
  MergeLedger ledger({10, 20, 30, 40});
  ledger.applied({{0, 1}, {2, 3}}, std::vector<std::uint64_t>{11, 21, 31, 41});
  ledger.applied({{0, 2}, {1, 3}}, std::vector<std::uint64_t>{12, 22, 32, 42});
  ledger.lose(0);
  EXPECT_EQ(ledger.merged(0), 11U);  // in the replica of 2
  ledger.lose(2);
  EXPECT_EQ(ledger.merged(0), 10U);
  EXPECT_EQ(ledger.merged(1), 22U);
  ledger.consolidated();
  EXPECT_EQ(ledger.contained(3, 1), 22U);
  EXPECT_EQ(ledger.committable(1), 21U);  // if the consolidation is undecided at 3
  ledger.dropped();
  EXPECT_EQ(ledger.committable(1), 22U);
}

TEST(MergeLedger, ARoundThatASurvivorHasConcludedIsConcludedByAll) {
  const std::vector<Step> apart{Step{7}, Step{8}, Step{7}};
  EXPECT_EQ(undecided(Step{7}, apart), Undecided::kConclude);
  EXPECT_EQ(undecided(Step{8}, apart), Undecided::kDrop);
  EXPECT_EQ(undecided(Step{7}, std::vector{Step{7}, Step{7}}), Undecided::kDrop);
  EXPECT_EQ(undecided(Step{7}, std::vector{Step{7}, Step{9}}), std::nullopt);
}

}  // namespace
}  // namespace antdt::sync
