// The ledger of domains in step, compared with members that train counters, whose domains send one
// another real messages, while members are lost at any moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "trainer/sync/gaia/step_ledger.h"
#include "trainer/sync/gaia/update.h"
#include "trainer/sync/replica_version.h"

namespace antdt::sync::gaia {
namespace {

// Breaks a rule, to show that the comparison finds it.
enum class Breaks {
  kNothing,
  kKeepParts,     // holders do not withdraw what they have of a lost domain in part
  kKeepExchange,  // a dropped step leaves what was exchanged
  kCommitAtOnce,  // what was exchanged whole is committed in the step that did it
  kMergeParts,    // a lost domain gives back nothing of what it trained in concluded steps
  kGiveBackMore,  // a lost domain gives back one record more
  kTellTooSoon,   // what is given back is told before all holders have consolidated
  kForgetDomain,  // a lost member gives back as if its domain were lost, too
};

constexpr std::size_t kCellsOfRecord = 4;  // elements of each record
constexpr float kStepThreshold = 0.05F;
using Record = std::uint64_t;
using Values = std::vector<float>;

struct Replica {
  Values values, known;
  std::map<std::uint32_t, Values> parts;  // by other domain: what came since its last whole message
};

struct StepMember {
  std::uint32_t domain = 0;
  Replica replica;
  std::optional<Replica> pending;  // after the present step, if that will be concluded
  ReplicaVersion version;
  std::vector<Record> trained;
  std::vector<std::uint64_t> claimed;  // by rank: what this member called committed
  std::vector<std::uint64_t> merged;   // by rank, once it has consolidated
  bool lost = false;
};

// A job of counters. Training a record adds 1 to each of its cells, of which some begin with 100,
// so that 1 is not significant in them. Each must be in the model exactly once in the end.
class StepJob {
 public:
  StepJob(std::uint64_t seed, Breaks breaks) : random_(seed), breaks_(breaks) {
    all_ = 20 + below(40);
    for (Record r = 0; r < all_; ++r) pool_.push_back(r);
    for (std::size_t i = 0; i < all_ * kCellsOfRecord; ++i) model_.push_back(chance(0.5) ? 100 : 0);
    initial_ = model_;
    members_.resize(1 + below(8));
  }

  // Why the accounts are wrong; empty: they are right.
  std::string run() {
    for (int generations = 0; wrong_.empty() && !pool_.empty(); ++generations) {
      if (generations == 400) return "it never ends";
      train_a_generation();
    }
    if (wrong_.empty() && model_ != all_once()) return "a record is not in the model exactly once";
    return wrong_;
  }
  std::uint64_t lost_members = 0, lost_domains = 0, withdrawn = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  Values all_once() const {
    Values values = initial_;
    for (float& value : values) value += 1;
    return values;
  }

  // From equal replicas, over steps and losses, to equal replicas.
  void train_a_generation() {
    const std::uint64_t domains = 1 + below(4);
    std::vector<std::uint32_t> domain_of;
    for (StepMember& member : members_) {
      member = {};
      member.domain = static_cast<std::uint32_t>(below(domains));
      domain_of.push_back(member.domain);
      member.replica = {model_, model_, {}};
      member.version = {Step{0}, Generation{1}};
      member.claimed.assign(size(), 0);
    }
    generation_ = 1;
    ledger_.emplace(domain_of);
    behind_.reset();
    places_.assign(size(), 0);
    for (std::uint64_t steps = 1 + below(12); wrong_.empty();) {
      const bool last = steps-- == 1;
      begin_step();
      if (chance(0.15) || last) {
        interrupt();
        break;
      }
      conclude_all();
    }
    settle();
  }

