// The tally in domains that send one another parts of what they have counted, over real
// connections: a record is in the merged model exactly once, and a lost domain's unsent records not
// at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/trainer/broken_collective.h"
#include "tests/trainer/collective/testing.h"
#include "tests/trainer/domain_testing.h"
#include "trainer/tally/tally_engine.h"

namespace antdt::trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kDomainBatch = 40;

std::unique_ptr<Engine> tally_in_domain(std::uint64_t records) {
  data::DataShape shape;
  shape.id_width = 1;
  shape.id_rows = records;
  shape.classes = 1;
  auto engine = make_tally_engine(shape);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

std::vector<float> domain_counts(Engine& engine) {
  const auto part = engine.state_parts()[0];
  std::vector<float> counts(part.size() / sizeof(float));
  std::memcpy(counts.data(), part.data(), part.size());
  return counts;
}

std::int64_t first_record(std::uint64_t step, std::uint32_t members, std::uint32_t rank) {
  return static_cast<std::int64_t>(step * members + rank) * kDomainBatch;
}

// Steps [begin, end), in each of which every member trains kDomainBatch records of its own; every
// `whole_every`-th exchange is whole.
Status train_steps(Engine& engine, LinksOfTest& own, std::uint32_t rank, std::uint32_t members,
                   std::uint64_t begin, std::uint64_t end, std::uint64_t whole_every) {
  for (std::uint64_t i = begin; i < end; ++i) {
    ANTDT_RETURN_IF_ERROR(engine.exchange_updates(
        own.in_steps(), {.step = Step{i}, .whole = (i + 1) % whole_every == 0}));
    engine.begin_step(own.within());
    data::Examples batch;
    batch.count = kDomainBatch;
    batch.ids.resize(kDomainBatch);
    std::iota(batch.ids.begin(), batch.ids.end(), first_record(i, members, rank));
    ANTDT_RETURN_IF_ERROR(engine.compute(batch, true));
    ANTDT_RETURN_IF_ERROR(engine.finish_reduction());
    ANTDT_RETURN_IF_ERROR(engine.apply(1));
  }
  return {};
}

class TallyDomains : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, TallyDomains,
                         testing::Values(kLayouts[0], kLayouts[1], kLayouts[2]),
                         [](const auto& layout) { return layout.param.name; });

TEST_P(TallyDomains, HaveEachRecordOnceWhenTheyAreConsolidated) {
  constexpr std::uint32_t kMembers = 6;
  constexpr std::uint64_t kSteps = 9;
  const DomainsOfTest domains{{"a", {0, 1, 2}}, {"b", {3, 4}}, {"c", {5}}};
  run_as_threads(
      kMembers,
      [&](Collective& collective) {
        LinksOfTest own(collective, domains);
        const auto engine = tally_in_domain(kMembers * kSteps * kDomainBatch);
        const Status trained = train_steps(*engine, own, collective.rank(), kMembers, 0, kSteps, 4);
        ASSERT_TRUE(trained) << trained.error().message;
        const auto before = domain_counts(*engine);
        EXPECT_LT(std::accumulate(before.begin(), before.end(), 0.0),
                  double{kMembers * kSteps * kDomainBatch})
            << "some records are not everywhere as yet";
        ASSERT_TRUE(engine->consolidate_domains(own.links()));
        EXPECT_THAT(domain_counts(*engine), Each(1.0F));
        EXPECT_EQ(engine->update_sums().messages, kSteps + 1);
        EXPECT_EQ(engine->update_sums().whole, 2 + 1U);
        EXPECT_LT(engine->update_sums().sent, engine->update_sums().elements);
      },
      with_groups(GetParam()));
}

