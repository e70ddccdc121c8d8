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
#include "trainer/sync/replica_version.h"

namespace antdt::sync {
namespace {

// Breaks a rule, to show that the comparison finds it.
enum class Sabotage {
  kNone,
  kLaggardHolds,   // a survivor that is behind takes part in the consolidation
  kCommitAtOnce,   // a member calls committed what all contain after the round just concluded
  kKeepMixed,      // a dropped round leaves the mixed replicas
  kTellTooSoon,    // what members give back is told before all holders have the mean of all
  kForgetRecord,   // a lost member gives back one record less than it should
  kCountVersions,  // a consolidation is known by its number and not by its generation, so those of
                   // two generations are taken for the same
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
  ReplicaVersion version;
  bool lost = false;
  bool away = false;  // not lost, and yet not in the generation that is being formed
  std::vector<std::uint64_t> merged;   // by origin, once its replica is one that was consolidated
  std::vector<Record> trained;         // in this generation, in order
  std::vector<std::uint64_t> claimed;  // by origin, what it called committed
};

// A job of counters: every record of a pool must be in the model once. Groups, losses, who is in a
// generation and what is concluded at whom are random; the checks compare the ledger with the
// replicas.
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
      member = Member{};
      member.version = {Step{}, Generation{1}};
      member.claimed.assign(size(), 0);
    }
    generation_ = 1;
    behind_.reset();
    ledger_.emplace(std::vector<std::uint64_t>(size(), 0));
    schedule_.emplace(size(), random_());
    const std::uint64_t rounds = 1 + below(12);
    bool broke = false;
    for (std::uint64_t round = 1; round <= rounds && !broke && wrong_.empty(); ++round) {
      const bool trains = begin_round(Step{round});
      broke = chance(0.15) && some_fall();
      broke ? interrupt(trains) : conclude_all(trains);
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

  void conclude(Member& member, bool trains) {
    member.replica = std::move(*member.pending);
    member.pending.reset();
    ++member.version.step.value;
    if (trains) member.version.consolidated = {};
  }

  void conclude_all(bool trains) {
    record(*ledger_, trains);
    for (Member& member : members_) {
      conclude(member, trains);
      claim(member, *ledger_);
    }
    check_replicas();
    check_weights();
  }
  void record(MergeLedger& ledger, bool trains) const {
    trains ? ledger.applied(groups_, places_) : ledger.dropped();
    ledger.check_invariants();
  }
  // What the member would report when it has concluded the present round.
  void claim(Member& member, const MergeLedger& ledger) {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      std::uint64_t claimed = ledger.committable(origin);
      if (sabotage_ == Sabotage::kCommitAtOnce) {
        claimed = ~0ULL;
        for (std::uint32_t holder = 0; holder < size(); ++holder) {
          claimed = std::min(claimed, ledger.contained(holder, origin));
        }
      }
      member.claimed[origin] = claimed;
    }
  }

