// The ledger of messages, compared with domains that train counters and send one another real
// messages, while domains are lost at any moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "trainer/sync/gaia/flush_ledger.h"
#include "trainer/sync/gaia/update.h"

namespace antdt::sync::gaia {
namespace {

// Breaks a rule, to show that the comparison finds it.
enum class Broken {
  kNothing,
  kKeepsParts,        // survivors do not withdraw what they have of a lost domain in part
  kDoesNotFetch,      // a survivor stays without messages that another has applied
  kCommitsParts,      // a record is called committed when all have a message after it
  kGivesBackTooMuch,  // a lost domain gives back one record more
  kForgetsTooSoon,    // messages are forgotten when all have applied them
  kTellsTooSoon,      // what a lost domain gives back is told before all have repaired
};

using Record = std::uint64_t;
constexpr std::size_t kCells = 4;  // elements of each record
constexpr float kThreshold = 0.05F;

struct Domain {
  std::vector<float> values, known;
  std::vector<Record> trained;
  std::vector<std::vector<std::byte>> sent;  // by clock - 1
  // Messages of each origin that it has applied and keeps, by clock.
  std::vector<std::map<std::uint64_t, std::vector<std::byte>>> kept;
  std::vector<std::uint64_t> applied;
  std::vector<std::uint64_t> claimed;  // by origin: what somebody called committed
  bool lost = false;
};

// A job of counters. Training a record adds 1 to each of its cells, of which some begin with 100,
// so that 1 is not significant in them, and must be there exactly once in the end.
class Job {
 public:
  Job(std::uint64_t seed, Broken broken) : random_(seed), broken_(broken) {
    all_ = 20 + below(30);
    for (Record r = 0; r < all_; ++r) pool_.push_back(r);
    for (std::size_t i = 0; i < all_ * kCells; ++i) model_.push_back(chance(0.5) ? 100 : 0);
    initial_ = model_;
    domains_.resize(1 + below(6));
  }