TEST_P(TallyDomains, WithdrawExactlyWhatALostDomainSentInPart) {
  constexpr std::uint32_t kMembers = 5;
  const DomainsOfTest all{{"a", {0, 1}}, {"b", {2}}, {"c", {3, 4}}};
  const DomainsOfTest rest{{"a", {0, 1}}, {"b", {2}}};
  // The exchange that begins step 3 is whole, so records of steps 0 to 2 are everywhere.
  constexpr std::uint64_t kSteps = 6, kSent = 3;
  run_as_threads(
      kMembers,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        LinksOfTest own(collective, all);
        const auto engine = tally_in_domain(kMembers * (kSteps + 2) * kDomainBatch);
        const Status trained = train_steps(*engine, own, rank, kMembers, 0, kSteps, 4);
        ASSERT_TRUE(trained) << trained.error().message;
        if (rank >= 3) return;
        const auto of_lost = [&](std::uint64_t step) { return first_record(step, kMembers, 3); };
        const auto counts = domain_counts(*engine);
        double in_part = 0;
        for (std::uint64_t step = kSent; step < kSteps; ++step) {
          const auto begin = counts.begin() + of_lost(step);
          in_part += std::accumulate(begin, begin + 2 * kDomainBatch, 0.0);
        }
        EXPECT_GT(in_part, 0) << "of the lost domain's later records there is a part";
        LinksOfTest left(collective, rest);
        ASSERT_TRUE(engine->consolidate_domains(left.links()));
        const auto merged = domain_counts(*engine);
        for (std::uint64_t step = 0; step < kSteps; ++step) {
          for (std::int64_t i = 0; i < kMembers * kDomainBatch; ++i) {
            const bool given_back = step >= kSent && i >= 3 * kDomainBatch;
            ASSERT_EQ(merged[static_cast<std::size_t>(first_record(step, kMembers, 0) + i)],
                      given_back ? 0 : 1)
                << "record " << i << " of step " << step;
          }
        }
        // They go on, and the part that was withdrawn does not come back.
        const Status more = train_steps(*engine, left, rank, kMembers, kSteps, kSteps + 2, 4);
        ASSERT_TRUE(more) << more.error().message;
        ASSERT_TRUE(engine->consolidate_domains(left.links()));
        EXPECT_EQ(domain_counts(*engine)[static_cast<std::size_t>(of_lost(kSent))], 0);
        EXPECT_EQ(
            domain_counts(*engine)[static_cast<std::size_t>(first_record(kSteps, kMembers, 2))], 1);
      },
      with_groups(GetParam()));
}

TEST(TallyDomain, HasWhatItHadBeforeAStepThatIsDiscardedOrAnExchangeThatBroke) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        LinksOfTest own(collective, domains);
        const auto engine = tally_in_domain(8 * kDomainBatch);
        ASSERT_TRUE(train_steps(*engine, own, rank, 2, 0, 3, 100));
        const auto before = domain_counts(*engine);
        ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{3}, .whole = true}));
        EXPECT_NE(domain_counts(*engine), before);
        engine->discard();
        EXPECT_EQ(domain_counts(*engine), before);

        BrokenCollective broken;
        DomainLinks to_nobody = own.links();
        to_nobody.across = &broken;
        EXPECT_FALSE(engine->exchange_updates(to_nobody, {.step = Step{3}}));
        engine->discard();
        EXPECT_EQ(domain_counts(*engine), before);
        EXPECT_FALSE(engine->consolidate_domains(to_nobody));
        EXPECT_EQ(domain_counts(*engine), before);

        // What was pending is pending still, so nothing is lost and nothing is twice.
        ASSERT_TRUE(train_steps(*engine, own, rank, 2, 3, 4, 100));
        ASSERT_TRUE(engine->consolidate_domains(own.links()));
        const auto counts = domain_counts(*engine);
        EXPECT_THAT(std::vector(counts.begin(), counts.begin() + 8 * kDomainBatch), Each(1.0F));
      },
      with_groups(kLayouts[0]));
}