  // ------------------------------------------------------------------------- a step
  void begin_step() {
    whole_ = chance(0.25);
    trains_ = !chance(0.1);
    for (StepMember& member : members_) member.pending = member.replica;
    std::vector<std::uint32_t> all;
    for (std::uint32_t rank = 0; rank < size(); ++rank) all.push_back(rank);
    exchange(all, whole_);
    if (!trains_) {
      for (StepMember& member : members_) {
        if (breaks_ != Breaks::kKeepExchange) member.pending = member.replica;
      }
      return;
    }
    for (std::uint32_t rank = 0; rank < size(); ++rank) train(rank);
  }
  void train(std::uint32_t rank) {
    for (auto take = below(3); take > 0 && !pool_.empty(); --take) {
      const Record record = pool_.back();
      pool_.pop_back();
      members_[rank].trained.push_back(record);
      for (StepMember& other : members_) {
        if (other.domain != members_[rank].domain) continue;
        for (std::size_t i = 0; i < kCellsOfRecord; ++i)
          other.pending->values[record * kCellsOfRecord + i] += 1;
      }
    }
    places_[rank] = members_[rank].trained.size();
  }

  // Each domain of these members sends a message, which the members of the others apply to what
  // they have pending.
  void exchange(const std::vector<std::uint32_t>& among, bool whole) {
    std::map<std::uint32_t, std::vector<std::byte>> sent;  // by domain
    for (const std::uint32_t rank : among) {
      StepMember& member = members_[rank];
      std::vector<std::byte> message;
      encoder_.encode({member.domain, 1, whole}, 0, member.pending->values, member.pending->known,
                      kStepThreshold, message);
      const auto [at, first] = sent.try_emplace(member.domain, message);
      if (!first && at->second != message) wrong("members of a domain send different messages");
    }
    for (const std::uint32_t rank : among) {
      for (const auto& [domain, bytes] : sent) {
        if (domain != members_[rank].domain) take(*members_[rank].pending, domain, bytes, whole);
      }
    }
  }
  void take(Replica& replica, std::uint32_t domain, const std::vector<std::byte>& bytes,
            bool whole) {
    const auto message = read_message(bytes, 0, replica.values.size());
    if (!message) return wrong(message.error().message);
    apply(*message, Direction::kAdd, replica.values, replica.known);
    Values& part = replica.parts.try_emplace(domain, Values(replica.values.size())).first->second;
    if (whole) {
      part.assign(part.size(), 0);
    } else {
      Values unused(part.size());
      apply(*message, Direction::kAdd, part, unused);
    }
  }

  void record(StepLedger& ledger) const {
    trains_ ? ledger.applied(whole_, places_) : ledger.dropped(places_);
    ledger.check_invariants();
  }
  void conclude(StepMember& member, const StepLedger& before, const StepLedger& after) {
    member.replica = std::move(*member.pending);
    member.pending.reset();
    ++member.version.step.value;
    if (trains_) member.version.consolidated = {};
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      const std::uint64_t whole = before.merged(rank, alone(rank));
      const bool at_once = breaks_ == Breaks::kCommitAtOnce && trains_ && whole_;
      member.claimed[rank] = at_once ? whole : after.committable(rank);
    }
  }
  // Holders with which the rank's whole domain goes on.
  static std::vector<std::uint32_t> alone(std::uint32_t rank) { return {rank}; }
  void conclude_all() {
    StepLedger after = *ledger_;
    record(after);
    for (StepMember& member : members_) conclude(member, *ledger_, after);
    ledger_ = std::move(after);
    check_replicas();
    check_claims();
  }