  // Why the accounts are wrong; empty: they are right.
  std::string run() {
    for (int rounds = 0; wrong_.empty(); ++rounds) {
      if (rounds == 300) return "it never ends";
      if (pool_.empty()) {
        check_model();
        break;
      }
      between_equal_replicas();
    }
    return wrong_;
  }
  std::uint64_t losses = 0, withdrawn = 0, fetched = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(domains_.size()); }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  std::vector<std::uint32_t> living() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t d = 0; d < size(); ++d) {
      if (!domains_[d].lost) all.push_back(d);
    }
    return all;
  }

  // From equal replicas, over training and losses, to equal replicas.
  void between_equal_replicas() {
    for (Domain& domain : domains_) {
      domain = {};
      domain.values = domain.known = model_;
      domain.kept.resize(size());
      domain.applied.assign(size(), 0);
      domain.claimed.assign(size(), 0);
    }
    ledger_.emplace(std::vector<std::uint64_t>(size(), 0));
    const std::uint64_t events = 5 + below(60);
    for (std::uint64_t i = 0; i < events && wrong_.empty(); ++i) {
      const auto all = living();
      const std::uint32_t d = all[below(all.size())];
      if (chance(0.4)) {
        train(d, chance(0.3));
      } else {
        const std::uint32_t origin = static_cast<std::uint32_t>(below(size()));
        if (origin != d && !domains_[origin].lost) receive(d, origin);
      }
      if (chance(0.04) && all.size() > 1) lose();
      forget();
      check_claims();
    }
    settle();
  }

  void train(std::uint32_t d, bool whole) {
    Domain& domain = domains_[d];
    for (auto take = below(3); take > 0 && !pool_.empty(); --take) {
      const Record record = pool_.back();
      pool_.pop_back();
      domain.trained.push_back(record);
      for (std::size_t i = 0; i < kCells; ++i) domain.values[record * kCells + i] += 1;
    }
    send(d, whole);
  }
  void send(std::uint32_t d, bool whole) {
    Domain& domain = domains_[d];
    domain.sent.emplace_back();
    domain.applied[d] = domain.sent.size();
    encoder().encode({d, domain.sent.size(), whole}, 0, domain.values, domain.known, kThreshold,
                     domain.sent.back());
    ledger_->sent(d, domain.trained.size(), whole);
  }
  static Encoder& encoder() {
    thread_local Encoder encoder;
    return encoder;
  }

  void receive(std::uint32_t holder, std::uint32_t origin) {
    const std::uint64_t next = domains_[holder].applied[origin] + 1;
    if (next > domains_[origin].sent.size()) return;
    take(holder, origin, next, domains_[origin].sent[next - 1]);
    ledger_->applied(holder, origin, next);
    claim();
  }
  void take(std::uint32_t holder, std::uint32_t origin, std::uint64_t clock,
            const std::vector<std::byte>& bytes) {
    Domain& domain = domains_[holder];
    change(domain, bytes, Direction::kAdd);
    domain.kept[origin][clock] = bytes;
    domain.applied[origin] = clock;
  }
  void change(Domain& domain, const std::vector<std::byte>& bytes, Direction direction) {
    const auto message = read_message(bytes, 0, domain.values.size());
    if (!message) return wrong(message.error().message);
    apply(*message, direction, domain.values, domain.known);
  }

  // What the domains may call committed now.
  void claim() {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      std::uint64_t place = ledger_->committable(origin);
      if (broken_ == Broken::kCommitsParts && !domains_[origin].lost) {
        place = domains_[origin].trained.size();
        for (const std::uint32_t d : living()) {
          if (domains_[d].applied[origin] < domains_[origin].sent.size()) place = 0;
        }
      }
      for (Domain& domain : domains_) {
        domain.claimed[origin] = std::max(domain.claimed[origin], place);
      }
    }
  }
  // What was called committed is entirely in each survivor.
  void check_claims() {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      const Domain& trainer = domains_[origin];
      for (std::uint64_t i = 0; i < trainer.claimed[origin]; ++i) {
        for (const std::uint32_t d : living()) {
          if (!contains(domains_[d], trainer.trained[i])) {
            return wrong("a committed record is not entirely in a survivor");
          }
        }
      }
    }
  }
  bool contains(const Domain& domain, Record record) const {
    for (std::size_t i = record * kCells; i < (record + 1) * kCells; ++i) {
      if (domain.values[i] != initial_[i] + 1) return false;
    }
    return true;
  }

  void lose() {
    const auto all = living();
    const std::uint32_t d = all[below(all.size())];
    domains_[d].lost = true;
    domains_[d].kept.assign(size(), {});  // it cannot be asked for what it kept
    ledger_->lose(d);
    ++losses;
  }

  // Nobody keeps more than the ledger asks for.
  void forget() {
    for (std::uint32_t origin = 0; origin < size(); ++origin) {
      std::uint64_t until = ledger_->kept_after(origin);
      if (broken_ == Broken::kForgetsTooSoon) {
        until = ~0ULL;
        for (const std::uint32_t d : living()) {
          if (d != origin) until = std::min(until, domains_[d].applied[origin]);
        }
      }
      for (Domain& domain : domains_) {
        std::erase_if(domain.kept[origin], [&](const auto& one) { return one.first <= until; });
      }
    }
  }

  // The survivors repair, whoever is lost meanwhile; the lost give back; all send everything.
  void settle() {
    auto told = merged_places();
    for (bool done = false; !done && wrong_.empty();) {
      done = true;
      for (const std::uint32_t holder : living()) {
        if (domains_[holder].lost) continue;
        for (std::uint32_t origin = 0; origin < size(); ++origin) {
          if (domains_[origin].lost) repair(holder, origin);
        }
        if (chance(0.1) && living().size() > 1) {
          lose();
          done = false;
        }
      }
    }
    if (broken_ != Broken::kTellsTooSoon) told = merged_places();
    for (std::uint32_t d = 0; d < size() && wrong_.empty(); ++d) {
      if (domains_[d].lost) give_back(d, told[d]);
    }
    for (const std::uint32_t d : living()) send(d, true);
    for (const std::uint32_t d : living()) {
      for (const std::uint32_t origin : living()) {
        while (d != origin && domains_[d].applied[origin] < domains_[origin].sent.size() &&
               wrong_.empty()) {
          receive(d, origin);
        }
      }
    }
    if (!wrong_.empty()) return;
    const auto all = living();
    model_ = domains_[all.front()].values;
    for (const std::uint32_t d : all) {
      if (domains_[d].values != model_) return wrong("replicas differ");
      if (domains_[d].known != model_) return wrong("something is pending after a whole message");
    }
    std::erase_if(domains_, [](const Domain& domain) { return domain.lost; });
    while (size() < 7 && chance(0.5)) domains_.emplace_back();
  }
  std::vector<std::uint64_t> merged_places() const {
    std::vector<std::uint64_t> places;
    for (std::uint32_t d = 0; d < size(); ++d) places.push_back(ledger_->merged(d));
    return places;
  }

  void repair(std::uint32_t holder, std::uint32_t origin) {
    Domain& domain = domains_[holder];
    const auto todo = ledger_->repair(holder, origin);
    for (std::uint64_t clock = todo.has; clock > todo.until; --clock) {
      if (broken_ == Broken::kKeepsParts) break;
      const auto found = domain.kept[origin].find(clock);
      if (found == domain.kept[origin].end()) return wrong("a message to withdraw was not kept");
      change(domain, found->second, Direction::kWithdraw);
      domain.kept[origin].erase(found);
      ++withdrawn;
    }
    for (std::uint64_t clock = todo.has + 1; clock <= todo.until; ++clock) {
      if (broken_ == Broken::kDoesNotFetch) break;
      std::optional<std::vector<std::byte>> bytes;
      for (const std::uint32_t d : living()) {
        const auto found = domains_[d].kept[origin].find(clock);
        if (found != domains_[d].kept[origin].end()) bytes = found->second;
      }
      if (!bytes) return wrong("nobody has kept a message that a survivor lacks");
      take(holder, origin, clock, *bytes);
      ++fetched;
    }
    domain.applied[origin] = todo.until;
    ledger_->repaired(holder, origin);
    if (ledger_->repair(holder, origin) != FlushLedger::Repair{todo.until, todo.until}) {
      wrong("a repair is not the end of it");
    }
  }

  void give_back(std::uint32_t d, std::uint64_t from) {
    const auto& trained = domains_[d].trained;
    if (broken_ == Broken::kGivesBackTooMuch && from > 0) --from;
    for (auto i = from; i < trained.size(); ++i) pool_.push_back(trained[i]);
  }

  void check_model() {
    for (std::size_t i = 0; i < model_.size(); ++i) {
      if (model_[i] != initial_[i] + 1) return wrong("a record is not in the model exactly once");
    }
  }

  std::mt19937_64 random_;
  const Broken broken_;
  std::uint64_t all_ = 0;
  std::vector<Record> pool_;  // records that nobody has
  std::vector<float> model_, initial_;
  std::vector<Domain> domains_;
  std::optional<FlushLedger> ledger_;
  std::string wrong_;
};

