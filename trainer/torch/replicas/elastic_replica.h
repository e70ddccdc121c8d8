// A worker's replica of a model's dense parameters, with their centre on parameter servers
// (S-EASGD of ShadowSync, arXiv 2003.03477; docs/synchronisation/shadow.md).
//
// Several threads of the worker may train it at once. They compute with copies of it.
#pragma once

#include <span>

#include "trainer/hogwild/shared_rows.h"
#include "trainer/loop/ps_model.h"
#include "trainer/ps/rows/update_rule.h"

namespace antdt::trainer {

class ElasticReplica final : public DenseReplica {
 public:
  // `values`: the first parameters; `rows`: the rows of the centre, which hold parameters one after
  // another, and then zeros, in rows of `width` floats. `share`: how much of the distance an
  // exchange takes away, in (0, 1].
  ElasticReplica(std::span<const float> values, ps::TableKeys rows, std::size_t width,
                 const ps::UpdateRule& rule, float share);

  // While no thread is in one of the two functions below.
  [[nodiscard]] const ps::TableKeys& centre_rows() const override { return rows_; }
  void begin(std::span<const float> centre) override;
  [[nodiscard]] ps::TableGradient exchange(std::span<const float> centre) override;
  void set_rate(double factor) override;

  // By several threads at once (hogwild::SharedRows says what that means).
  void read(std::span<float> into) const { shared_.read(into); }
  // Updates the replica by gradients that are sums over samples of this weight. `part` of `parts`
  // threads: they begin in different places.
  void update(std::span<const float> gradients, double weight, std::size_t part = 0,
              std::size_t parts = 1);

 private:
  const ps::TableKeys rows_;
  const float share_;
  const float learning_rate_;
  hogwild::SharedRows shared_;
};

}  // namespace antdt::trainer
