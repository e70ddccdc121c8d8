#include "trainer/torch/optimizer.h"

#include <cmath>
#include <memory_resource>

#include "core/os/forks/huge_pages.h"
#include "trainer/torch/loops/vectorised.h"

namespace antdt::trainer {
namespace {

// w: parameters, g: their gradients, which become 0, n: how many.
ANTDT_VECTORISED void sgd(float* __restrict w, float* __restrict g, std::size_t n, float scale,
                          float lr, float decay) {
  for (std::size_t i = 0; i < n; ++i) {
    w[i] -= lr * (g[i] * scale + decay * w[i]);
    g[i] = 0;
  }
}
// v: velocities.
ANTDT_VECTORISED void momentum_sgd(float* __restrict w, float* __restrict g, float* __restrict v,
                                   std::size_t n, float scale, float lr, float decay,
                                   float momentum) {
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = momentum * v[i] + g[i] * scale + decay * w[i];
    w[i] -= lr * v[i];
    g[i] = 0;
  }
}
// s: sums of squares.
ANTDT_VECTORISED void adagrad(float* __restrict w, float* __restrict g, float* __restrict s,
                              std::size_t n, float scale, float lr, float decay, float epsilon) {
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * scale + decay * w[i];
    s[i] += d * d;
    w[i] -= lr * d / (std::sqrt(s[i]) + epsilon);
    g[i] = 0;
  }
}
struct AdamStep {
  float scale, decay, b1, b2, rate, root, epsilon;
};
// m, v: first and second moments.
ANTDT_VECTORISED void adam(float* __restrict w, float* __restrict g, float* __restrict m,
                           float* __restrict v, std::size_t n, const AdamStep& step) {
  const auto [scale, decay, b1, b2, rate, root, epsilon] = step;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * scale + decay * w[i];
    m[i] = b1 * m[i] + (1 - b1) * d;
    v[i] = b2 * v[i] + (1 - b2) * d * d;
    w[i] -= rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
    g[i] = 0;
  }
}

// How much of a second moment's increment is from the square of a member's own gradient, and how
// much from the square of the mean gradient, which the first moment knows.
struct OwnAndMean {
  float own = 1, mean = 0;
};
ANTDT_VECTORISED void adam_of_member(float* __restrict w, float* __restrict g, float* __restrict m,
                                     float* __restrict v, std::size_t n, const AdamStep& step,
                                     const OwnAndMean& parts) {
  const auto [scale, decay, b1, b2, rate, root, epsilon] = step;
  const auto [own, mean] = parts;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * scale + decay * w[i];
    v[i] = b2 * v[i] + (1 - b2) * (own * d * d + mean * m[i] * m[i]);
    m[i] = b1 * m[i] + (1 - b1) * d;
    w[i] -= rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
    g[i] = 0;
  }
}

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, std::size_t size)
      : lr_(options.learning_rate),
        momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        velocity_(options.momentum != 0 ? size : 0, &HugePages::of_process()) {}

  void update(std::span<float> values, std::span<float> gradients, std::size_t first,
              float scale) override {
    const auto lr = static_cast<float>(lr_ * factor_);
    if (velocity_.empty()) {
      return sgd(values.data(), gradients.data(), values.size(), scale, lr, decay_);
    }
    momentum_sgd(values.data(), gradients.data(), velocity_.data() + first, values.size(), scale,
                 lr, decay_, momentum_);
  }
  [[nodiscard]] bool keeps_untouched() const override { return velocity_.empty() && decay_ == 0; }
  [[nodiscard]] bool rests_at_zero() const override { return decay_ == 0; }
  [[nodiscard]] std::vector<std::span<float>> state() override {
    if (velocity_.empty()) return {};
    return {velocity_};
  }

 private:
  double lr_;
  float momentum_, decay_;
  std::pmr::vector<float> velocity_;
};

// Duchi, Hazan and Singer, JMLR 2011.
class Adagrad final : public Optimizer {
 public:
  Adagrad(const OptimizerOptions& options, std::size_t size)
      : lr_(options.learning_rate),
        decay_(static_cast<float>(options.weight_decay)),
        sums_(size, &HugePages::of_process()) {}