TEST(FlushLedger, EveryRecordIsInTheModelOnceWhoeverIsLost) {
  const auto jobs = all_or_some<std::uint64_t>(2000, 200);
  std::uint64_t losses = 0, withdrawn = 0, fetched = 0;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    Job job(seed, Broken::kNothing);
    ASSERT_EQ(job.run(), "") << "seed " << seed;
    losses += job.losses;
    withdrawn += job.withdrawn;
    fetched += job.fetched;
  }
  RecordProperty("lost_domains", std::to_string(losses));
  EXPECT_GT(losses, jobs);
  EXPECT_GT(withdrawn, jobs);
  EXPECT_GT(fetched, jobs / 10);
}

// The comparison can fail: it finds each broken rule.
TEST(FlushLedger, ABrokenRuleIsFound) {
  for (const auto broken :
       {Broken::kKeepsParts, Broken::kDoesNotFetch, Broken::kCommitsParts,
        Broken::kGivesBackTooMuch, Broken::kForgetsTooSoon, Broken::kTellsTooSoon}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      found += Job(seed, broken).run().empty() ? 0 : 1;
    }
    RecordProperty("broken_" + std::to_string(static_cast<int>(broken)), found);
    EXPECT_GT(found, 0) << static_cast<int>(broken);
  }
}

TEST(FlushLedger, ARecordIsCommittedByAWholeMessageThatAllHaveApplied) {
  FlushLedger ledger({10, 0, 0});
  ledger.sent(0, 15, false);
  ledger.applied(1, 0, 1);
  ledger.applied(2, 0, 1);
  EXPECT_EQ(ledger.committable(0), 10U);  // the others have parts of five records
  EXPECT_EQ(ledger.in_part(0), 5U);
  ledger.sent(0, 20, true);
  ledger.applied(1, 0, 2);
  EXPECT_EQ(ledger.committable(0), 10U);
  EXPECT_EQ(ledger.merged(0), 20U);
  EXPECT_EQ(ledger.kept_after(0), 0U);
  ledger.applied(2, 0, 2);
  EXPECT_EQ(ledger.committable(0), 20U);
  EXPECT_EQ(ledger.kept_after(0), 2U);
}

TEST(FlushLedger, SurvivorsGoBackOrForwardToTheFurthestWholeMessageThatOneOfThemHas) {
  FlushLedger ledger({0, 0, 0, 0});
  for (std::uint64_t clock = 1; clock <= 6; ++clock) {
    ledger.sent(0, 10 * clock, clock % 3 == 0);
  }
  ledger.applied(1, 0, 5);
  ledger.applied(2, 0, 2);
  ledger.applied(3, 0, 6);
  ledger.lose(0);
  EXPECT_EQ(ledger.repair(1, 0), (FlushLedger::Repair{6, 5}));
  EXPECT_EQ(ledger.merged(0), 60U);
  ledger.lose(3);  // with the last whole message
  EXPECT_EQ(ledger.repair(1, 0), (FlushLedger::Repair{3, 5}));
  EXPECT_EQ(ledger.repair(2, 0), (FlushLedger::Repair{3, 2}));
  EXPECT_EQ(ledger.merged(0), 30U);
  EXPECT_EQ(ledger.in_part(0), 20U);
}

}  // namespace
}  // namespace antdt::sync::gaia
