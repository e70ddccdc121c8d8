// What a process tells while it opens its data, and what it does once only.
#include "trainer/data/index/opening.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/trainer/data/packed.h"
#include "tests/trainer/data/testing.h"
#include "trainer/data/index/index_build.h"

namespace antdt::data {
namespace {

using ::testing::ElementsAre;

class OpeningTest : public DataTest {
 protected:
  // Some 4 MB.
  std::string job() {
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += criteo_row("1", std::to_string(i)) + "\n";
    return config("criteo", file("a.tsv", text));
  }
  [[nodiscard]] std::string index_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      if (entry.path().extension() == ".idx") return entry.path().string();
    }
    return "";
  }
  std::vector<client::Io> told_of(std::string_view what) const {
    std::vector<client::Io> some;
    std::ranges::copy_if(told, std::back_inserter(some),
                         [&](const client::Io& io) { return io.what == what; });
    return some;
  }

  using Clock = std::filesystem::file_time_type::clock;
  static auto age_of(const std::string& path) {
    return Clock::now() - std::filesystem::last_write_time(path);
  }
  static void age(const std::string& path) {
    std::filesystem::last_write_time(path, Clock::now() - std::chrono::hours(2));
  }

  std::vector<client::Io> told;
  Opening opening{[this](client::Io io) { told.push_back(std::move(io)); }};
};

TEST_F(OpeningTest, ThePassTellsHowFarItIs) {
  const std::string data = job();
  ASSERT_OK(build_index(data, Split::kTrain, opening, cache()));
  const auto pass = told_of(kIndexesData);
  const std::uint64_t bytes = std::filesystem::file_size(directory_ / "a.tsv");
  ASSERT_GE(pass.size(), bytes / Opening::kTellEvery);
  for (std::size_t i = 0; i < pass.size(); ++i) {
    EXPECT_EQ(pass[i].path, directory_ / "a.tsv");
    EXPECT_EQ(pass[i].total_bytes, bytes);
    EXPECT_LE(pass[i].done_bytes, i * (Opening::kTellEvery + 4096));
    EXPECT_TRUE(i == 0 || pass[i].done_bytes > pass[i - 1].done_bytes) << i;
  }
  EXPECT_GT(pass.back().done_bytes, bytes - 2 * Opening::kTellEvery);
}

TEST_F(OpeningTest, ThePassOverAPackedFileTellsHowFarInTheFileItIs) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < std::size_t{6} << 20) {
    for (int i = 0; i < 99; ++i) text.push_back(static_cast<char>('0' + random() % 64));
    text.push_back('\n');
  }
  // Behind the content of the last there is as much again, which is hashed only.
  const std::map<std::string, std::string> files{
      {"a.gz", gzip(text, 1)},
      {"a.zst", zstd_frames(text, std::size_t{1} << 18)},
      {"padded.gz", gzip(text, 1) + std::string(std::size_t{5} << 20, '\0')}};
  for (const auto& [name, packed] : files) {
    ASSERT_GT(packed.size(), std::size_t{4} << 20) << name;
    told.clear();
    DataConfig lines;
    lines.format = "lines";
    lines.paths = {file(name, packed)};
    ASSERT_OK(ensure_index(lines, cache(), nullptr, opening));
    std::uint64_t before = 0;
    for (const client::Io& io : told_of(kIndexesData)) {
      if (io.path != lines.paths[0]) continue;  // the index is written
      EXPECT_EQ(io.total_bytes, packed.size()) << name;
      EXPECT_GE(io.done_bytes, before) << name;
      EXPECT_LE(io.done_bytes, before + Opening::kTellEvery) << name;
      before = io.done_bytes;
    }
    EXPECT_EQ(before, packed.size()) << name;
  }
}

TEST_F(OpeningTest, AnIndexIsHashedOnceThoughItIsOpenedForBothSplits) {
  std::string data = job();
  data.insert(data.size() - 2, R"(, "eval_paths": [")" +
                                   file("b.tsv", criteo_row("1") + "\n" + criteo_row("0") + "\n") +
                                   R"("])");
  ASSERT_OK(index(data));
  const std::string of_train = index_file();
  for (const Split split : {Split::kTrain, Split::kEval}) {
    ASSERT_OK(build_index(data, split, opening, cache()));
    ASSERT_OK(open_reader(data, split, opening, cache()));
  }
  const auto checks = told_of(kChecksIndex);
  EXPECT_EQ(std::ranges::count_if(checks,
                                  [&](const client::Io& io) {
                                    return io.path == of_train && io.done_bytes == io.total_bytes;
                                  }),
            1);
}