  // Who will be lost at this moment. Returns false if nobody is, or nobody would survive.
  bool some_fall() {
    std::vector<std::uint32_t> lost;
    std::size_t living = 0;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (members_[rank].lost) continue;
      ++living;
      if (chance(0.35)) lost.push_back(rank);
    }
    if (lost.empty() || lost.size() == living) return false;
    losses += lost.size();
    falls_ = lost;
    return true;
  }
  void fall() {
    for (const std::uint32_t rank : falls_) members_[rank].lost = true;
    falls_.clear();
  }

  // The round is concluded at some of those who took part, before some of all are gone. The others
  // drop it.
  void interrupt(bool trains) {
    MergeLedger after = *ledger_;
    record(after, trains);
    const double likely = chance(0.4) ? 0 : chance(0.5) ? 1 : 0.4;
    bool some = false;
    for (Member& member : members_) {
      if (chance(likely)) {
        some = true;
        conclude(member, trains);
        claim(member, after);
        continue;
      }
      if (sabotage_ == Sabotage::kKeepMixed) member.replica = *member.pending;
      member.pending.reset();
    }
    if (some) {
      behind_ = std::move(ledger_);
      ledger_ = std::move(after);
    }
    fall();
    check_claims();
  }

  // New generations are formed, of survivors or of some of them, until one has consolidated and
  // nobody is lost meanwhile. Then members give back what is not in the model.
  void settle() {
    if (!wrong_.empty()) return;
    std::vector<std::uint64_t> told;
    for (bool broke = true; broke && wrong_.empty();) {
      ++generation_;
      for (Member& member : members_) member.away = !member.lost && chance(0.2);
      const std::vector<std::uint32_t> holders = find_holders();
      if (holders.empty()) continue;  // all are lost or away
      if (told.empty()) told = merged_by(holders);
      broke = chance(0.4);
      consolidate(holders, broke);
      if (sabotage_ != Sabotage::kTellTooSoon) told = members_[holders.front()].merged;
    }
    if (!wrong_.empty()) return;
    check_claims();
    give_back(told);
    end_or_change();
  }
  std::vector<std::uint32_t> find_holders() const {
    std::vector<std::uint32_t> ranks;
    std::vector<ReplicaVersion> versions;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (members_[rank].lost || members_[rank].away) continue;
      ranks.push_back(rank);
      versions.push_back(members_[rank].version);
      if (sabotage_ == Sabotage::kCountVersions && versions.back().equal()) {
        versions.back().consolidated = Generation{1};
      }
    }
    if (sabotage_ == Sabotage::kLaggardHolds) return ranks;
    std::vector<std::uint32_t> holders;
    for (const std::uint32_t i : furthest(versions)) holders.push_back(ranks[i]);
    return holders;
  }
  // What each of these knows by itself.
  std::vector<std::uint64_t> merged_by(const std::vector<std::uint32_t>& holders) {
    const Member& first = members_[holders.front()];
    if (first.version.equal() && !first.merged.empty()) return first.merged;
    // A holder may be the only one that did not conclude the last round.
    const bool concluded = first.version.step == furthest_step();
    const MergeLedger& ledger = concluded || !behind_ ? *ledger_ : *behind_;
    std::vector<std::uint64_t> places;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      places.push_back(ledger.merged(rank, holders));
    }
    return places;
  }
  // After the last round of this generation that anybody has concluded.
  Step furthest_step() const {
    Step step;
    for (const Member& member : members_) step = std::max(step, member.version.step);
    return step;
  }
  // The replicas of the holders become equal; those of some of them only, if it `breaks`, when some
  // members are lost. In a generation that is complete, all others get a copy.
  void consolidate(const std::vector<std::uint32_t>& holders, bool breaks) {
    const std::vector<std::uint64_t> places = merged_by(holders);
    std::vector<const Weights*> replicas;
    for (const std::uint32_t rank : holders) replicas.push_back(&members_[rank].replica);
    const bool equal = members_[holders.front()].version.equal();
    const Weights mixed = equal ? *replicas.front() : mean(replicas, updates_.size());
    for (const std::uint32_t rank : holders) {
      Member& member = members_[rank];
      if (!wrong_.empty() || (breaks && chance(0.5))) continue;
      if (!equal) member.version.consolidated = Generation{generation_};
      if (equal && member.replica != mixed) wrong("replicas of one version differ");
      member.replica = mixed;
      member.merged = places;
      check_merged(member);
    }
    const Member& source = members_[holders.front()];
    for (Member& member : members_) {
      if (!breaks && !member.lost && !member.away && member.version < source.version) {
        member.replica = source.replica;
        member.version = source.version;
        member.merged = source.merged;
      }
    }
    if (breaks) return some_fall() ? fall() : void();
    // Who is away is no member of the new generation.
    for (Member& member : members_) member.lost = member.lost || member.away;
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
    const auto first = std::ranges::find_if(members_, [](const Member& m) { return !m.lost; });
    const Weights& model = first->replica;
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
  // What the ledger says of each member and each origin is exactly what is in the replica.
  void check_replicas() {
    for (std::uint32_t holder = 0; holder < size(); ++holder) {
      for (std::uint32_t origin = 0; origin < size(); ++origin) {
        check_replica(members_[holder], origin, ledger_->contained(holder, origin));
      }
    }
    check_claims();
  }
  void check_replica(const Member& member, std::uint32_t origin, std::uint64_t place) {
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      if (updates_[i].origin != origin || updates_[i].records.empty()) continue;
      const bool there = i < member.replica.size() && member.replica[i] > 0;
      if (there != (updates_[i].place <= place)) return wrong("a replica differs from the ledger");
    }
  }
  void check_merged(const Member& member) {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      check_replica(member, origin, member.merged[origin]);
    }
  }
  // What anybody has called committed, even if it is lost by now, is in every survivor's replica.
  void check_claims() {
    for (const Member& claimer : members_) {
      for (const Update& update : updates_) {
        if (update.records.empty() || update.place > claimer.claimed[update.origin]) continue;
        const auto i = static_cast<std::size_t>(&update - updates_.data());
        for (const Member& member : members_) {
          if (member.lost) continue;
          const bool there = i < member.replica.size() && member.replica[i] > 0;
          if (!there) return wrong("what was committed is not in a survivor");
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
  std::optional<MergeLedger> behind_;  // as it was one round before, if some are
  std::uint64_t generation_ = 1;
  std::optional<ds_sync::GroupSchedule> schedule_;
  Groups groups_;
  std::vector<std::uint64_t> places_;
  std::vector<std::uint32_t> falls_;
  bool done_ = false;
  std::string wrong_;
};

TEST(MergeLedger, SaysExactlyWhatIsInTheSurvivorsOfThousandsOfJobs) {
  const std::uint64_t jobs = all_or_some<std::uint64_t>(4000, 400);
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
       {Sabotage::kLaggardHolds, Sabotage::kCommitAtOnce, Sabotage::kKeepMixed,
        Sabotage::kTellTooSoon, Sabotage::kForgetRecord, Sabotage::kCountVersions}) {
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

TEST(MergeLedger, AMemberGivesBackWhatNoHolderContains) {
  MergeLedger ledger({10, 20, 30, 40});
  ledger.applied({{0, 1}, {2, 3}}, std::vector<std::uint64_t>{11, 21, 31, 41});
  ledger.applied({{0, 2}, {1, 3}}, std::vector<std::uint64_t>{12, 22, 32, 42});
  const std::vector<std::uint32_t> without_0{1, 2, 3};
  const std::vector<std::uint32_t> right{1, 3};
  EXPECT_EQ(ledger.merged(0, without_0), 11U);  // in the replica of 2
  EXPECT_EQ(ledger.merged(0, right), 10U);
  EXPECT_EQ(ledger.merged(1, right), 22U);
  ledger.consolidated();
  EXPECT_EQ(ledger.contained(3, 0), 12U);
  EXPECT_EQ(ledger.committable(0), 10U);  // others may not have completed the consolidation
  ledger.dropped();
  EXPECT_EQ(ledger.committable(0), 12U);
}

TEST(MergeLedger, AMemberWithoutAGroupKeepsItsReplica) {
  MergeLedger ledger({0, 0, 0});
  ledger.applied({{0, 1}}, std::vector<std::uint64_t>{1, 1, 1});
  ledger.applied({{0, 1}}, std::vector<std::uint64_t>{2, 2, 2});
  EXPECT_EQ(ledger.contained(0, 1), 1U);
  EXPECT_EQ(ledger.contained(2, 1), 0U);
  EXPECT_EQ(ledger.contained(2, 2), 2U);
}

}  // namespace
}  // namespace antdt::sync
