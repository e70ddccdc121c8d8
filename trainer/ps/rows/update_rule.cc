#include "trainer/ps/rows/update_rule.h"

#include <cmath>

#include "core/check.h"

namespace antdt::ps {
namespace {

constexpr float kBeta1 = 0.9F;
constexpr float kBeta2 = 0.999F;
constexpr float kAdamEpsilon = 1e-8F;
constexpr float kAdagradEpsilon = 1e-10F;
constexpr float kFtrlBeta = 1.0F;

struct Row {
  float* __restrict w;
  float* __restrict state;
  const float* __restrict g;
  std::size_t n;
  float scale;
};

void sgd(const UpdateRule& rule, const Row& r) {
  for (std::size_t i = 0; i < r.n; ++i) {
    r.w[i] -= rule.learning_rate * (r.g[i] * r.scale + rule.weight_decay * r.w[i]);
  }
}

void adagrad(const UpdateRule& rule, const Row& r) {
  float* __restrict sums = r.state;
  for (std::size_t i = 0; i < r.n; ++i) {
    const float d = r.g[i] * r.scale + rule.weight_decay * r.w[i];
    sums[i] += d * d;
    r.w[i] -= rule.learning_rate * d / (std::sqrt(sums[i]) + kAdagradEpsilon);
  }
}

// The last float of the state counts the row's steps (exact up to 2^24, by which the corrections
// have long been 1).
void adam(const UpdateRule& rule, const Row& r) {
  float* __restrict first = r.state;
  float* __restrict second = r.state + r.n;
  float& steps = r.state[2 * r.n];
  steps += 1;
  const auto t = static_cast<double>(steps);
  const auto rate = static_cast<float>(double{rule.learning_rate} / (1 - std::pow(0.9, t)));
  const auto root = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, t)));
  for (std::size_t i = 0; i < r.n; ++i) {
    const float d = r.g[i] * r.scale + rule.weight_decay * r.w[i];
    first[i] = kBeta1 * first[i] + (1 - kBeta1) * d;
    second[i] = kBeta2 * second[i] + (1 - kBeta2) * d * d;
    r.w[i] -= rate * first[i] / (std::sqrt(second[i]) * root + kAdamEpsilon);
  }
}

// A row that existed before FTRL saw it keeps its value: z is set so that the closed form gives
// that value.
void ftrl(const UpdateRule& rule, const Row& r) {
  float* __restrict z = r.state;
  float* __restrict sums = r.state + r.n;
  const float alpha = rule.learning_rate;
  for (std::size_t i = 0; i < r.n; ++i) {
    const float d = r.g[i] * r.scale;
    const float before = (kFtrlBeta + std::sqrt(sums[i])) / alpha + rule.weight_decay;
    if (sums[i] == 0 && z[i] == 0 && r.w[i] != 0) {
      z[i] = -r.w[i] * before - std::copysign(rule.l1, r.w[i]);
    }
    const float root = std::sqrt(sums[i]);
    sums[i] += d * d;
    z[i] += d - (std::sqrt(sums[i]) - root) / alpha * r.w[i];
    const float over = std::abs(z[i]) - rule.l1;
    const float denominator = (kFtrlBeta + std::sqrt(sums[i])) / alpha + rule.weight_decay;
    r.w[i] = over <= 0 ? 0 : -std::copysign(over, z[i]) / denominator;
  }
}

// With a rate of 1 the row is the mean to the last bit, whatever it was.
void follow_mean(const UpdateRule& rule, const Row& r) {
  const double share = rule.learning_rate;
  for (std::size_t i = 0; i < r.n; ++i) {
    r.w[i] = share == 1 ? r.g[i] : static_cast<float>((1 - share) * r.w[i] + share * r.g[i]);
  }
}

}  // namespace

std::uint32_t UpdateRule::state(std::uint32_t width) const {
  switch (kind) {
    case Kind::kSum:
    case Kind::kSgd:
    case Kind::kMean:
      return 0;
    case Kind::kAdagrad:
      return width;
    case Kind::kAdam:
      return 2 * width + 1;
    case Kind::kFtrl:
      return 2 * width;
  }
  return 0;
}

void UpdateRule::apply(std::span<float> values, std::span<float> state,
                       std::span<const float> gradient, float scale) const {
  ANTDT_CHECK(gradient.size() == values.size(), "a gradient of {} floats for a row of {}",
              gradient.size(), values.size());
  const Row row{values.data(), state.data(), gradient.data(), values.size(), scale};
  switch (kind) {
    case Kind::kSum:
      for (std::size_t i = 0; i < row.n; ++i) row.w[i] += row.g[i];
      return;
    case Kind::kSgd:
      return sgd(*this, row);
    case Kind::kAdagrad:
      return adagrad(*this, row);
    case Kind::kAdam:
      return adam(*this, row);
    case Kind::kFtrl:
      return ftrl(*this, row);
    case Kind::kMean:
      return follow_mean(*this, row);
  }
}

Result<UpdateRule::Kind> parse_update_rule(const std::string& name) {
  using Kind = UpdateRule::Kind;
  if (name == "sum") return Kind::kSum;
  if (name == "sgd") return Kind::kSgd;
  if (name == "adagrad") return Kind::kAdagrad;
  if (name == "adam") return Kind::kAdam;
  if (name == "ftrl") return Kind::kFtrl;
  if (name == "mean") return Kind::kMean;
  return fail(ErrorKind::kUsage,
              "the update rule '{}' is not known: use sgd, adagrad, adam, ftrl, sum or mean", name);
}

}  // namespace antdt::ps
