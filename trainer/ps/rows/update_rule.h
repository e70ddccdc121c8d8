// The effect of a gradient on one row of parameters.
//
// These are the dense optimizers of trainer/torch, one row at a time. A row that no gradient
// touches does not change (Adam's moments do not decay and its step count does not rise: "lazy").
// If every row is touched at every step, the results are the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"

namespace antdt::ps {

struct UpdateRule {
  enum class Kind : std::uint8_t {
    kSum,      // values += gradient: a pure counter
    kSgd,      // without momentum
    kAdagrad,  // Duchi, Hazan and Singer, JMLR 2011
    kAdam,     // Kingma and Ba, ICLR 2015; lazy
    kFtrl,     // McMahan et al., KDD 2013: FTRL-Proximal with L1 and L2
    // values += learning_rate * (gradient - values). What is pushed is a worker's replica, and the
    // "gradient" is the mean of all workers' replicas (replica_mean.h).
    kMean,
  };
  Kind kind = Kind::kAdagrad;
  float learning_rate = 1e-3F;
  float weight_decay = 0;  // L2 for FTRL; for others it is added to the gradient
  float l1 = 0;            // for FTRL

  bool operator==(const UpdateRule&) const = default;

  // Whether the factor of the job's learning rate (Store::set_rate) changes it. The rate of FTRL is
  // part of its state, and that of a mean is none of the optimizer's.
  [[nodiscard]] bool follows_rate() const { return kind != Kind::kFtrl && kind != Kind::kMean; }
  // Floats of state besides `width` values; zeros at first.
  [[nodiscard]] std::uint32_t state(std::uint32_t width) const;

  // Updates the row by a gradient (a sum over samples) times `scale`.
  void apply(std::span<float> values, std::span<float> state, std::span<const float> gradient,
             float scale) const;
};

// "sum", "sgd", "adagrad", "adam", "ftrl", "mean"; for anything else the error names these.
[[nodiscard]] Result<UpdateRule::Kind> parse_update_rule(const std::string& name);

}  // namespace antdt::ps
