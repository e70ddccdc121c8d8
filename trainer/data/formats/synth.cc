#include "trainer/data/formats/synth.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "core/os/fs.h"
#include "core/permutation.h"
#include "trainer/data/formats/criteo.h"

namespace antdt::data {
namespace {

constexpr double kBaseRate = 0.25;
// Spread of the logit from single fields and from pairs of fields. Together they give a best AUC of
// about 0.80, of which a model without interactions misses about 0.01. Pairs use fields with few
// values, so that they can be learnt.
constexpr double kMainSpread = 1.3;
constexpr double kPairSpread = 0.35;
constexpr std::size_t kPairs = 4;
constexpr std::size_t kPairedFields = 10;
constexpr std::size_t kLatent = 4;
constexpr std::uint64_t kCalibrationRows = 20000;
constexpr std::uint64_t kLeastEvalRows = 1000;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

struct NumberField {
  double mean = 0, spread = 0;  // of the logarithm
  double missing = 0;           // share of missing values
  double effect = 0;            // effect of the standardised logarithm
};
struct CategoryField {
  std::vector<double> cumulative;  // by Zipf's law
  std::vector<double> effect;
  std::vector<std::array<double, kLatent>> latent;
  std::vector<std::uint32_t> token;
};
struct FeaturePair {
  std::size_t first = 0, second = 0;
};

// A row before its label is drawn.
struct Draw {
  std::array<std::optional<std::int64_t>, kCriteoNumbers> numbers;
  std::array<std::size_t, kCriteoCategories> values{};  // 0: missing in the file
  double main = 0, pairs = 0;                           // parts of the logit
};

class PlantedModel {
 public:
  explicit PlantedModel(std::uint64_t seed) {
    Random random(combine_seed(seed, 1));
    for (NumberField& field : numbers_) {
      field = {1 + 3 * random.uniform(), 0.5 + random.uniform(), 0.2 * random.uniform(),
               0.5 * random.normal()};
    }
    for (std::size_t i = 0; i < kCriteoCategories; ++i) make_category(i, random);
    for (FeaturePair& pair : pairs_) {
      pair.first = random.bits() % kPairedFields;
      pair.second = (pair.first + 1 + random.bits() % (kPairedFields - 1)) % kPairedFields;
    }
    calibrate(combine_seed(seed, 2));
  }

  [[nodiscard]] Draw draw(Random& random) const {
    Draw row;
    for (std::size_t i = 0; i < kCriteoNumbers; ++i) draw_number(i, random, row);
    for (std::size_t i = 0; i < kCriteoCategories; ++i) {
      const CategoryField& field = categories_[i];
      const auto at =
          std::upper_bound(field.cumulative.begin(), field.cumulative.end(), random.uniform());
      row.values[i] = static_cast<std::size_t>(at - field.cumulative.begin());
      row.main += field.effect[row.values[i]];
    }
    for (const FeaturePair& pair : pairs_) {
      const auto& a = categories_[pair.first].latent[row.values[pair.first]];
      const auto& b = categories_[pair.second].latent[row.values[pair.second]];
      for (std::size_t k = 0; k < kLatent; ++k) row.pairs += a[k] * b[k];
    }
    return row;
  }
  [[nodiscard]] double click_probability(const Draw& row) const {
    return 1 / (1 + std::exp(-logit(row) - bias_));
  }
  [[nodiscard]] std::uint32_t token(std::size_t field, std::size_t value) const {
    return categories_[field].token[value];
  }

 private:
  void make_category(std::size_t index, Random& random) {
    CategoryField& field = categories_[index];
    // From 8 values to some 200, evenly spread on a logarithmic scale.
    const auto count = static_cast<std::size_t>(
        8 * std::pow(25.0, static_cast<double>(index) / (kCriteoCategories - 1)));
    const double exponent = 0.9 + 0.4 * random.uniform();
    const double scale = 0.3 + random.uniform();
    double sum = 0;
    for (std::size_t v = 0; v < count; ++v) {
      sum += std::pow(static_cast<double>(v + 1), -exponent);
      field.cumulative.push_back(sum);
      field.effect.push_back(scale * random.normal());
      for (double& x : field.latent.emplace_back()) x = random.normal();
      field.token.push_back(static_cast<std::uint32_t>(mix64(index << 32 | v)));
    }
    for (double& c : field.cumulative) c /= sum;
    field.cumulative.back() = 1;
  }

  void draw_number(std::size_t index, Random& random, Draw& row) const {
    const NumberField& field = numbers_[index];
    const double z = random.normal();
    if (random.uniform() < field.missing) return;
    const double value = std::min(std::exp(field.mean + field.spread * z), 1e9);
    row.numbers[index] = static_cast<std::int64_t>(value);
    // Uses the whole number in the file, so that the model can see all of it.
    row.main += field.effect * (std::log1p(std::floor(value)) - field.mean) / field.spread;
  }

  [[nodiscard]] double logit(const Draw& row) const {
    return main_scale_ * row.main + pair_scale_ * row.pairs;
  }

