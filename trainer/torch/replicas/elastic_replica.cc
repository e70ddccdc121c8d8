#include "trainer/torch/replicas/elastic_replica.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {

ElasticReplica::ElasticReplica(std::span<float> values, std::span<const float> gradients,
                               ps::TableKeys rows, std::size_t width, ps::UpdateRule rule,
                               float share)
    : values_(values),
      gradients_(gradients),
      rows_(std::move(rows)),
      width_(width),
      share_(share),
      learning_rate_(rule.learning_rate),
      rule_(rule),
      state_(rule.state(static_cast<std::uint32_t>(values.size()))) {
  ANTDT_CHECK(rows_.keys.size() * width_ >= values_.size(), "{} rows of {} floats for {}",
              rows_.keys.size(), width_, values_.size());
}

void ElasticReplica::begin(std::span<const float> centre) {
  std::ranges::copy(centre.first(values_.size()), values_.begin());
  std::ranges::fill(state_, 0.0F);
}

ps::TableGradient ElasticReplica::exchange(std::span<const float> centre) {
  ps::TableGradient moved{rows_.table, {rows_.keys, {}}};
  moved.gradient.values.resize(rows_.keys.size() * width_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const float d = share_ * (values_[i] - centre[i]);
    values_[i] -= d;
    moved.gradient.values[i] = d;
  }
  return moved;
}

void ElasticReplica::set_rate(double factor) {
  rule_.learning_rate = learning_rate_ * static_cast<float>(factor);
}

void ElasticReplica::update(double weight) {
  if (weight <= 0) return;
  rule_.apply(values_, state_, gradients_, static_cast<float>(1 / weight));
}

}  // namespace antdt::trainer
