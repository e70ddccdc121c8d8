// Servers and workers on real sockets: every push that counts is in the rows of
// every server once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <numeric>
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
  Result<std::uint64_t> train(std::uint32_t worker, const std::vector<std::uint64_t>& keys) {
    ANTDT_TRY(auto own, link(worker));
    std::uint64_t applied = 0;
    std::uint64_t step = 0;
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
