#include "trainer/torch/optimizer.h"

#include <cmath>
#include <memory_resource>

#include "core/os/huge_pages.h"
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
class Adam final : public Optimizer {
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
  }
  void update(std::span<float> values, std::span<float> gradients, std::size_t first,
              float scale) override {
    adam(values.data(), gradients.data(), first_.data() + first, second_.data() + first,
         values.size(),
         {scale, decay_, static_cast<float>(kBeta1), static_cast<float>(kBeta2), rate_, root_,
          kEpsilon});
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
