#include "trainer/torch/replicas/elastic_replica.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {

ElasticReplica::ElasticReplica(std::span<const float> values, ps::TableKeys rows, std::size_t width,
                               const ps::UpdateRule& rule, float share)
    : rows_(std::move(rows)),
      share_(share),
      learning_rate_(rule.learning_rate),
      shared_(values, width, rule) {
  ANTDT_CHECK(rows_.keys.size() == shared_.rows(), "{} rows of {} floats for {}", rows_.keys.size(),
              width, values.size());
}

void ElasticReplica::begin(std::span<const float> centre) {
  std::ranges::copy(centre.first(shared_.values().size()), shared_.values().begin());
  shared_.clear_state();
}

ps::TableGradient ElasticReplica::exchange(std::span<const float> centre) {
  const std::span<float> values = shared_.values();
  ps::TableGradient moved{rows_.table, {rows_.keys, {}}};
  moved.gradient.values.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float d = share_ * (values[i] - centre[i]);
    values[i] -= d;
    moved.gradient.values[i] = d;
  }
  return moved;
}

void ElasticReplica::set_rate(double factor) {
  shared_.set_learning_rate(learning_rate_ * static_cast<float>(factor));
}

void ElasticReplica::update(std::span<const float> gradients, double weight, std::size_t part,
                            std::size_t parts) {
  if (weight <= 0) return;
  shared_.update(gradients, static_cast<float>(1 / weight), part * shared_.rows() / parts);
}

}  // namespace antdt::trainer
