// Tests how pushes and decisions change the rows.
#include "trainer/ps/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "core/wire/envelope.h"
#include "tests/sanitized.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps::server_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

wire::PsRows rows(std::vector<std::uint64_t> keys, std::vector<float> values = {}) {
  return {0, to_bytes(keys), to_bytes(values)};
}

class ServerTest : public ::testing::Test {
 protected:
  explicit ServerTest(Consistency consistency = Consistency::kBarrier) : server(consistency) {
    server.add_workers({w(0), w(1)});
    open(w(0));
  }
  static wire::PsOpen tables() { return {7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}}; }
  void open(Member member) { says(member, tables()); }

  template <class M>
  std::vector<ReplyTo> says(Member member, const M& m) {
    std::vector<ReplyTo> replies;
    server.on({"peer", member, ++seq}, m, replies);
    return replies;
  }
  template <class T>
  static T only(const std::vector<ReplyTo>& replies) {
    EXPECT_EQ(replies.size(), 1U);
    const T* body = replies.empty() ? nullptr : std::get_if<T>(&replies[0].body);
    EXPECT_NE(body, nullptr);
    return body == nullptr ? T{} : *body;
  }
  wire::PsStaging stage(Member member, std::uint64_t number, std::uint64_t version,
                        const wire::PsRows& gradient) {
    return only<wire::PsStaged>(says(member, wire::PsPush{number, version, {gradient}})).status;
  }
  std::vector<ReplyTo> decide(const std::vector<wire::PsPushId>& pushes,
                              const std::vector<wire::PsMember>& left = {}) {
    std::vector<ReplyTo> replies;
    server.apply(0, {++decision, 1, pushes, left, 0, ""}, replies);
    return replies;
  }
  std::vector<float> values(const wire::PsPulled& pulled) {
    return *floats_from_bytes(pulled.values.at(0), pulled.values.at(0).size() / 4);
  }
  std::vector<float> pull(std::vector<std::uint64_t> keys) {
    return values(only<wire::PsPulled>(says(w(0), wire::PsPull{0, {rows(std::move(keys))}})));
  }
  static wire::PsPushId push(std::uint32_t worker, std::uint64_t number) {
    return {WorkerId{'w', worker}, Attempt{1}, number};
  }

  Server server;
  std::uint64_t seq = 0;
  std::uint64_t decision = 0;
};

TEST_F(ServerTest, AStagedPushCountsOnlyOnceItIsDecided) {
  EXPECT_EQ(stage(w(0), 1, 0, rows({1, 2}, {1, 2})), wire::PsStaging::kStaged);
  EXPECT_EQ(stage(w(1), 1, 0, rows({2, 3}, {10, 20})), wire::PsStaging::kStaged);
  EXPECT_THAT(pull({1, 2, 3}), ElementsAre(0, 0, 0));
  decide({push(0, 1), push(1, 1)});
  EXPECT_THAT(pull({1, 2, 3}), ElementsAre(1, 12, 20));
}

TEST_F(ServerTest, ADecisionThatComesAgainChangesNothing) {
  stage(w(0), 1, 0, rows({1}, {1}));
  decide({push(0, 1)});
  std::vector<ReplyTo> replies;
  EXPECT_EQ(server.apply(0, {1, 1, {push(0, 1)}, {}, 0, ""}, replies).number, 1U);
  EXPECT_EQ(server.apply(0, {3, 1, {push(0, 1)}, {}, 0, ""}, replies).number, 1U)
      << "one is missing";
  EXPECT_THAT(pull({1}), ElementsAre(1));
}

TEST_F(ServerTest, ARepeatedPushIsStagedOnce) {
  stage(w(0), 1, 0, rows({1}, {1}));
  stage(w(0), 1, 0, rows({1}, {1}));
  decide({push(0, 1)});
  EXPECT_EQ(stage(w(0), 1, 1, rows({1}, {1})), wire::PsStaging::kStaged)
      << "as before: it may have been lost";
  decide({push(1, 1)});
  EXPECT_THAT(pull({1}), ElementsAre(1));
}

