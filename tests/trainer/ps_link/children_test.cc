// Tests of a server's child processes, from a process with one thread: every build may fork one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <semaphore.h>
#include <sys/mman.h>

#include <array>
#include <filesystem>
#include <numeric>

#include "core/os/fs.h"
#include "tests/trainer/children_stop.h"
#include "tests/trainer/ps/stepped.h"
#include "tests/trainer/ps_link/testing.h"
#include "trainer/ps_link/cut_writer.h"
#include "trainer/ps_link/slice_file.h"
#include "trainer/ps_link/state_maker.h"

namespace antdt::ps {
namespace {

std::vector<std::uint64_t> keys_up_to(std::uint64_t last) {
  std::vector<std::uint64_t> keys(last);
  std::iota(keys.begin(), keys.end(), 1);
  return keys;
}

// ------------------------------------------------------------------------- the child

TEST(ChildCopyTest, OneThatTellsSomethingNowAndThenIsHeardOutAndOneThatFallsSilentIsNot) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  ManualClock clock;
  EventLoop loop(clock);
  ChildCopy child(loop);
  // In memory that both share: the child has none of this process's descriptors.
  void* const memory =
      ::mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const go_on = static_cast<sem_t*>(memory);
  ASSERT_EQ(::sem_init(go_on, /*pshared=*/1, 0), 0);
  ASSERT_TRUE(child.begin("tell three things", [&](const ChildCopy::Tell& tell) {
    for (;; ::sem_wait(go_on)) tell("a");
  }));
  int told = 0;
  bool silent = false;
  child.watch(
      kPatience,
      [&] {
        std::array<char, 8> words;
        told += static_cast<int>(::read(child.fd(), words.data(), words.size()));
        const bool last = told == 3;
        clock.advance(last ? kPatience : kPatience - std::chrono::milliseconds(1));
        if (last) return;
        ASSERT_EQ(::sem_post(go_on), 0);
      },
      [&] {
        silent = true;
        loop.stop();
      });
  loop.run();
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(silent);
  ::munmap(memory, sizeof(sem_t));
}

// ------------------------------------------------------------------------ checkpoints

class CutWriterTest : public testing::Test {
 protected:
  CutWriterTest() { store.update(0, keys, std::vector<float>(2 * keys.size(), 3), 1); }
  Status begin(const std::string& to) {
    return writer.begin(store, {0, 1, 2}, to, [this](Result<CutWriter::Files> files) {
      written = std::move(files);
      loop.stop();
    });
  }
  std::vector<float> values_of(Store& of) const {
    std::vector<float> values(2 * keys.size());
    of.read(0, keys, reinterpret_cast<char*>(values.data()));
    return values;
  }
  void await() {
    const TimerId given_up = loop.call_after(kGiveUp, [this] { loop.stop(); });
    loop.run();
    loop.cancel(given_up);
  }

  const TempDir directory;
  const std::vector<TableSpec> tables{{"count", 2, {}, TableSpec::Init::kZero, 0}};
  const std::vector<std::uint64_t> keys = keys_up_to(5000);
  Store store{tables, 1};
  SteadyClock clock;
  EventLoop loop{clock};
  CutWriter writer{loop, kGiveUp};
  Result<CutWriter::Files> written = fail(ErrorKind::kIo, "nothing came");
};

TEST_F(CutWriterTest, WritesTheRowsAsTheyWereHoweverTheyChangeMeanwhile) {
  const std::string to = directory / "checkpoints/a";
  const Status begun = begin(to);
  ASSERT_TRUE(begun) << begun.error().message;
  const std::vector<float> before = values_of(store);
  store.update(0, keys, std::vector<float>(2 * keys.size(), 5), 1);
  const auto second = begin(to);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kRefused);
  await();
  ASSERT_TRUE(written) << written.error().message;
  ASSERT_EQ(written->size(), 3U);
  Store read(tables, 1);
  for (std::uint32_t slice = 0; slice < 3; ++slice) {
    EXPECT_EQ(written->at(slice).name, slice_file_name(slice));
    const Status status = read_slice(to, read, slice);
    ASSERT_TRUE(status) << status.error().message;
  }
  const std::size_t rows = read.rows();  // reading makes the others
  const std::vector<float> then = values_of(read);
  std::size_t written_values = 0;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (then[i] == 0) continue;  // of another slice
    ASSERT_EQ(then[i], before[i]);
    ++written_values;
  }
  EXPECT_GT(rows, 0U);
  EXPECT_EQ(written_values, 2 * rows);
  EXPECT_NE(values_of(store), before);
}

TEST_F(CutWriterTest, SaysHowManyBytesAreOnTheDiskAsLongAsItWrites) {
  EXPECT_FALSE(writer.progress());
  const std::string to = directory / "checkpoints/a";
  ASSERT_TRUE(begin(to));
  ASSERT_TRUE(writer.progress());
  EXPECT_EQ(writer.progress()->directory, to);
  EXPECT_EQ(writer.progress()->done_bytes, 0U);
  CutProgress last;
  EventLoop::Callback look = [&] {
    if (const auto now = writer.progress()) last = *now;
    if (writer.progress()) loop.call_after({}, look);
  };
  look();
  await();
  ASSERT_TRUE(written) << written.error().message;
  std::uint64_t bytes = 0;
  for (const wire::CheckpointFile& file : *written) bytes += file.bytes;
  EXPECT_EQ(last.total_bytes, bytes);
  EXPECT_EQ(last.done_bytes, bytes);
  EXPECT_FALSE(writer.progress()) << "nothing is written any more";
}

