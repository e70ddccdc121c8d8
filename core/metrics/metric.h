// Metrics as values: families of samples, as Prometheus knows them. Names follow its conventions:
// base units (seconds, bytes), `_total` for counters.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace antdt::metrics {

enum class Type { kGauge, kCounter, kHistogram };

// Names are constants of the program. Values may be any text: the writer escapes and shortens it.
using Labels = std::vector<std::pair<std::string, std::string>>;

// How many observations were at most each bound, and their sum.
class Histogram {
 public:
  // `bounds`: rising upper bounds; infinity is implied.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value);

  [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }
  // Of each bound, and of infinity: the observations above the bound before it.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

struct Family {
  struct Sample {
    Labels labels;
    double value = 0;
  };
  std::string name;
  std::string help;
  Type type = Type::kGauge;
  std::vector<Sample> samples = {};
  std::vector<Histogram> histograms = {};  // in place of `samples`; without labels of their own

  void add(double value, Labels labels = {}) { samples.push_back({std::move(labels), value}); }
};

// The families of one answer, in the order in which they were made.
class Families {
 public:
  // `common`: labels that every sample has, before its own.
  explicit Families(Labels common = {}) : common_(std::move(common)) {}

  // A new family. The reference stays valid.
  Family& gauge(std::string name, std::string help);
  Family& counter(std::string name, std::string help);
  // A family of one sample without labels of its own.
  void gauge(std::string name, std::string help, double value) {
    gauge(std::move(name), std::move(help)).add(value);
  }
  void counter(std::string name, std::string help, double value) {
    counter(std::move(name), std::move(help)).add(value);
  }
  void histogram(std::string name, std::string help, Histogram values);

  [[nodiscard]] const Labels& common() const { return common_; }
  [[nodiscard]] const std::deque<Family>& all() const { return all_; }

 private:
  Labels common_;
  std::deque<Family> all_;
};

}  // namespace antdt::metrics
