// Servers and workers on real sockets: every push that counts is in the rows of
// every server once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include "core/fs.h"
#include "core/loop.h"
#include "trainer/ps_link/server_loop.h"
#include "trainer/ps_link/slice_file.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::ps {
namespace {

constexpr std::uint32_t kWorkers = 3;
constexpr std::uint64_t kSteps = 40;

// A server with a thread and a context of its own, as if it were a process.
class ServerThread {
 public:
  ServerThread(const Group& group, std::uint32_t index)
      : server_(ServerLoop::open(loop_, context_, group, index)) {
    EXPECT_TRUE(server_) << server_.error().message;
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServerThread() {
    loop_.stop_from_any_thread();
    thread_.join();
    server_ = fail(ErrorKind::kAborted, "over");  // before its loop and its context
  }

 private:
  SteadyClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  Result<std::unique_ptr<ServerLoop>> server_;
  std::thread thread_;
};

Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

class PsLinkTest : public testing::TestWithParam<Consistency> {
 protected:
  PsLinkTest() {
    for (int s = 0; s < 2; ++s) group.sockets.push_back(directory / fmt::format("s{}", s));
    group.consistency = GetParam();
    for (std::uint32_t i = 0; i < kWorkers; ++i) group.workers.push_back(w(i));
  }
  Result<WorkerLink> link(std::uint32_t worker) {
    ANTDT_TRY(auto made, WorkerLink::connect(context, group, w(worker)));
    ANTDT_RETURN_IF_ERROR(made.open({1, {{"count", 2, "sum", 0, 0, 0, "zero", 0}}}));
    return made;
  }
  // Adds one to each of these rows, kSteps times; how often that counted.
  Result<std::uint64_t> train(std::uint32_t worker, const std::vector<std::uint64_t>& keys,
                              std::uint64_t first_step = 0) {
    ANTDT_TRY(auto own, link(worker));
    std::uint64_t applied = 0;
    std::uint64_t step = first_step;
    for (std::uint64_t n = 1; n <= kSteps; ++n) {
      const bool barrier = group.consistency == Consistency::kBarrier;
      ANTDT_TRY(const auto pulled, own.pull(0, keys, barrier ? step : 0));
      Gradient ones{keys, std::vector<float>(keys.size() * 2, 1)};
      ANTDT_TRY(const auto decided, own.push(0, ones, pulled, {n, step, n - 1, n, 1}));
      if (decided.status == "applied") ++applied;
      step = decided.version;
    }
    return applied;
  }

  TempDir directory;
  transport::Context context;
  Group group;
};

TEST_P(PsLinkTest, WhatCountedIsInEveryRowOnce) {
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
    const auto pulled = reader->pull(0, keys, 0);
    ASSERT_TRUE(pulled) << pulled.error().message;
    values = pulled->values;
  } while (std::ranges::count(values, static_cast<float>(applied)) !=
               static_cast<std::ptrdiff_t>(values.size()) &&
           SteadyClock().now() < deadline);
  EXPECT_THAT(values, testing::Each(static_cast<float>(applied)));
}

TEST_P(PsLinkTest, WhoIsOfAnotherGenerationOfTheGroupIsRefused) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  group.generation = group.generation.next();
  const auto late = link(0);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, testing::HasSubstr("generation 1, not 2"));
}

INSTANTIATE_TEST_SUITE_P(Consistencies, PsLinkTest,
                         testing::Values(Consistency::kBarrier, Consistency::kUnbounded));

class PsCutTest : public PsLinkTest {
 protected:
  PsCutTest() { group.workers.push_back(w(kWatcher)); }