TEST_F(OpeningTest, AnIndexThatChangedSinceItWasCheckedIsCheckedAgain) {
  const std::string data = job();
  ASSERT_OK(build_index(data, Split::kTrain, opening, cache()));
  const auto before = std::filesystem::last_write_time(index_file());
  std::fstream damaged(index_file(), std::ios::binary | std::ios::in | std::ios::out);
  damaged.seekp(1000);
  damaged.put('!');
  damaged.close();
  std::filesystem::last_write_time(index_file(), before);
  told.clear();
  ASSERT_OK(build_index(data, Split::kTrain, opening, cache()));
  EXPECT_FALSE(told_of(kIndexesData).empty()) << "it is built again";
}

// A lock may not reach other hosts, and what is fresh may be what one of them writes.
TEST_F(OpeningTest, WhatAKilledBuildLeftIsRemovedWhenItIsOldAndNoSooner) {
  const std::string data = job();
  ASSERT_OK(index(data));
  const std::string built = index_file();
  std::filesystem::rename(built, built + ".Ab12cd");
  const std::string fresh = built + ".Ef34gh";
  std::ofstream(fresh) << "of a build on another host";
  const std::string other = cache() + "/other.idx.Ab12cd";
  std::ofstream(other) << "of another index";
  for (const std::string& old : {built + ".Ab12cd", other}) age(old);
  ASSERT_OK(index(data));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(cache())) {
    left.push_back(entry.path().string());
  }
  std::ranges::sort(left);
  std::vector<std::string> expected{built, fresh, other};
  std::ranges::sort(expected);
  EXPECT_EQ(left, expected);
}

TEST_F(OpeningTest, WhoWaitsForAnothersIndexTellsHowMuchOfItThereIs) {
  const std::string data = job();
  ASSERT_OK(index(data));
  const std::string built = index_file();
  std::filesystem::remove(built);
  std::ofstream(built + ".Ab12cd") << std::string(4096, 'x');
  auto builder = FileLock::acquire(built.substr(0, built.size() - 4) + ".lock");
  ASSERT_OK(builder);
  std::optional<FileLock> held(std::move(*builder));
  Opening waits{[&](client::Io io) {
    if (io.what == kWaitsForIndex) {
      told.push_back(io);
      held.reset();
    }
  }};
  ASSERT_OK(build_index(data, Split::kTrain, waits, cache()));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].path, built);
  EXPECT_EQ(told[0].done_bytes, 4096U);
  EXPECT_EQ(told[0].total_bytes, 0U);
}

// Images are hashed before anything of their index is written.
TEST_F(OpeningTest, WhoWaitsForAnothersIndexSeesThatTheBuilderMovesThoughTheIndexDoesNotGrow) {
  const std::string images = std::string("\0\0\x08\x03\0\0\x08\0\0\0\0\x20\0\0\0\x20", 16);
  const std::string labels = std::string("\0\0\x08\x01\0\0\x08\0", 8) + std::string(2048, 'x');
  const std::string pixels(std::size_t{2} << 20, 'p');
  const std::string data = config("idx", file("images", images + pixels),
                                  R"(, "labels": [")" + file("labels", labels) + "\"]");
  std::mutex mutex;
  std::condition_variable changed;
  bool building = false;
  std::vector<client::Io> waited, built;
  // Each piece is hashed once the other has seen the one before.
  Opening builds{[&](client::Io io) {
    if (io.what != kIndexesData) return;
    std::unique_lock lock(mutex);
    building = true;
    built.push_back(io);
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] {
      return !waited.empty() && waited.back().done_bytes == io.done_bytes;
    })) << io.done_bytes;
    lock.unlock();
    std::this_thread::sleep_for(kShownWithin);  // until the next one is shown
  }};
  Opening waits{[&](client::Io io) {
    if (io.what != kWaitsForIndex) return;
    const std::lock_guard lock(mutex);
    waited.push_back(io);
    changed.notify_all();
  }};
  std::thread builder([&] { EXPECT_TRUE(build_index(data, Split::kTrain, builds, cache())); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return building; });
  }
  EXPECT_TRUE(build_index(data, Split::kTrain, waits, cache()));
  builder.join();
  ASSERT_GE(built.size(), 3U);
  ASSERT_GE(waited.size(), 3U);
  EXPECT_EQ(waited[0].done_bytes, built[0].done_bytes);
  EXPECT_EQ(waited[0].total_bytes, images.size() + pixels.size());
}

TEST_F(OpeningTest, ABuildKeepsItsUnfinishedFileFresh) {
  const std::string data = job();
  int looked = 0;
  Opening builds{[&](const client::Io& io) {
    if (io.what != kIndexesData) return;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      const std::string path = entry.path().string();
      if (path.find(".idx.") == std::string::npos) continue;
      EXPECT_LT(age_of(path), std::chrono::minutes(30)) << looked;
      ++looked;
      age(path);
      std::this_thread::sleep_for(kShownWithin);  // until it is touched again
    }
  }};
  ASSERT_OK(build_index(data, Split::kTrain, builds, cache()));
  EXPECT_GE(looked, 4);
}

}  // namespace
}  // namespace antdt::data