TEST_F(ServerTest, APushThatIsNotChosenForAStepNeverCounts) {
  stage(w(0), 1, 0, rows({1}, {1}));
  stage(w(1), 1, 0, rows({1}, {100}));
  decide({push(0, 1)});
  EXPECT_EQ(stage(w(1), 1, 0, rows({1}, {100})), wire::PsStaging::kLate);
  decide({push(0, 2), push(1, 1)});  // a decision that no home would make
  EXPECT_THAT(pull({1}), ElementsAre(1));
}

TEST_F(ServerTest, AnIdleWorkerHearsHowFarTheServerIs) {
  EXPECT_EQ(only<wire::PsIdled>(says(w(0), wire::PsIdle{})).version, 0U);
  stage(w(1), 1, 0, rows({1}, {1}));
  decide({push(1, 1)});
  EXPECT_EQ(only<wire::PsIdled>(says(w(0), wire::PsIdle{})).version, 1U);
}

TEST_F(ServerTest, AnIdleWorkerMayWaitUntilAGivenStepIsApplied) {
  EXPECT_THAT(says(w(0), wire::PsIdle{1}), IsEmpty());
  EXPECT_THAT(says(w(0), wire::PsIdle{1}), IsEmpty()) << "said again";
  stage(w(1), 1, 0, rows({1}, {1}));
  EXPECT_EQ(only<wire::PsIdled>(decide({push(1, 1)})).version, 1U);
}

TEST_F(ServerTest, APullWaitsForItsStep) {
  EXPECT_THAT(says(w(1), wire::PsPull{1, {rows({1})}}), IsEmpty());
  stage(w(0), 1, 0, rows({1}, {5}));
  const auto replies = decide({push(0, 1)});
  const auto pulled = only<wire::PsPulled>(replies);
  EXPECT_EQ(pulled.version, 1U);
  EXPECT_THAT(values(pulled), ElementsAre(5));
  EXPECT_EQ(replies.at(0).to.member, w(1));
}

TEST_F(ServerTest, ADecisionFromBeforeAWorkerLeftIsApplied) {
  stage(w(1), 1, 0, rows({1}, {5}));
  decide({push(1, 1)}, {{w(1).worker, w(1).attempt}});
  EXPECT_THAT(pull({1}), ElementsAre(5));
  const auto refused = only<wire::Refused>(says(w(1), wire::PsPush{2, 1, {rows({1}, {1})}}));
  EXPECT_EQ(refused.code, wire::RefusalCode::kStale);
  server.add_workers({w(1)});
  EXPECT_EQ(only<wire::Refused>(says(w(1), wire::PsPush{2, 1, {rows({1}, {1})}})).code,
            wire::RefusalCode::kStale)
      << "who has left never comes back";
}

TEST_F(ServerTest, AnUnreadableMessageIsRefusedAndChangesNothing) {
  const auto reason = [&](const wire::PsRows& r) {
    return only<wire::Refused>(says(w(0), wire::PsPush{1, 0, {r}})).reason;
  };
  EXPECT_THAT(reason({0, "odd", ""}), HasSubstr("keys"));
  EXPECT_THAT(reason(rows({2, 1}, {1, 1})), HasSubstr("rise"));
  EXPECT_THAT(reason(rows({1}, {1, 2})), HasSubstr("floats"));
  EXPECT_THAT(reason({5, "", ""}), HasSubstr("table 5"));
  decide({push(0, 1)});
  EXPECT_THAT(pull({1, 2}), ElementsAre(0, 0));
}

TEST_F(ServerTest, AWorkerFarAheadOfTheDecisionsHearsOfItsPushOnceTheyCome) {
  for (std::uint64_t n = 1; n <= 8; ++n) stage(w(0), n, 0, rows({1}, {1}));
  EXPECT_THAT(says(w(0), wire::PsPush{9, 0, {rows({1}, {1})}}), IsEmpty());
  EXPECT_EQ(only<wire::Refused>(says(w(0), wire::PsPush{10, 0, {rows({1}, {1})}})).code,
            wire::RefusalCode::kFull);
  EXPECT_EQ(only<wire::PsStaged>(decide({push(0, 1)})).number, 9U);
}