  // Some conclude the step, others do not, and then some of all, or whole domains, are gone.
  void interrupt() {
    StepLedger after = *ledger_;
    record(after);
    const double likely = chance(0.4) ? 0 : chance(0.5) ? 1 : 0.4;
    bool some = false;
    for (StepMember& member : members_) {
      if (chance(likely)) {
        some = true;
        conclude(member, *ledger_, after);
      } else if (breaks_ == Breaks::kKeepExchange) {
        member.replica.known = member.pending->known;
      }
      member.pending.reset();
    }
    if (some) {
      behind_ = std::move(ledger_);
      ledger_ = std::move(after);
    }
    lose_some();
    check_claims();
  }
  void lose_some() {
    const bool whole_domains = chance(0.5);
    std::map<std::uint32_t, bool> gone;
    for (StepMember& member : members_) {
      const bool lost =
          whole_domains ? gone.try_emplace(member.domain, chance(0.4)).first->second : chance(0.3);
      if (lost && !member.lost && living().size() > 1) {
        member.lost = true;
        ++lost_members;
      }
    }
  }
  std::vector<std::uint32_t> living() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (!members_[rank].lost) ranks.push_back(rank);
    }
    return ranks;
  }

  // ------------------------------------------------------------------------- a new generation
  // New generations are formed until one has consolidated and nobody is lost meanwhile. Then
  // members give back what is not in the model.
  void settle() {
    std::vector<std::uint64_t> told;
    for (bool broke = true; broke && wrong_.empty();) {
      ++generation_;
      const std::vector<std::uint32_t> holders = find_holders();
      if (told.empty()) told = merged_by(holders);
      broke = chance(0.4);
      consolidate(holders, broke);
      if (breaks_ != Breaks::kTellTooSoon) told = members_[holders.front()].merged;
      if (broke) lose_some();
    }
    if (!wrong_.empty()) return;
    check_claims();
    give_back(told);
    model_ = members_[living().front()].replica.values;
    std::erase_if(members_, [](const StepMember& member) { return member.lost; });
    while (size() < 9 && chance(0.5)) members_.emplace_back();
  }
  std::vector<std::uint32_t> find_holders() const {
    const std::vector<std::uint32_t> ranks = living();
    std::vector<ReplicaVersion> versions;
    for (const std::uint32_t rank : ranks) versions.push_back(members_[rank].version);
    std::vector<std::uint32_t> holders;
    for (const std::uint32_t i : furthest(versions)) holders.push_back(ranks[i]);
    return holders;
  }
  bool among(const std::vector<std::uint32_t>& holders, std::uint32_t domain) const {
    return std::ranges::any_of(holders,
                               [&](std::uint32_t h) { return members_[h].domain == domain; });
  }
  std::vector<std::uint64_t> merged_by(const std::vector<std::uint32_t>& holders) const {
    const StepMember& first = members_[holders.front()];
    if (first.version.equal() && !first.merged.empty()) return first.merged;
    Step furthest;
    for (const StepMember& member : members_) furthest = std::max(furthest, member.version.step);
    const StepLedger& ledger = first.version.step == furthest || !behind_ ? *ledger_ : *behind_;
    std::vector<std::uint64_t> places;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      places.push_back(ledger.merged(rank, holders));
      const bool lost = !among(holders, members_[rank].domain);
      if (breaks_ == Breaks::kMergeParts && lost) places.back() = ledger.merged(rank, alone(rank));
      if (breaks_ == Breaks::kGiveBackMore && lost && places.back() > 0) --places.back();
      if (breaks_ == Breaks::kForgetDomain && members_[rank].lost && places.back() > 0) {
        places.back() = ledger.committable(rank);
      }
    }
    return places;
  }
  // The replicas of the holders become equal; those of some of them only, if it `breaks`. In a
  // generation that is complete, all others get a copy.
  void consolidate(const std::vector<std::uint32_t>& holders, bool breaks) {
    const std::vector<std::uint64_t> places = merged_by(holders);
    const bool equal = members_[holders.front()].version.equal();
    if (!equal) {
      for (const std::uint32_t rank : holders) withdraw(rank, holders);
      exchange(holders, true);
    }
    for (const std::uint32_t rank : holders) {
      StepMember& member = members_[rank];
      std::optional<Replica> done = std::exchange(member.pending, std::nullopt);
      if (breaks && chance(0.5)) continue;
      if (!equal) {
        member.replica = std::move(*done);
        member.replica.parts.clear();
        member.version.consolidated = Generation{generation_};
        if (member.replica.values != member.replica.known) wrong("something is pending");
      }
      member.merged = places;
      check_merged(member);
    }
    const StepMember& source = members_[holders.front()];
    for (StepMember& member : members_) {
      if (breaks || member.lost) continue;
      if (member.version < source.version) {
        member.replica = source.replica;
        member.version = source.version;
        member.merged = source.merged;
      }
      if (member.replica.values != source.replica.values) wrong("replicas differ");
    }
  }
  void withdraw(std::uint32_t rank, const std::vector<std::uint32_t>& holders) {
    StepMember& member = members_[rank];
    member.pending = member.replica;
    for (const auto& [domain, part] : member.replica.parts) {
      if (among(holders, domain)) continue;
      ++lost_domains;
      for (std::size_t i = 0; i < part.size(); ++i) {
        if (part[i] == 0 || breaks_ == Breaks::kKeepParts) continue;
        ++withdrawn;
        member.pending->values[i] -= part[i];
        member.pending->known[i] -= part[i];
      }
    }
  }
  // Whatever was taken and is not in the model is granted again.
  void give_back(const std::vector<std::uint64_t>& places) {
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      const auto& trained = members_[rank].trained;
      for (auto i = places[rank]; i < trained.size(); ++i) pool_.push_back(trained[i]);
    }
  }

  // ------------------------------------------------------------------------- checks
  // How many cells of the record the replica has.
  std::size_t cells(const Replica& replica, Record record) const {
    std::size_t found = 0;
    for (std::size_t i = record * kCellsOfRecord; i < (record + 1) * kCellsOfRecord; ++i) {
      found += replica.values[i] == initial_[i] + 1 ? 1 : 0;
    }
    return found;
  }
  // What was trained in the own domain is in each replica, and nothing more than once.
  void check_replicas() {
    for (const StepMember& holder : members_) {
      for (std::size_t i = 0; i < initial_.size(); ++i) {
        const float times = holder.replica.values[i] - initial_[i];
        if (times != 0 && times != 1) return wrong("a part is in a replica more than once");
      }
      for (const StepMember& origin : members_) {
        if (origin.domain != holder.domain) continue;
        for (const Record record : origin.trained) {
          if (cells(holder.replica, record) != kCellsOfRecord)
            return wrong("a replica lacks its own");
        }
      }
    }
  }
  // A replica that was made equal has what the ledger says, and nothing in part.
  void check_merged(const StepMember& member) {
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      const auto& trained = members_[rank].trained;
      for (std::size_t i = 0; i < trained.size(); ++i) {
        const std::size_t expected = i < member.merged[rank] ? kCellsOfRecord : 0;
        if (cells(member.replica, trained[i]) != expected) {
          return wrong("a consolidated replica differs from the ledger");
        }
      }
    }
  }
  // What anybody has called committed, even if it is lost by now, is entirely in every survivor.
  void check_claims() {
    for (const StepMember& claimer : members_) {
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        for (std::size_t i = 0; i < claimer.claimed[rank]; ++i) {
          for (const StepMember& member : members_) {
            if (!member.lost &&
                cells(member.replica, members_[rank].trained[i]) != kCellsOfRecord) {
              return wrong("what was committed is not entirely in a survivor");
            }
          }
        }
      }
    }
  }

  std::mt19937_64 random_;
  const Breaks breaks_;
  Encoder encoder_;
  std::uint64_t all_ = 0;
  std::vector<Record> pool_;  // records that nobody has
  Values model_, initial_;
  std::vector<StepMember> members_;
  std::optional<StepLedger> ledger_;
  std::optional<StepLedger> behind_;  // as it was one step before, if some members are
  std::vector<std::uint64_t> places_;
  std::uint64_t generation_ = 1;
  bool whole_ = false, trains_ = false;
  std::string wrong_;
};

