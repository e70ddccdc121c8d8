// The desk that hands out the records of shared steps, and who shares with whom.
#include "trainer/worker/sharing/share_desk.h"

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <random>

#include "trainer/worker/sharing/share_seat.h"

namespace antdt::worker::sharing {
namespace {

// Members and a desk in virtual time. `cost(member, records)` is in seconds. Messages are late,
// lost and repeated as far as `bad_network` says; an ask that is not answered is repeated.
class Group {
 public:
  Group(std::uint32_t members, const ShareRules& rules) : desk_(members, rules) {
    for (std::uint32_t i = 0; i < members; ++i) seats_.emplace_back(i, rules);
  }
  std::function<double(std::uint32_t, std::uint32_t)> cost;
  double bad_network = 0;
  std::uint64_t runs = 0;

  // The time of a step with these parts. Fails unless each record is computed once.
  double step(const std::vector<std::uint32_t>& parts) {
    ++step_;
    const double began = now_;
    computed_.assign(parts.size(), {});
    done_ = 0;
    for (std::uint32_t i = 0; i < parts.size(); ++i) computed_[i].assign(parts[i], 0);
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      send(seats_[i].begin(Step{step_}, parts[i], 0));
      compute(i, seats_[i].first_run());
    }
    double end = began;
    while (!events_.empty() && done_ < parts.size()) {
      const Event event = events_.top();
      events_.pop();
      end = now_ = event.at;
      event.what();
    }
    EXPECT_EQ(done_, parts.size()) << "a member waits for ever";
    for (const auto& part : computed_) {
      for (const int times : part) EXPECT_EQ(times, 1);
    }
    return end - began;
  }

 private:
  struct Event {
    double at = 0;
    std::uint64_t number = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::pair(other.at, other.number) < std::pair(at, number);
    }
  };
  void after(double seconds, std::function<void()> what) {
    events_.push({now_ + seconds, ++events_so_far_, std::move(what)});
  }
  [[nodiscard]] double chance() { return std::uniform_real_distribution<double>()(random_); }
  // Between a member and its desk.
  void carry(const std::function<void()>& what) {
    if (chance() < bad_network) return;
    const int copies = chance() < bad_network ? 2 : 1;
    for (int i = 0; i < copies; ++i) after(1e-4 * (1 + 50 * bad_network * chance()), what);
  }
  void send(const Input& input) {
    carry([this, input] {
      Effects answers;
      desk_.step(input, MonoTime(from_seconds(1 + now_)), answers);
      for (const Answer& a : answers) {
        carry([this, a] { hear(a); });
      }
    });
  }
  void compute(std::uint32_t i, const Run& run) {
    for (std::uint32_t r = run.from; r < run.to; ++r) ++computed_[run.owner].at(r);
    if (run.records() == 0) return ready(i);
    ++runs;
    after(cost(i, run.records()), [this, i] { ready(i); });
  }
  void ready(std::uint32_t i) {
    if (const auto asked = seats_[i].ready()) {
      ask(*asked);
    } else {
      ++done_;
    }
  }
  void ask(const Asked& asked) {
    const ShareSeat& seat = seats_[asked.offer.member];
    if (asked.offer.step != Step{step_} || !seat.waits()) return;
    send(asked);
    if (bad_network > 0) after(0.01, [this, asked] { ask(asked); });
  }
  void hear(const Answer& answer) {
    if (const auto run = seats_[answer.member].hear(answer)) compute(answer.member, *run);
  }

  ShareDesk desk_;
  std::vector<ShareSeat> seats_;
  std::vector<std::vector<int>> computed_;
  std::priority_queue<Event> events_;
  std::uint64_t events_so_far_ = 0;
  std::uint64_t step_ = 0;
  std::size_t done_ = 0;
  double now_ = 0;
  std::mt19937_64 random_{1};
};

double sum(const std::vector<std::uint32_t>& parts) {
  double all = 0;
  for (const std::uint32_t part : parts) all += part;
  return all;
}

// The mean time of `steps` steps.
double steps(Group& group, const std::vector<std::uint32_t>& parts, int steps) {
  double seconds = 0;
  for (int i = 0; i < steps; ++i) seconds += group.step(parts);
  return seconds / steps;
}

TEST(ShareDeskTest, AMemberThatIsSlowInAStepComputesLessOfIt) {
  Group group(8, ShareRules{});
  bool slow = false;
  group.cost = [&](std::uint32_t member, std::uint32_t records) {
    return 0.01 * records * (slow && member == 0 ? 4 : 1);
  };
  const std::vector<std::uint32_t> parts(8, 32);
  const double alike = group.step(parts);
  EXPECT_LT(alike, 0.32 * 1.02);
  slow = true;
  const double ideal = 0.01 * sum(parts) / 7.25;
  EXPECT_LT(group.step(parts), 1.15 * ideal) << "and not 4 times as long";
}

TEST(ShareDeskTest, NoisyMembersEndNearlyTogether) {
  Group group(32, ShareRules{});
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(1, 0.1);
  group.cost = [&](std::uint32_t, std::uint32_t records) {
    return 1.0 / 32 * records * noise(random);
  };
  EXPECT_LT(steps(group, std::vector<std::uint32_t>(32, 32), 200), 1 / 0.95) << "alone: 1 / 0.83";
}

