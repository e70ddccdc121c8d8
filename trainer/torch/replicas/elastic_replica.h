// A worker's replica of a model's dense parameters, with their centre on parameter servers
// (S-EASGD of ShadowSync, arXiv 2003.03477; docs/synchronisation/shadow.md).
#pragma once

#include <span>
#include <vector>

#include "trainer/loop/ps_model.h"
#include "trainer/ps/rows/update_rule.h"

namespace antdt::trainer {

class ElasticReplica final : public DenseReplica {
 public:
  // `values`, `gradients`: the model's parameters and their gradients, which must outlive this;
  // `rows`: the rows of the centre, which hold `values` one after another, and then zeros, in rows
  // of `width` floats. `share`: how much of the distance an exchange takes away, in (0, 1].
  ElasticReplica(std::span<float> values, std::span<const float> gradients, ps::TableKeys rows,
                 std::size_t width, ps::UpdateRule rule, float share);

  [[nodiscard]] const ps::TableKeys& centre_rows() const override { return rows_; }
  void begin(std::span<const float> centre) override;
  [[nodiscard]] ps::TableGradient exchange(std::span<const float> centre) override;
  void set_rate(double factor) override;

  // Updates the replica by the gradients, which are sums over samples of this weight.
  void update(double weight);

 private:
  const std::span<float> values_;
  const std::span<const float> gradients_;
  const ps::TableKeys rows_;
  const std::size_t width_;
  const float share_;
  const float learning_rate_;
  ps::UpdateRule rule_;
  std::vector<float> state_;  // of the optimizer
};

}  // namespace antdt::trainer