  // Scales both parts to the wanted spread, then finds the bias that gives the wanted base rate, by
  // bisection over a sample.
  void calibrate(std::uint64_t seed) {
    Random random(seed);
    std::vector<Draw> sample;
    for (std::uint64_t i = 0; i < kCalibrationRows; ++i) sample.push_back(draw(random));
    const auto spread = [&](double Draw::*part) {
      double sum = 0, squares = 0;
      for (const Draw& row : sample) sum += row.*part, squares += row.*part * row.*part;
      const auto n = static_cast<double>(sample.size());
      return std::sqrt(squares / n - (sum / n) * (sum / n));
    };
    main_scale_ = kMainSpread / spread(&Draw::main);
    pair_scale_ = kPairSpread / spread(&Draw::pairs);
    double low = -50, high = 50;
    for (int i = 0; i < 40; ++i) {
      bias_ = (low + high) / 2;
      double clicks = 0;
      for (const Draw& row : sample) clicks += click_probability(row);
      (clicks / static_cast<double>(sample.size()) < kBaseRate ? low : high) = bias_;
    }
  }

  std::array<NumberField, kCriteoNumbers> numbers_;
  std::array<CategoryField, kCriteoCategories> categories_;
  std::array<FeaturePair, kPairs> pairs_;
  double main_scale_ = 1, pair_scale_ = 1, bias_ = 0;
};

void append_line(const PlantedModel& model, const Draw& row, bool click, std::string& out) {
  std::array<char, 32> text{};
  out.push_back(click ? '1' : '0');
  for (const auto& number : row.numbers) {
    out.push_back('\t');
    if (!number) continue;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *number).ptr;
    out.append(text.data(), end);
  }
  for (std::size_t i = 0; i < kCriteoCategories; ++i) {
    out.push_back('\t');
    // In every fourth field, the most frequent value is a missing one.
    if (i % 4 == 3 && row.values[i] == 0) continue;
    std::uint32_t token = model.token(i, row.values[i]);
    for (int digit = 0; digit < 8; ++digit, token <<= 4) {
      out.push_back("0123456789abcdef"[token >> 28]);
    }
  }
  out.push_back('\n');
}

using Scored = std::vector<std::pair<double, bool>>;  // true probability and whether it was clicked

Result<Scored> write_rows(const PlantedModel& model, std::uint64_t rows, std::uint64_t seed,
                          const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wbe"),
                                                             &std::fclose);
  if (!file) return fail_errno(ErrorKind::kUsage, errno, "cannot write " + path);
  Random random(seed);
  Scored scored;
  scored.reserve(rows);
  std::string buffer;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const Draw row = model.draw(random);
    const double probability = model.click_probability(row);
    const bool click = random.uniform() < probability;
    scored.emplace_back(probability, click);
    append_line(model, row, click, buffer);
    if (buffer.size() < (1 << 20) && i + 1 < rows) continue;
    if (std::fwrite(buffer.data(), 1, buffer.size(), file.get()) != buffer.size()) {
      return fail_errno(ErrorKind::kIo, errno, "cannot write " + path);
    }
    buffer.clear();
  }
  if (std::fflush(file.get()) != 0)
    return fail_errno(ErrorKind::kIo, errno, "cannot write " + path);
  return scored;
}

// The share of (click, no click) pairs in which the click has the higher score.
double auc(Scored scored) {
  std::sort(scored.begin(), scored.end());
  double below = 0, right = 0, clicks = 0;
  for (const auto& [score, click] : scored) {
    if (click) {
      right += below;
      ++clicks;
    } else {
      ++below;
    }
  }
  return right / (clicks * below);
}

double log_loss(const Scored& scored) {
  double sum = 0;
  for (const auto& [p, click] : scored) sum -= std::log(click ? p : 1 - p);
  return sum / static_cast<double>(scored.size());
}

}  // namespace

Result<SynthReport> synthesize_criteo(std::uint64_t rows, std::uint64_t seed,
                                      const std::string& out_dir) {
  if (rows == 0) return fail(ErrorKind::kUsage, "asked for no row: give --rows at least 1");
  ANTDT_RETURN_IF_ERROR(make_directories(out_dir));
  SynthReport report;
  report.train_file = out_dir + "/train.tsv";
  report.eval_file = out_dir + "/eval.tsv";
  report.train_rows = rows;
  report.eval_rows = std::max(rows / 4, kLeastEvalRows);
  const PlantedModel model(seed);
  ANTDT_TRY(const Scored train, write_rows(model, rows, combine_seed(seed, 3), report.train_file));
  ANTDT_TRY(Scored eval,
            write_rows(model, report.eval_rows, combine_seed(seed, 4), report.eval_file));
  const auto clicks = std::count_if(train.begin(), train.end(), [](auto& s) { return s.second; });
  report.base_rate = static_cast<double>(clicks) / static_cast<double>(rows);
  report.best_log_loss = log_loss(eval);
  report.best_auc = auc(std::move(eval));
  return report;
}

}  // namespace antdt::data
