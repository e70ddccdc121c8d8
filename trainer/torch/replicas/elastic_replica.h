// A worker's replica of a model's dense parameters, with their centre on parameter servers
// (ShadowSync, arXiv 2003.03477; docs/synchronisation/shadow.md).
//
// The centre is one that exchanges move by the distance that they take from the replica (S-EASGD),
// or it follows the mean of the replicas, which the servers know because an exchange carries the
// replica itself (S-MA, S-BMUF). In the second case the mean contains the replica as it was sent.
// So the distance of that one is taken away, and what was trained since then stays:
//
//   sent ──(the mean has it; the replica is trained on)──> replica += share (centre - sent)
//    ^                                                        │
//    └───────────────(the exchange carries it)────────────────┘
//
// That is the paper's (1 - share) replica + share centre for the replica that is in the mean, to
// which later training is added, as by Shen et al., "Faster Distributed Deep Net Training:
// Computation and Communication Decoupled Stochastic Gradient Descent" (arXiv 1906.12043).
//
// Several threads of the worker may train it at once. They compute with copies of it.
#pragma once

#include <span>
#include <vector>

#include "trainer/hogwild/shared_rows.h"
#include "trainer/loop/ps_model.h"
#include "trainer/ps/rows/update_rule.h"

namespace antdt::trainer {

class ElasticReplica final : public DenseReplica {
 public:
  // What an exchange carries, and so the rule of the centre's rows ("sum" and "mean").
  enum class Carries { kDistance, kReplica };

  // `values`: the first parameters; `rows`: the rows of the centre, which hold parameters one after
  // another, and then zeros, in rows of `width` floats. `share`: how much of the distance an
  // exchange takes away, in (0, 1].
  ElasticReplica(std::span<const float> values, ps::TableKeys rows, std::size_t width,
                 const ps::UpdateRule& rule, float share, Carries carries = Carries::kDistance);

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
  void remember_sent();

  const ps::TableKeys rows_;
  const float share_;
  const Carries carries_;
  const float learning_rate_;
  std::vector<float> sent_;  // kReplica: as it was sent last, or began
  hogwild::SharedRows shared_;
};

}  // namespace antdt::trainer