TEST_F(CutWriterTest, SaysWhatItCouldNotWriteAndCanBeginAgain) {
  std::filesystem::create_directories(directory / ("in the way/" + slice_file_name(0)));
  ASSERT_TRUE(begin(directory / "in the way"));
  await();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, testing::HasSubstr("in the way"));
  ASSERT_TRUE(begin(directory / "elsewhere"));
  await();
  EXPECT_TRUE(written) << written.error().message;
}

// They would take the room of the next one. Another server of this host writes there, too.
TEST_F(CutWriterTest, LeavesNoSliceOfACutThatFailed) {
  const std::string to = directory / "cut";
  for (const std::uint32_t slice : {2U, 3U}) {
    std::filesystem::create_directories(to + "/" + slice_file_name(slice));
  }
  ASSERT_TRUE(begin(to));
  await();
  ASSERT_FALSE(written);
  EXPECT_FALSE(std::filesystem::exists(to + "/" + slice_file_name(0)));
  EXPECT_FALSE(std::filesystem::exists(to + "/" + slice_file_name(1)));
  EXPECT_TRUE(std::filesystem::exists(to + "/" + slice_file_name(3)));
}

TEST_F(CutWriterTest, GivesAWriteUpThatMakesNoProgressAndBeginsTheNext) {
  ManualClock time;
  EventLoop own(time);
  CutWriter impatient(own, std::chrono::seconds(7));
  const auto begin_to = [&](const std::string& to) {
    return impatient.begin(store, {0, 1, 2}, to, [&](Result<CutWriter::Files> files) {
      written = std::move(files);
      own.stop();
    });
  };
  {
    const ChildrenStop stopped;
    ASSERT_TRUE(begin_to(directory / "a disk that hangs"));
  }
  time.advance(std::chrono::seconds(7));
  own.run();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, testing::HasSubstr("a disk that hangs for 7 s"));
  ASSERT_TRUE(begin_to(directory / "a disk that answers"));
  own.run();
  EXPECT_TRUE(written) << written.error().message;
}

TEST_F(CutWriterTest, AnAbandonedCutIsReportedToItsOwnerAndTheNextIsWritten) {
  EXPECT_EQ(writer.give_up(), nullptr);
  ASSERT_TRUE(begin(directory / "given up"));
  EXPECT_NE(writer.give_up(), nullptr);
  EXPECT_EQ(writer.give_up(), nullptr);
  ASSERT_TRUE(begin(directory / "next"));
  await();
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->size(), 3U);
}

// -------------------------------------------------------------- the state for a backup

class StateMakerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ignore = stepped(
        node, node::RequestHeard{{"", w(0), 1},
                                 Generation{1},
                                 wire::PsOpen{7, {{"t", 16, "adam", 0, 0, 0, "normal", 1}}}});
    ASSERT_NE(node.store(), nullptr);
    std::vector<float> values(keys.size() * 16);
    node.store()->read(0, keys, reinterpret_cast<char*>(values.data()));
  }
  // The next piece, when it comes.
  Result<StatePiece> next() {
    Result<StatePiece> made = fail(ErrorKind::kIo, "none came");
    const TimerId given_up = loop.call_after(kGiveUp, [this] { loop.stop(); });
    maker.next([&](Result<StatePiece> piece) {
      made = std::move(piece);
      loop.stop();
    });
    loop.run();
    loop.cancel(given_up);
    return made;
  }

  const std::vector<std::uint64_t> keys = keys_up_to(30'000);
  SteadyClock clock;
  EventLoop loop{clock};
  ServerNode node{{Generation{1}, 0, 1, Consistency::kUnbounded, {w(0)}, 0, "", 0}};
  StateMaker maker{loop, kGiveUp};
};

TEST_F(StateMakerTest, ItMakesThePiecesOfTheStateAsItWasHoweverItChangesMeanwhile) {
  std::vector<StatePiece> expected;
  write_state(node, [&](const StatePiece& piece) { expected.push_back(piece); });
  ASSERT_GT(expected.size(), 40U) << "more than fit into a pipe";
  ASSERT_TRUE(maker.begin(node));
  const std::vector<std::uint64_t> later{1'000'000, 1'000'001};
  const std::vector<float> ones(32, 1);
  node.store()->update(0, keys, std::vector<float>(keys.size() * 16, 1), 1);
  node.store()->put_new(0, later, ones);
  for (const StatePiece& piece : expected) {
    const auto made = next();
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->part, piece.part);
    EXPECT_EQ(made->last, piece.last);
    ASSERT_TRUE(made->bytes == piece.bytes) << "of part " << piece.part;
  }
}

TEST_F(StateMakerTest, APieceThatDoesNotComeIsGivenUpAndAnotherStateCanBegin) {
  ManualClock time;
  EventLoop own(time);
  StateMaker impatient(own, std::chrono::seconds(7));
  Result<StatePiece> made = StatePiece{};
  const auto take = [&](Result<StatePiece> piece) {
    made = std::move(piece);
    own.stop();
  };
  {
    const ChildrenStop stopped;
    ASSERT_TRUE(impatient.begin(node));
  }
  impatient.next(take);
  time.advance(std::chrono::seconds(7));
  own.run();
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, testing::HasSubstr("did nothing for 7 s"));
  ASSERT_TRUE(impatient.begin(node));
  impatient.next(take);
  own.run();
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(StateMakerTest, OneThatBeginsReplacesTheOneBeforeAndOneThatIsEndedMakesNothing) {
  ASSERT_TRUE(maker.begin(node));
  ASSERT_TRUE(next());
  ASSERT_TRUE(next());
  ASSERT_TRUE(maker.begin(node));
  const auto made = next();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->part, 0U) << "from the beginning";
  bool called = false;
  maker.next([&](const Result<StatePiece>&) { called = true; });
  maker.end();
  maker.next([&](const Result<StatePiece>&) { called = true; });
  loop.call_after(Duration::zero(), [this] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace antdt::ps