  void update(std::span<float> values, std::span<float> gradients, std::size_t first,
              float scale) override {
    const auto lr = static_cast<float>(lr_ * factor_);
    adagrad(values.data(), gradients.data(), sums_.data() + first, values.size(), scale, lr, decay_,
            kEpsilon);
  }
  [[nodiscard]] bool keeps_untouched() const override { return decay_ == 0; }
  [[nodiscard]] std::vector<std::span<float>> state() override { return {sums_}; }

 private:
  static constexpr float kEpsilon = 1e-10F;
  double lr_;
  float decay_;
  std::pmr::vector<float> sums_;
};

// Kingma and Ba, ICLR 2015.
//
// Of one of N replicas (set_members), both moments are averaged with the parameters (Replica::mix).
// The mean of the first moments is then that of the gradients of all records. The square of a
// member's gradient is not: for a gradient of all records with mean s and variance c, it is
// s^2 + N c on average, and steps would be too short by up to the root of N. The wanted s^2 + c is
// estimated from that and from the square of the first moment, which is s^2 + k c with
// k = (1 - b1) / (1 + b1), as a mean over steps has less noise.
class Adam final : public ReplicaOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::size_t size)
      : lr_(options.learning_rate),
        decay_(static_cast<float>(options.weight_decay)),
        first_(size, &HugePages::of_process()),
        second_(size, &HugePages::of_process()) {}

  void begin_step() override {
    ++steps_;
    const auto t = static_cast<double>(steps_);
    rate_ = static_cast<float>(lr_ * factor_ / (1 - std::pow(kBeta1, t)));
    root_ = static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, t)));
    parts_ = {};
    if (members_ == 1 || steps_ == 1) return;  // there is no first moment before the first step
    constexpr double kOfNoise = (1 - kBeta1) / (1 + kBeta1);
    const double own = (1 - kOfNoise) / (members_ - kOfNoise);
    const double corrected = 1 / (1 - std::pow(kBeta1, t - 1));
    parts_ = {static_cast<float>(own), static_cast<float>((1 - own) * corrected * corrected)};
  }
  void update(std::span<float> values, std::span<float> gradients, std::size_t first,
              float scale) override {
    const AdamStep step{
        scale, decay_,  static_cast<float>(kBeta1), static_cast<float>(kBeta2), rate_,
        root_, kEpsilon};
    float* const m = first_.data() + first;
    float* const v = second_.data() + first;
    if (parts_.mean == 0) {
      adam(values.data(), gradients.data(), m, v, values.size(), step);
    } else {
      adam_of_member(values.data(), gradients.data(), m, v, values.size(), step, parts_);
    }
  }
  [[nodiscard]] bool rests_at_zero() const override { return decay_ == 0; }
  [[nodiscard]] std::vector<std::span<float>> state() override { return {first_, second_}; }

 private:
  static constexpr double kBeta1 = 0.9;
  static constexpr double kBeta2 = 0.999;
  static constexpr float kEpsilon = 1e-8F;
  double lr_;
  float decay_;
  float rate_ = 0, root_ = 1;  // for the present step: corrections of moments that began with zero
  OwnAndMean parts_;           // for the present step
  std::pmr::vector<float> first_, second_;
};

template <class T>
kit::OptimizerFactory factory_of() {
  return [](const kit::Context& c, std::size_t size) -> std::unique_ptr<Optimizer> {
    const kit::Settings& s = c.settings;
    return std::make_unique<T>(
        OptimizerOptions{s.optimizer, s.learning_rate, s.momentum, s.weight_decay}, size);
  };
}

}  // namespace

std::map<std::string, kit::OptimizerFactory> built_in_optimizers() {
  return {
      {"sgd", factory_of<Sgd>()}, {"adagrad", factory_of<Adagrad>()}, {"adam", factory_of<Adam>()}};
}

Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerOptions& options,
                                                  std::size_t size) {
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, size);
  if (options.kind == "adagrad") return std::make_unique<Adagrad>(options, size);
  if (options.kind == "adam") return std::make_unique<Adam>(options, size);
  return fail(ErrorKind::kUsage, "trainer.optimizer '{}' is not known: use sgd, adagrad or adam",
              options.kind);
}

}  // namespace antdt::trainer

namespace antdt::kit {

Optimizer::~Optimizer() = default;
Reader::~Reader() = default;

}  // namespace antdt::kit
