// Transcripts of SkewScout's machine.
//
//   scout [every=N] [initial=T] [least=T] [most=T]
//   trained BATCHES sent=BYTES dense=BYTES
//   visited loss=FRACTION
//   failed
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "core/overloaded.h"
#include "ctl/control/skew_scout.h"
#include "tests/transcript/transcript.h"

namespace antdt::ctl::skew {
namespace {

using transcript::Line;

class ScoutScript final : public transcript::Machine {
 public:
  explicit ScoutScript(const Line& first) : scout_(options_of(first)) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    Effects effects;
    scout_.step(input_of(line), now, effects);
    std::vector<std::string> shown;
    const Overloaded show{[](const Visit&) { return std::string("visit"); },
                          [](const SetThreshold& e) { return e.reason; }};
    for (const Effect& effect : effects) shown.push_back(std::visit(show, effect));
    return shown;
  }

 private:
  static ScoutOptions options_of(const Line& first) {
    ScoutOptions options;
    options.every = first.number("every", options.every);
    options.initial = first.real("initial", options.initial);
    options.least = first.real("least", options.least);
    options.most = first.real("most", options.most);
    return options;
  }
  static Input input_of(const Line& line) {
    if (line.what() == "trained") {
      return Trained{std::stoull(line.word(0)), line.real("sent", 0), line.real("dense", 0)};
    }
    if (line.what() == "visited") return Visited{line.real("loss", 0)};
    if (line.what() == "failed") return VisitsFailed{};
    throw std::runtime_error("no event: " + line.what());
  }
  SkewScout scout_;
};

class SkewScoutTranscript : public testing::TestWithParam<std::string> {};

TEST_P(SkewScoutTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/skew_scout", GetParam(), [](const Line& first) {
    return std::make_unique<ScoutScript>(first);
  });
}

INSTANTIATE_TEST_SUITE_P(, SkewScoutTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/skew_scout")),
                         [](const auto& name) { return name.param; });

// Trains with whatever threshold is in force, where the loss of accuracy and the bytes depend on
// it.
template <class Loss>
std::vector<double> thresholds_of(SkewScout& scout, int visits, Loss loss) {
  std::vector<double> all;
  for (int visit = 0; visit < visits; ++visit) {
    const double threshold = scout.threshold();
    Effects effects;
    scout.step(Trained{50, std::min(1.0, 0.001 / threshold), 1}, {}, effects);
    scout.step(Visited{loss(threshold)}, {}, effects);
    all.push_back(scout.threshold());
  }
  return all;
}

TEST(SkewScout, TheObjectiveIsThatOfThePaper) {
  const Objective objective;
  EXPECT_DOUBLE_EQ(cost_of(objective, 0.04, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(cost_of(objective, 0.15, 0.3), 50 * 0.1 + 0.3);
  EXPECT_DOUBLE_EQ(cost_of(objective, -0.2, 0.3), 0.3);
}

// With divided data it ends at a threshold whose loss is tolerated, or next to one.
TEST(SkewScout, ComesBackToAThresholdWhoseLossIsTolerated) {
  SkewScout scout({.initial = 0.2, .least = 0.2 / 256});
  const auto all = thresholds_of(scout, 40, [](double t) { return std::min(0.5, 4 * t); });
  for (std::size_t i = 10; i < all.size(); ++i) {
    EXPECT_GE(all[i], 0.2 / 32) << i;  // a loss of 2.5 points
    EXPECT_LE(all[i], 0.2 / 8) << i;   // a loss of 10 points, when it is tried again
  }
  const auto tolerated =
      std::ranges::count_if(all, [](double threshold) { return 4 * threshold <= 0.05; });
  EXPECT_GE(tolerated, 20);
}

TEST(SkewScout, GoesToTheLoosestThresholdIfNothingIsLost) {
  SkewScout scout({.initial = 0.01, .most = 0.64});
  const auto all = thresholds_of(scout, 14, [](double) { return 0.01; });
  EXPECT_DOUBLE_EQ(all.back(), 0.64);
}

TEST(SkewScout, StaysWithinItsBounds) {
  SkewScout scout({.initial = 0.01, .least = 0.005});
  const auto all = thresholds_of(scout, 20, [](double) { return 0.9; });
  EXPECT_DOUBLE_EQ(std::ranges::min(all), 0.005);
}

}  // namespace
}  // namespace antdt::ctl::skew