TEST(ShareDeskTest, MembersThatAreSteadyAskOnce) {
  Group group(4, ShareRules{});
  group.cost = [](std::uint32_t, std::uint32_t records) { return 0.01 * records; };
  const std::vector<std::uint32_t> parts(4, 32);
  static_cast<void>(steps(group, parts, 200));
  group.runs = 0;
  EXPECT_LT(steps(group, parts, 100), 0.32 * 1.004);
  EXPECT_EQ(group.runs, 2 * 4 * 100U);
}

TEST(ShareDeskTest, AMemberThatWasSlowABitAgoBeginsWithLess) {
  Group group(4, ShareRules{});
  double slowdown = 1;
  group.cost = [&](std::uint32_t member, std::uint32_t records) {
    return 0.01 * records * (member == 2 ? slowdown : 1);
  };
  const std::vector<std::uint32_t> parts(4, 32);
  static_cast<void>(steps(group, parts, 200));
  slowdown = 4;
  EXPECT_GT(group.step(parts), 0.8 * 4 * 0.32) << "it began with nearly all of its part";
  const double ideal = 0.01 * sum(parts) / 3.25;
  EXPECT_LT(group.step(parts), 3 * ideal) << "the desk hears of it before it answers";
  EXPECT_LT(group.step(parts), 1.15 * ideal);
}

TEST(ShareDeskTest, RunsAreNotSoSmallThatTheirRecordsAreDear) {
  Group group(8, ShareRules{});
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(1, 0.1);
  std::uint64_t tiny = 0;
  group.cost = [&](std::uint32_t, std::uint32_t records) {
    if (records < 4) ++tiny;
    return 0.01 * std::max<std::uint32_t>(records, 8) * noise(random);
  };
  const std::vector<std::uint32_t> parts(8, 64);
  static_cast<void>(steps(group, parts, 100));
  tiny = 0;
  static_cast<void>(steps(group, parts, 100));
  EXPECT_LT(tiny, 2 * 100U) << "only what is left over";
}

TEST(ShareDeskTest, RunsAreMultiplesAndNoLargerThanAMemberCanCompute) {
  ShareRules rules;
  rules.multiple_of = 4;
  ShareDesk desk(2, rules);
  const auto at = [](int ms) { return MonoTime(std::chrono::milliseconds(ms)); };
  Effects out;
  desk.step(Offered{0, Step{1}, 64, 16, 0}, at(1000), out);
  desk.step(Offered{1, Step{1}, 64, 16, 8}, at(1000), out);
  desk.step(Asked{{1, Step{1}, 64, 16, 8}, 1}, at(1010), out);
  ASSERT_EQ(out.size(), 1U);
  ASSERT_TRUE(out[0].run);
  EXPECT_EQ(*out[0].run, (sharing::Run{1, 16, 24}));
  desk.step(Asked{{0, Step{1}, 64, 16, 0}, 1}, at(1010), out);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[1].run->owner, 0U);
  EXPECT_EQ(out[1].run->records() % 4, 0U);
}

TEST(ShareDeskTest, WhoFindsNothingWaitsForAMemberThatHasNotOffered) {
  ShareDesk desk(2, ShareRules{});
  const auto at = [](int ms) { return MonoTime(std::chrono::milliseconds(ms)); };
  Effects out;
  const Offered small{0, Step{7}, 4, 4, 0};
  desk.step(Asked{small, 1}, at(1000), out);
  EXPECT_TRUE(out.empty());
  desk.step(Offered{1, Step{7}, 100, 25, 0}, at(1001), out);
  ASSERT_EQ(out.size(), 1U);
  ASSERT_TRUE(out[0].run);
  EXPECT_EQ(out[0].run->owner, 1U);
  EXPECT_EQ(out[0].run->to, 100U) << "from the end";
  const Effects before = std::exchange(out, {});
  desk.step(Asked{small, 1}, at(1002), out);
  EXPECT_EQ(out, before) << "a repeated ask gets the same answer";
  desk.step(Asked{{0, Step{6}, 4, 4, 0}, 9}, at(1003), out);
  EXPECT_EQ(out.size(), 1U) << "an earlier step is over";
}

TEST(ShareDeskTest, EachRecordIsComputedOnceWhateverTheNetworkDoes) {
  std::mt19937_64 random(5);
  for (const double bad : {0.0, 0.1, 0.4}) {
    const auto members = static_cast<std::uint32_t>(1 + random() % 12);
    Group group(members, ShareRules{});
    group.bad_network = bad;
    group.cost = [&](std::uint32_t, std::uint32_t records) {
      return 1e-3 * records * static_cast<double>(1 + random() % 20);
    };
    for (int step = 0; step < 200; ++step) {
      std::vector<std::uint32_t> parts(members);
      for (std::uint32_t& part : parts) part = static_cast<std::uint32_t>(random() % 40);
      group.step(parts);
      if (::testing::Test::HasFailure()) FAIL() << "step " << step << " with " << bad;
    }
  }
}

TEST(ShareGroupTest, NeighboursShareInGroupsOfNearlyEqualSize) {
  ShareRules rules;
  rules.group = 4;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t rank = 0; rank < 10;) {
    const ShareGroup group = group_of(rank, 10, rules);
    EXPECT_EQ(group.begin, rank);
    for (std::uint32_t of = group.begin; of < group.end; ++of)
      EXPECT_EQ(group_of(of, 10, rules), group);
    sizes.push_back(group.size());
    rank = group.end;
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{4, 3, 3}));
  EXPECT_EQ(group_of(9999, 10000, ShareRules{}).end, 10000U);
}

}  // namespace
}  // namespace antdt::worker::sharing
