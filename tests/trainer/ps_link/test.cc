// Servers and workers on real sockets: every push that counts is in the rows of
// every server once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <numeric>
#include <thread>

#include "core/os/fs.h"
#include "tests/trainer/ps_link/testing.h"
#include "trainer/ps/rows/slice_image.h"
#include "trainer/ps_link/service_times.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

TEST_P(PsLinkTest, EveryCountedPushIsInEachRowOnce) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  std::vector<std::uint64_t> keys(200);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = 7 * i;
  std::atomic<std::uint64_t> applied = 0;
  std::vector<std::thread> workers;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] {
      const auto counted = train(i, keys);
      ASSERT_TRUE(counted) << counted.error().message;
      applied += *counted;
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_GT(applied, kSteps);
  auto reader = link(0);
  ASSERT_TRUE(reader) << reader.error().message;
  // The second server may hear of the last decision a moment later.
  const MonoTime deadline = SteadyClock().now() + std::chrono::seconds(20);
  std::vector<float> values;
  do {
    const auto pulled = (*reader)->pull({{0, keys}}, 0);
    ASSERT_TRUE(pulled) << pulled.error().message;
    values = pulled->values.at(0);
  } while (std::ranges::count(values, static_cast<float>(applied)) !=
               static_cast<std::ptrdiff_t>(values.size()) &&
           SteadyClock().now() < deadline);
  EXPECT_THAT(values, testing::Each(static_cast<float>(applied)));
}

TEST_P(PsLinkTest, ASlowLinkShowsInWhatARequestTakes) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  static constexpr Duration kSlow = std::chrono::milliseconds(20);
  Peers peers{group.generation, group.sockets, group.consistency, kGiveUp, kAgain};
  peers.send_delay = [](std::size_t) { return kSlow; };
  auto slow = WorkerLink::connect(context, peers, w(0));
  ASSERT_TRUE(slow) << slow.error().message;
  EXPECT_EQ((*slow)->take_hop(), std::nullopt);
  ASSERT_TRUE((*slow)->open({1, {{"count", 2, "sum", 0, 0, 0, "zero", 0}}}));
  ASSERT_TRUE((*slow)->pull({{0, {7}}}, 0));
  EXPECT_GE((*slow)->take_hop().value_or(Duration{}), kSlow);
  EXPECT_EQ((*slow)->take_hop(), std::nullopt) << "it was taken";
}

TEST_P(PsLinkTest, AWorkerOfAnotherGenerationOfTheGroupIsRefused) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  group.generation = group.generation.next();
  const auto late = link(0);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, testing::HasSubstr("generation 1, not 2"));
  EXPECT_EQ(late.error().kind, ErrorKind::kAborted) << "the group is over for it";
}

TEST_P(PsLinkTest, RowsOfSeveralTablesAreAskedForAndChangedAtOnce) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  auto made = connect(0);
  ASSERT_TRUE(made);
  WorkerLink& own = **made;
  const auto opened = own.open({1,
                                {{"wide", 3, "sum", 0, 0, 0, "zero", 0},
                                 {"unused", 1, "sum", 0, 0, 0, "zero", 0},
                                 {"dense", 1, "sum", 0, 0, 0, "zero", 0}}});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(*opened, 0U);
  for (std::uint32_t other = 1; other < kWorkers; ++other) {
    auto idle = connect(other);
    ASSERT_TRUE(idle && (*idle)->open({1,
                                       {{"wide", 3, "sum", 0, 0, 0, "zero", 0},
                                        {"unused", 1, "sum", 0, 0, 0, "zero", 0},
                                        {"dense", 1, "sum", 0, 0, 0, "zero", 0}}}));
    ASSERT_TRUE((*idle)->idle());
  }
  std::vector<std::uint64_t> keys(100);
  std::iota(keys.begin(), keys.end(), 5);
  std::vector<float> numbers(keys.begin(), keys.end());
  ASSERT_TRUE(own.put({{2, {keys, numbers}}}));
  ASSERT_TRUE(own.put({{2, {keys, std::vector<float>(keys.size(), 1)}}})) << "what is there stays";
  const std::vector<TableKeys> rows{{0, {1, 2, 300}}, {2, keys}};
  const auto begun = own.pull(rows, 0);
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_THAT(begun->values, testing::ElementsAre(std::vector<float>(9, 0), numbers));
  const auto decided = own.push({{0, {{2, 300}, {1, 2, 3, 4, 5, 6}}}, {2, {{7}, {100}}}}, *begun,
                                {1, 0, 0, 0, 1, 1});
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->status, wire::PsFate::kApplied);
  numbers[2] += 100;
  const std::vector<float> wide{0, 0, 0, 1, 2, 3, 4, 5, 6};
  const MonoTime deadline = SteadyClock().now() + kGiveUp;
  std::vector<std::vector<float>> values;
  do {  // without a barrier a pull does not wait for what the other server was told
    const auto pulled = own.pull(rows, decided->version);
    ASSERT_TRUE(pulled) << pulled.error().message;
    values = pulled->values;
  } while (values != std::vector{wide, numbers} && SteadyClock().now() < deadline);
  EXPECT_THAT(values, testing::ElementsAre(wide, numbers));
  const auto wrong = own.push({{0, {{1}, {1}}}}, *begun, {2, 1, 0, 1, 2, 1});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("1 floats for 1 rows of table 0"));
  EXPECT_FALSE(own.pull({{3, {1}}}, 0)) << "there is no such table";
}

