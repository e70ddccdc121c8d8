#include "tests/transcript/transcript.h"

#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace antdt::transcript {
namespace {

// Adds numbers up, and says the sum and the time.
class Adder : public Machine {
 public:
  explicit Adder(const Line& first) : sum_(first.number("begin", 0)) {}
  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() != "add") throw std::runtime_error("no event: " + line.what());
    sum_ += line.number("n", 0);
    if (line.has("quietly")) return {};
    const double seconds = to_seconds(now - MonoTime{std::chrono::hours(1)});
    return {fmt::format("sum {} at {} s", sum_, seconds)};
  }

 private:
  std::uint64_t sum_;
};
std::unique_ptr<Machine> make_adder(const Line& first) { return std::make_unique<Adder>(first); }

Outcome play_adder(const std::string& script) { return play(script, make_adder); }

std::string only_error(const std::string& script) {
  const Outcome outcome = play_adder(script);
  EXPECT_EQ(outcome.differences.size(), 1U) << script;
  if (outcome.differences.empty() || outcome.differences[0].found.empty()) return {};
  return outcome.differences[0].found[0];
}

const std::string kScript =
    "# Two and three are five.\n"
    "adder begin=2\n"
    "\n"
    "1.5s add n=3\n"
    "  sum 5 at 1.5 s\n"
    "add n=1 quietly\n"
    "2min\n"
    "given add n=1\n"
    "add n=0\n"
    "  sum 7 at 120 s\n";

TEST(TranscriptTest, AScriptWhoseEffectsAreThoseOfTheMachineHasNoDifferences) {
  const Outcome outcome = play_adder(kScript);
  EXPECT_TRUE(outcome.differences.empty());
  EXPECT_EQ(outcome.text, kScript);
  EXPECT_EQ(outcome.events, 6U);
}

TEST(TranscriptTest, ADifferenceHasItsLineAndWhatWasExpectedAndFound) {
  const Outcome outcome = play_adder("adder\nadd n=1\n  sum 2 at 0 s\n  and more\n");
  ASSERT_EQ(outcome.differences.size(), 1U);
  const Played& played = outcome.differences[0];
  EXPECT_EQ(played.line, 2U);
  EXPECT_EQ(played.event, "add n=1");
  EXPECT_EQ(played.expected, (std::vector<std::string>{"sum 2 at 0 s", "and more"}));
  EXPECT_EQ(played.found, (std::vector<std::string>{"sum 1 at 0 s"}));
  EXPECT_EQ(outcome.text, "adder\nadd n=1\n  sum 1 at 0 s\n");
}

TEST(TranscriptTest, AnEffectThatIsExpectedAndDoesNotComeIsADifference) {
  EXPECT_EQ(play_adder("adder\nadd quietly\n  sum 0 at 0 s\n").differences.size(), 1U);
}

TEST(TranscriptTest, AnEffectThatNobodyExpectsIsADifference) {
  EXPECT_EQ(play_adder("adder\nadd n=1\nadd quietly\n").differences.size(), 1U);
}

TEST(TranscriptTest, EffectsBeforeTheFirstEventAreADifference) {
  EXPECT_EQ(play_adder("  sum 0 at 0 s\nadder\nadd quietly\n").differences.size(), 1U);
}

TEST(TranscriptTest, AWordThatNothingReadsIsAnError) {
  EXPECT_EQ(only_error("adder\nadd m=1 quietly\n"), "ERROR: 'm=1' means nothing in this line");
  EXPECT_EQ(only_error("adder\nadd n=1 quitely\n"), "ERROR: 'quitely' means nothing in this line");
  EXPECT_EQ(only_error("adder from=2\nadd quietly\n"),
            "ERROR: 'from=2' means nothing in this line");
}

TEST(TranscriptTest, AnEventThatTheMachineDoesNotKnowIsAnError) {
  EXPECT_EQ(only_error("adder\nsubtract\n"), "ERROR: no event: subtract");
  EXPECT_EQ(only_error("adder\nadd n=one\n"), "ERROR: no number: one");
}

TEST(TranscriptTest, AnErrorIsSeenInWhatIsGivenToo) {
  EXPECT_EQ(only_error("adder\ngiven subtract\n"), "ERROR: no event: subtract");
}

TEST(TranscriptTest, TimeDoesNotRunBackwards) {
  EXPECT_EQ(only_error("adder\n2s add quietly\n1s add quietly\n"), "ERROR: time runs backwards");
}

TEST(TranscriptTest, TheRestOfALineIsAsItWasWritten) {
  const Line line("gone w1.1 was killed:  signal=9 (SIGKILL)");
  EXPECT_EQ(line.word(0), "w1.1");
  EXPECT_EQ(line.rest(1), "was killed:  signal=9 (SIGKILL)");
  EXPECT_FALSE(line.unread());
}

// A directory with one script.
class TranscriptFileTest : public testing::Test {
 protected:
  TranscriptFileTest() {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/one.txt") << "adder\nadd n=1\n  sum 2 at 0 s\n";
  }
  ~TranscriptFileTest() override {
    unsetenv("ANTDT_ACCEPT_TRANSCRIPTS");
    std::filesystem::remove_all(directory_);
  }
  void play_it() const { expect_as_written(directory_, "one", make_adder); }

  static inline const std::string directory_ =
      testing::TempDir() + "antdt-transcript-" + std::to_string(getpid());
};

TEST_F(TranscriptFileTest, ADifferenceFailsTheTestAtTheLineOfTheScript) {
  unsetenv("ANTDT_ACCEPT_TRANSCRIPTS");
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    play_it();
  }
  ASSERT_EQ(results.size(), 1);
  const testing::TestPartResult& failure = results.GetTestPartResult(0);
  EXPECT_EQ(failure.line_number(), 2);
  EXPECT_EQ(failure.file_name(), directory_ + "/one.txt");
  EXPECT_STREQ(failure.message(),
               "Failed\nadd n=1\n  expected:\n    sum 2 at 0 s\n  found:\n    sum 1 at 0 s\n");
}

TEST_F(TranscriptFileTest, IsWrittenAgainOnlyWhenTheEnvironmentSaysSo) {
  setenv("ANTDT_ACCEPT_TRANSCRIPTS", "1", 1);
  play_it();
  unsetenv("ANTDT_ACCEPT_TRANSCRIPTS");
  play_it();  // as it is now
  EXPECT_EQ(scripts_in(directory_), std::vector<std::string>{"one"});
}

TEST_F(TranscriptFileTest, AFileThatIsNotThereIsAFailure) {
  EXPECT_NONFATAL_FAILURE(expect_as_written(directory_, "two", make_adder), "describes nothing");
}

}  // namespace
}  // namespace antdt::transcript