TEST_F(ServerTest, WorkersOfAnotherModelAreToldSo) {
  wire::PsOpen other = tables();
  other.tables[0].width = 2;
  EXPECT_THAT(only<wire::Refused>(says(w(1), other)).reason, HasSubstr("other tables"));
  other.tables[0].rule = "magic";
  EXPECT_THAT(only<wire::Refused>(says(w(1), other)).reason, HasSubstr("adagrad"));
  EXPECT_EQ(only<wire::PsOpened>(says(w(1), tables())).version, 0U);
}

class BoundedServerTest : public ServerTest {
 protected:
  BoundedServerTest() : ServerTest(Consistency::kBounded) {}
};

TEST_F(BoundedServerTest, APullWaitsForTheWorkerThatIsFurthestBehind) {
  stage(w(0), 1, 0, rows({1}, {1}));
  decide({push(0, 1)});
  EXPECT_THAT(says(w(0), wire::PsPull{1, {rows({1})}}), IsEmpty()) << "w1 has pushed nothing";
  stage(w(1), 1, 0, rows({1}, {1}));
  EXPECT_EQ(only<wire::PsPulled>(decide({push(1, 1)})).clock, 1U);
}

// The server has one thread for all workers, and this is what a round of them costs it. If each
// decision looked for each pull through all workers, it would be more than 10⁹ looks.
TEST_F(BoundedServerTest, ManyPullsThatWaitCostEachDecisionNoLookThroughAllWorkersEach) {
  constexpr std::uint32_t kMany = 2500;
  for (std::uint32_t i = 0; i < kMany; ++i) server.add_workers({w(i)});
  const std::clock_t begun = std::clock();
  for (std::uint32_t i = 0; i + 1 < kMany; ++i) {
    stage(w(i), 1, 0, rows({1}, {1}));
    EXPECT_THAT(decide({push(i, 1)}), IsEmpty());
    EXPECT_THAT(says(w(i), wire::PsPull{1, {rows({1})}}), IsEmpty());
  }
  stage(w(kMany - 1), 1, 0, rows({1}, {1}));
  EXPECT_EQ(decide({push(kMany - 1, 1)}).size(), kMany - 1);
  EXPECT_LT(std::clock() - begun, 4 * CLOCKS_PER_SEC) << "of this process's time";
}

TEST_F(BoundedServerTest, AnIdleOrGoneWorkerIsNotWaitedFor) {
  stage(w(0), 1, 0, rows({1}, {1}));
  decide({push(0, 1)});
  EXPECT_THAT(says(w(0), wire::PsPull{1, {rows({1})}}), IsEmpty());
  EXPECT_EQ(says(w(1), wire::PsIdle{}).size(), 2U) << "its own answer and the pull's";
  stage(w(1), 1, 1, rows({1}, {1}));
  EXPECT_THAT(says(w(0), wire::PsPull{1, {rows({1})}}), IsEmpty());
  EXPECT_EQ(decide({}, {{w(1).worker, w(1).attempt}}).size(), 1U);
}

// Two workers at once: one was idle for long, and the others do not wait for it to catch up.
TEST_F(BoundedServerTest, AReturningWorkerHearsWhereTheOthersAre) {
  stage(w(0), 1, 0, rows({1}, {1}));
  stage(w(1), 7, 0, rows({1}, {1}));
  decide({push(0, 1)});
  decide({push(1, 7)});
  const auto clock = [&](std::uint32_t worker) {
    return only<wire::PsPulled>(says(w(worker), wire::PsPull{0, {rows({1})}})).clock;
  };
  EXPECT_EQ(clock(0), 1U);
  says(w(0), wire::PsIdle{});
  EXPECT_EQ(clock(0), 7U) << "nobody else is behind";
  says(w(1), wire::PsIdle{});
  EXPECT_EQ(clock(0), 7U) << "the one that was furthest, where all are idle";
}

