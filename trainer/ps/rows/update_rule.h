// What a gradient does to one row of parameters.
//
// The dense optimizers of trainer/torch, a row at a time: a row that no gradient
// touches is not changed (Adam's moments do not decay and its step count stands
// still: "lazy"). With every row touched at every step the results are the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"

namespace antdt::ps {

struct UpdateRule {
  enum class Kind : std::uint8_t {
    kSum,      // values += gradient: what counts, and nothing else
    kSgd,      // no momentum
    kAdagrad,  // Duchi, Hazan and Singer, JMLR 2011
    kAdam,     // Kingma and Ba, ICLR 2015; lazy
    kFtrl,     // McMahan et al., KDD 2013: FTRL-Proximal with L1 and L2
  };
  Kind kind = Kind::kAdagrad;
  float learning_rate = 1e-3F;
  float weight_decay = 0;  // L2 for FTRL, added to the gradient elsewhere
  float l1 = 0;            // of FTRL

  bool operator==(const UpdateRule&) const = default;

  // Floats of state beside `width` values; zeros at first.
  [[nodiscard]] std::uint32_t state(std::uint32_t width) const;

  // The row after a gradient (a sum over samples) times `scale`.
  void apply(std::span<float> values, std::span<float> state, std::span<const float> gradient,
             float scale) const;
};

// "sum", "sgd", "adagrad", "adam", "ftrl"; anything else is an error that names them.
[[nodiscard]] Result<UpdateRule::Kind> parse_update_rule(const std::string& name);

}  // namespace antdt::ps