TEST(StepLedger, EveryRecordIsInTheModelOnceWhoeverIsLost) {
  const auto jobs = all_or_some<std::uint64_t>(3000, 300);
  std::uint64_t members = 0, domains = 0, withdrawn = 0;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    StepJob job(seed, Breaks::kNothing);
    ASSERT_EQ(job.run(), "") << "seed " << seed;
    members += job.lost_members;
    domains += job.lost_domains;
    withdrawn += job.withdrawn;
  }
  RecordProperty("lost_members", std::to_string(members));
  RecordProperty("withdrawals_of_lost_domains", std::to_string(domains));
  RecordProperty("withdrawn_elements", std::to_string(withdrawn));
  EXPECT_GT(members, jobs);
  EXPECT_GT(domains, jobs / 2);
  EXPECT_GT(withdrawn, jobs);
}

// The comparison can fail: it finds each broken rule.
TEST(StepLedger, ABrokenRuleIsFound) {
  for (const auto breaks :
       {Breaks::kKeepParts, Breaks::kKeepExchange, Breaks::kCommitAtOnce, Breaks::kMergeParts,
        Breaks::kGiveBackMore, Breaks::kTellTooSoon, Breaks::kForgetDomain}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      found += StepJob(seed, breaks).run().empty() ? 0 : 1;
    }
    RecordProperty("broken_" + std::to_string(static_cast<int>(breaks)), found);
    EXPECT_GT(found, 0) << static_cast<int>(breaks);
  }
}