INSTANTIATE_TEST_SUITE_P(Consistencies, PsLinkTest,
                         testing::Values(Consistency::kBarrier, Consistency::kUnbounded));

class PsBarrierTest : public PsLinkTest {};

TEST_P(PsBarrierTest, AnAbortWakesThePullThatWaitsAndLetsNothingMoreBegin) {
  ServerThread first(group, 0);
  const ServerThread second(group, 1);
  auto own = link(0);
  ASSERT_TRUE(own) << own.error().message;
  auto pulled = std::async(std::launch::async, [&] { return (*own)->pull({{0, {1}}}, 7); });
  const auto asked = [&] { return first.ask([](ServerLoop& s) { return s.stats().requests; }); };
  while (asked() < 2) std::this_thread::yield();
  (*own)->abort();
  ASSERT_EQ(pulled.wait_for(kGiveUp), std::future_status::ready);
  const auto woken = pulled.get();
  ASSERT_FALSE(woken);
  EXPECT_EQ(woken.error().kind, ErrorKind::kAborted);
  const auto later = (*own)->idle();
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().kind, ErrorKind::kAborted);
}

TEST_P(PsBarrierTest, AnIdleWorkerHearsOfEveryDecidedStep) {
  ServerThread first(group, 0);
  const ServerThread second(group, 1);
  auto own = link(0);
  ASSERT_TRUE(own);
  auto others = link(1);
  auto third = link(2);
  ASSERT_TRUE(others && third);
  auto pushed = std::async(std::launch::async, [&] { return push(**own, {1, 2, 3}, 1, 0, 0); });
  EXPECT_EQ((*others)->idle().value_or(9), 0U) << "one more is waited for";
  // Three opened, one idle; a pull, a push and its commit.
  const auto asked = [&] {
    return first.ask([](ServerLoop& server) { return server.stats().requests; });
  };
  while (asked() < 7) std::this_thread::yield();
  EXPECT_EQ((*third)->idle().value_or(9), 1U) << "the step that waited for it alone";
  const auto decided = pushed.get();
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ(decided->version, 1U);
  EXPECT_EQ((*link(1))->idle().value_or(9), 1U);
  const auto again = (*link(2))->open({1, {{"count", 2, "sum", 0, 0, 0, "zero", 0}}});
  EXPECT_EQ(again.value_or(9), 1U) << "and who opens the tables";
}

wire::PsServe serve(const Group& group, std::uint64_t number) {
  wire::PsServe message;
  message.number = number;
  for (const Member m : group.workers) message.workers.push_back({m.worker, m.attempt});
  return message;
}