// Messages of these lengths, one after the other, of which none may be longer than 100 bytes.
// Returns what is expected after each.
std::vector<std::size_t> expected_after_each(LinksOfTest& own, std::span<const std::size_t> lengths,
                                             std::vector<ErrorKind>& errors) {
  std::vector<std::size_t> expected;
  for (const std::size_t length : lengths) {
    const DomainLinks links = own.in_steps();
    const std::vector<std::byte> mine(length, static_cast<std::byte>(links.place()));
    DomainMessages all;
    const Status done = exchange_messages(links, mine, 100, all);
    if (!done) errors.push_back(done.error().kind);
    for (std::size_t i = 0; done && i < all.parts.size(); ++i) {
      EXPECT_EQ(std::vector(all.parts[i].begin(), all.parts[i].end()),
                std::vector(length, static_cast<std::byte>(i)));
    }
    expected.push_back(links.expected->bytes);
  }
  return expected;
}

TEST(MessagesBetweenDomains, AreNotExpectedToBeLongerThanTheyCanBe) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        LinksOfTest own(collective, domains);
        EXPECT_EQ(own.links().place(), collective.rank());
        std::vector<ErrorKind> errors;
        const std::vector<std::size_t> lengths{8, 90, 100, 10};
        EXPECT_THAT(expected_after_each(own, lengths, errors), ElementsAre(10, 100, 100, 99));
        EXPECT_THAT(errors, IsEmpty());
        const std::vector<std::size_t> too_long{1000, 20};
        EXPECT_THAT(expected_after_each(own, too_long, errors), ElementsAre(100, 99));
        EXPECT_THAT(errors, ElementsAre(ErrorKind::kCorrupt));
      },
      with_groups(kLayouts[0]));
}

TEST(TallyDomain, RefusesUpdatesOfAnotherModelAndAppliesNothingOfThem) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        const std::uint32_t rank = collective.rank();
        LinksOfTest own(collective, domains);
        const auto engine = tally_in_domain(rank == 0 ? 100 : 200);
        const auto before = domain_counts(*engine);
        const Status done = engine->exchange_updates(own.links(), {.step = Step{0}});
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().kind, ErrorKind::kCorrupt);
        EXPECT_THAT(done.error().message, HasSubstr("the domains train different models"));
        engine->discard();
        EXPECT_EQ(domain_counts(*engine), before);
      },
      with_groups(kLayouts[0]));
}

TEST(TallyDomain, RefusesUpdatesOfAnotherStep) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        LinksOfTest own(collective, domains);
        const auto engine = tally_in_domain(100);
        const Status done =
            engine->exchange_updates(own.links(), {.step = Step{collective.rank()}});
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().kind, ErrorKind::kCorrupt);
        EXPECT_THAT(done.error().message, HasSubstr("not its own of step"));
      },
      with_groups(kLayouts[0]));
}

TEST(TallyDomain, ThatIsAloneCountsInItsModelAndBeginsAnewWithOthers) {
  const DomainsOfTest domains{{"a", {0}}, {"b", {1}}};
  run_as_threads(
      2,
      [&](Collective& collective) {
        LinksOfTest own(collective, domains);
        const auto engine = tally_in_domain(4 * kDomainBatch);
        ASSERT_TRUE(train_steps(*engine, own, collective.rank(), 2, 0, 1, 100));
        ASSERT_TRUE(engine->consolidate_domains(own.links()));
        // A step of one domain on both, as if each had copied it: it is not pending.
        engine->begin_step(own.within());
        data::Examples batch;
        batch.count = 1;
        batch.ids = {2 * kDomainBatch};
        ASSERT_TRUE(engine->compute(batch, true));
        ASSERT_TRUE(engine->finish_reduction());
        ASSERT_TRUE(engine->apply(1));
        ASSERT_TRUE(engine->exchange_updates(own.links(), {.step = Step{9}, .whole = true}));
        EXPECT_EQ(domain_counts(*engine)[2 * kDomainBatch], 1);
      },
      with_groups(kLayouts[0]));
}

}  // namespace
}  // namespace antdt::trainer