// Ranks 0 and 1 are one domain, rank 2 is another.
TEST(StepLedger, RecordsAreCommittedOneStepAfterAWholeExchangeThatFollowsThem) {
  StepLedger ledger({0, 0, 1});
  ledger.applied(false, std::vector<std::uint64_t>{1, 2, 3});
  ledger.applied(true, std::vector<std::uint64_t>{4, 5, 6});
  EXPECT_EQ(ledger.committable(0), 0U);  // others may not have concluded that step
  ledger.applied(false, std::vector<std::uint64_t>{7, 8, 9});
  EXPECT_EQ(ledger.committable(0), 1U);
  EXPECT_EQ(ledger.committable(2), 3U);
  ledger.consolidated();
  EXPECT_EQ(ledger.committable(2), 3U);
  ledger.dropped(std::vector<std::uint64_t>{7, 8, 9});
  EXPECT_EQ(ledger.committable(2), 9U);
}

TEST(StepLedger, ALostDomainGivesBackWhatFollowedTheLastWholeExchangeAndALostMemberNothing) {
  StepLedger ledger({0, 0, 1});
  ledger.applied(false, std::vector<std::uint64_t>{1, 2, 3});
  ledger.applied(true, std::vector<std::uint64_t>{4, 5, 6});
  ledger.applied(false, std::vector<std::uint64_t>{7, 8, 9});
  const std::vector<std::uint32_t> only_0{0}, only_2{2}, both{1, 2};
  EXPECT_EQ(ledger.merged(1, only_0), 8U);  // in the replica of its domain
  EXPECT_EQ(ledger.merged(2, only_0), 3U);
  EXPECT_EQ(ledger.merged(0, only_2), 1U);
  EXPECT_EQ(ledger.merged(0, both), 7U);
}

TEST(StepLedger, AWholeExchangeThatWasTakenBackCountsForNothing) {
  StepLedger ledger({0, 1});
  ledger.applied(false, std::vector<std::uint64_t>{1, 1});
  ledger.dropped(std::vector<std::uint64_t>{1, 1});  // the exchange in it was whole
  ledger.applied(false, std::vector<std::uint64_t>{2, 2});
  EXPECT_EQ(ledger.committable(0), 0U);
  EXPECT_EQ(ledger.merged(1, std::vector<std::uint32_t>{0}), 0U);
}

TEST(StepLedger, WithOneDomainARecordIsCommittedWhenTheNextStepIsConcluded) {
  StepLedger ledger({3, 3});
  ledger.applied(false, std::vector<std::uint64_t>{1, 1});
  EXPECT_EQ(ledger.merged(1, std::vector<std::uint32_t>{0}), 1U);
  EXPECT_EQ(ledger.committable(0), 0U);
  ledger.applied(false, std::vector<std::uint64_t>{2, 2});
  EXPECT_EQ(ledger.committable(0), 1U);
}

}  // namespace
}  // namespace antdt::sync::gaia