TEST_P(PsBarrierTest, ALostWorkerIsNamedWithWhatItHadAndTheOthersGoOn) {
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  auto kept = link(0);
  auto lost = link(1);
  auto idle = link(2);
  ASSERT_TRUE(kept && lost && idle);
  ASSERT_TRUE((*idle)->idle());
  const auto together = [&](std::uint64_t n) {
    auto one = std::async(std::launch::async, [&, n] {
      return push(**kept, {1, 2, 3}, n, n - 1, n - 1, 4);
    });
    return push(**lost, {1, 2, 3}, n, n - 1, n - 1, 4) && one.get();
  };
  ASSERT_TRUE(together(1));
  ASSERT_TRUE(together(2));
  auto waits = std::async(std::launch::async, [&] { return push(**kept, {1, 2, 3}, 3, 2, 2, 4); });
  wire::PsServe message = serve(group, 2);
  std::erase_if(message.workers, [](const auto& m) { return m.worker.index == 1; });
  message.leaving = {{w(1).worker, w(1).attempt}};
  const auto told = [&](ServerLoop& server) {
    server.serve(message);
    return server.left(message.leaving);
  };
  for (int times = 0; times < 2; ++times) {
    const auto left = first.ask(told);
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].phase, 4U);
    ASSERT_EQ(left[0].applied.size(), 1U);
    EXPECT_EQ(left[0].applied[0].to, 2U);
    EXPECT_THAT(second.ask(told), testing::IsEmpty()) << "it is not its home";
  }
  const auto alone = waits.get();
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->status, wire::PsFate::kApplied);
  const auto refused = push(**lost, {1}, 3, 3, 3, 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kAborted);
  const wire::PsStats stats = first.ask([](ServerLoop& s) { return s.stats(); });
  EXPECT_EQ(stats.pushes_applied, 5U);
  EXPECT_EQ(stats.version, 3U);
  EXPECT_GT(stats.rows + second.ask([](ServerLoop& s) { return s.stats().rows; }), 2U);
  EXPECT_GT(stats.service_us_p50, 0);
  EXPECT_LE(stats.service_us_p50, stats.service_us_p99);
}

TEST_P(PsBarrierTest, ANewcomerIsTakenInWhileTheOthersTrain) {
  group.workers = {w(0)};
  ServerThread first(group, 0);
  ServerThread second(group, 1);
  auto own = link(0);
  ASSERT_TRUE(own);
  ASSERT_TRUE(push(**own, {1}, 1, 0, 0));
  EXPECT_FALSE(link(1)) << "it is not of the group yet";
  group.workers.push_back(w(1));
  const wire::PsServe message = serve(group, 2);
  for (ServerThread* server : {&first, &second}) {
    server->ask([&](ServerLoop& s) { return s.serve(message), true; });
  }
  auto newcomer = link(1);
  ASSERT_TRUE(newcomer) << newcomer.error().message;
  EXPECT_EQ(push(**own, {1}, 2, 1, 1)->status, wire::PsFate::kApplied) << "nobody waits for it";
  EXPECT_EQ(push(**newcomer, {1}, 1, 1, 1)->status, wire::PsFate::kLate);
}

INSTANTIATE_TEST_SUITE_P(Barrier, PsBarrierTest, testing::Values(Consistency::kBarrier));

TEST(ServiceTimes, ArePercentilesOfWhatCameSinceTheLastCall) {
  ServiceTimes times;
  EXPECT_EQ(times.take().p99, 0);
  for (int us = 100; us >= 1; --us) times.add(std::chrono::microseconds(us));
  const auto percentiles = times.take();
  EXPECT_EQ(percentiles.p50, 51);
  EXPECT_EQ(percentiles.p99, 100);
  EXPECT_EQ(times.take().p50, 0);
  for (std::size_t n = 0; n < ServiceTimes::kKept; ++n) times.add(std::chrono::seconds(1));
  for (std::size_t n = 0; n < ServiceTimes::kKept; ++n) times.add(std::chrono::microseconds(1));
  EXPECT_EQ(times.take().p99, 1) << "the newest are kept";
}

TEST(SliceFile, IsReadAsItWasWrittenAndDamageIsNamed) {
  const TempDir directory;
  const std::vector<TableSpec> tables{{"count", 2, {}, TableSpec::Init::kZero, 0}};
  Store store(tables, 1);
  std::vector<std::uint64_t> keys(5000);
  std::iota(keys.begin(), keys.end(), 1);
  store.update(0, keys, std::vector<float>(2 * keys.size(), 3), 1);
  Store other(tables, 1);
  std::uint64_t bytes = 0;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const auto file = write_slice(directory.path(), store, slice);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->name, slice_file_name(slice));
    EXPECT_EQ(file->bytes, slice_bytes(store, slice));
    EXPECT_EQ(file->bytes, std::filesystem::file_size(directory / file->name));
    bytes += file->bytes;
    const Status status = read_slice(directory.path(), other, slice);
    ASSERT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(other.rows(), keys.size());
  EXPECT_GT(bytes, keys.size() * (8 + 2 * 2 * 4)) << "values and state";
  std::filesystem::resize_file(directory / slice_file_name(9), 100);
  Store third(tables, 1);
  const Status status = read_slice(directory.path(), third, 9);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("slice-09.rows: slice 9 is cut short"));
}

}  // namespace
}  // namespace antdt::ps