// Two servers, a home, three workers, messages in any order and repeated: both servers end with the
// sum of the pushes that the home applied, each once.
TEST(ParameterServers, EveryPushThatIsAppliedIsInEveryServerOnce) {
  for (std::uint64_t seed = 1; seed <= all_or_some(200U, 50U); ++seed) {
    std::mt19937_64 random(seed);
    const bool barrier = seed % 2 == 0;
    Closer closer(barrier);
    std::deque<Server> servers;
    for (int i = 0; i < 2; ++i) {
      servers.emplace_back(barrier ? Consistency::kBarrier : Consistency::kUnbounded);
    }
    const std::vector<Member> members{w(0), w(1), w(2)};
    std::vector<ReplyTo> replies;
    closer::Effects ignored;
    closer.step(closer::WorkersAdded{members, barrier ? 1U : 0U}, ignored);
    for (Server& server : servers) {
      server.add_workers(members);
      server.on({"", w(0), 1}, wire::PsOpen{1, {{"t", 1, "sum", 0, 0, 0, "zero", 0}}}, replies);
    }
    std::vector<wire::PsDecision> decisions;
    std::vector<std::size_t> delivered(2);
    std::map<Member, std::uint64_t> numbers;
    std::map<std::pair<Member, std::uint64_t>, float> values;
    for (int round = 0; round < 60; ++round) {
      const Member member = members[random() % 3];
      const std::uint64_t number = ++numbers[member];
      const auto value = static_cast<float>(1 + random() % 9);
      values[{member, number}] = value;
      const std::uint64_t version = closer.updates();
      bool staged = true;
      for (Server& server : servers) {
        for (std::uint64_t times = 1 + random() % 2; times > 0; --times) {
          replies.clear();
          server.on({"", member, 1}, wire::PsPush{number, version, {rows({9}, {value})}}, replies);
          const auto* s = replies.empty() ? nullptr : std::get_if<wire::PsStaged>(&replies[0].body);
          staged = staged && s != nullptr && s->status == wire::PsStaging::kStaged;
        }
      }
      if (staged && random() % 4 != 0) {  // else it dies before it commits
        closer::Effects effects;
        closer.step(
            closer::CommitHeard{member, {number, version, 0, number * 10, number * 10 + 5, 1}},
            effects);
        closer.step(
            closer::CommitHeard{member, {number, version, 0, number * 10, number * 10 + 5, 1}},
            effects);
        for (const closer::Effect& effect : effects) {
          if (const auto* d = std::get_if<closer::Decide>(&effect))
            decisions.push_back(d->decision);
        }
      }
      // Decisions reach the servers in order, late, and more than once.
      for (std::size_t s = 0; s < servers.size(); ++s) {
        const bool far_behind = decisions.size() - delivered[s] > 4;
        while (delivered[s] < decisions.size() && (far_behind || random() % 2 == 0)) {
          servers[s].apply(0, decisions[random() % (delivered[s] + 1)], replies);
          servers[s].apply(0, decisions[delivered[s]++], replies);
        }
      }
    }
    for (std::size_t s = 0; s < servers.size(); ++s) {
      while (delivered[s] < decisions.size())
        servers[s].apply(0, decisions[delivered[s]++], replies);
    }
    float expected = 0;
    for (const wire::PsDecision& decision : decisions) {
      for (const auto& p : decision.pushes) {
        expected += values.at({{p.worker, p.attempt}, p.number});
      }
    }
    ASSERT_GT(expected, 0) << "seed " << seed;
    for (Server& server : servers) {
      replies.clear();
      server.on({"", w(0), 1}, wire::PsPull{0, {rows({9})}}, replies);
      const auto& pulled = std::get<wire::PsPulled>(replies.at(0).body);
      ASSERT_EQ(floats_from_bytes(pulled.values[0], 1)->at(0), expected) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace antdt::ps::server_test