  // Both servers' answers to the order of a checkpoint.
  std::vector<Result<wire::PsSaved>> cut(std::uint64_t number, const std::string& to) {
    std::vector<Result<wire::PsSaved>> saved;
    std::vector<transport::Socket> links;
    wire::Envelope envelope;
    envelope.generation = group.generation;
    envelope.seq = number;
    for (const std::string& path : group.sockets) {
      auto link = transport::Socket::connect_ipc(context, path);
      EXPECT_TRUE(link);
      links.push_back(std::move(*link));
      EXPECT_EQ(links.back().send(wire::make_packet(envelope, wire::PsCut{number, to})),
                transport::SendOutcome::kSent);
    }
    for (transport::Socket& link : links) {
      EXPECT_TRUE(link.wait_readable(std::chrono::seconds(60)));
      const auto packet = link.receive();
      if (!packet) {
        saved.emplace_back(fail(ErrorKind::kUnreachable, "no answer"));
        continue;
      }
      saved.push_back(wire::open_reply<wire::PsSaved>(*packet));
    }
    return saved;
  }
  // What all rows hold after `clock` steps, as a worker sees it that pushes nothing.
  std::set<float> values(std::uint64_t clock) {
    auto own = link(kWatcher);
    EXPECT_TRUE(own) << own.error().message;
    EXPECT_TRUE(own->idle());
    const auto pulled = own->pull(0, keys, clock);
    EXPECT_TRUE(pulled) << pulled.error().message;
    return {pulled->values.begin(), pulled->values.end()};
  }
  // Each step adds one for each worker that trains.
  static std::set<float> after(std::uint64_t steps) {
    return {static_cast<float>(steps * kWorkers)};
  }
  void train_all(std::uint64_t first_step = 0) {
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&, i] {
        const auto counted = train(i, keys, first_step);
        EXPECT_TRUE(counted) << counted.error().message;
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
  static constexpr std::uint32_t kWatcher = kWorkers;
  std::vector<std::uint64_t> keys = [] {
    std::vector<std::uint64_t> some(2000);
    std::iota(some.begin(), some.end(), 1);
    return some;
  }();
};

TEST_P(PsCutTest, ACheckpointIsTheSameStepOnEveryServerAndAGroupGoesOnFromIt) {
  std::uint64_t version = 0;
  {
    const ServerThread first(group, 0);
    const ServerThread second(group, 1);
    ASSERT_TRUE(link(0));
    std::thread training([&] { train_all(); });
    values(kSteps / 4);
    const auto saved = cut(1, directory.path());
    training.join();
    ASSERT_EQ(saved.size(), 2U);
    for (const auto& s : saved) {
      ASSERT_TRUE(s) << s.error().message;
      EXPECT_EQ(s->files.size(), kSlices / 2);
    }
    version = saved[0]->version;
    EXPECT_EQ(saved[1]->version, version);
    EXPECT_GE(version, kSteps / 4);
    EXPECT_EQ(values(kSteps), after(kSteps)) << "training went on meanwhile";
    const auto again = cut(1, directory.path());
    ASSERT_TRUE(again[0] && again[1]);
    EXPECT_EQ(again[0]->version, version) << "said again it is answered again";
  }
  group.generation = group.generation.next();
  group.restore = directory.path();
  group.version = version;
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  EXPECT_EQ(values(version), after(version));
  train_all(version);
  EXPECT_EQ(values(version + kSteps), after(version + kSteps));
}

TEST_P(PsCutTest, WhatCannotBeWrittenOrReadIsSaidAndTrainingGoesOn) {
  const ServerThread first(group, 0);
  const ServerThread second(group, 1);
  const auto early = cut(1, directory.path());
  ASSERT_FALSE(early[0]);
  EXPECT_THAT(early[0].error().message, testing::HasSubstr("no worker has opened a table"));
  ASSERT_TRUE(link(0));
  const auto saved = cut(2, directory / "not-there");
  ASSERT_FALSE(saved[0] || saved[1]);
  EXPECT_THAT(saved[0].error().message, testing::HasSubstr("not-there/slice-00.rows"));
  std::thread training([&] { train_all(); });
  EXPECT_EQ(values(kSteps), after(kSteps));
  training.join();

  group.generation = group.generation.next();
  group.restore = directory / "not-there";
  for (std::string& socket : group.sockets) socket += "b";
  const ServerThread third(group, 0);
  const ServerThread fourth(group, 1);
  const auto refused = link(0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("slice-0"));
}

INSTANTIATE_TEST_SUITE_P(Barrier, PsCutTest, testing::Values(Consistency::kBarrier));

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
