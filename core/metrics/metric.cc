#include "core/metrics/metric.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::metrics {

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  ANTDT_CHECK(std::ranges::is_sorted(bounds_), "the bounds of a histogram do not rise");
}

void Histogram::observe(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

Family& Families::gauge(std::string name, std::string help) {
  return all_.emplace_back(Family{std::move(name), std::move(help), Type::kGauge});
}

Family& Families::counter(std::string name, std::string help) {
  return all_.emplace_back(Family{std::move(name), std::move(help), Type::kCounter});
}

void Families::histogram(std::string name, std::string help, Histogram values) {
  Family family{std::move(name), std::move(help), Type::kHistogram};
  family.histograms.push_back(std::move(values));
  all_.push_back(std::move(family));
}

}  // namespace antdt::metrics
