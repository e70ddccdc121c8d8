#include "trainer/torch/replicas/elastic_replica.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::trainer {

ElasticReplica::ElasticReplica(std::span<const float> values, ps::TableKeys rows, std::size_t width,
                               const ps::UpdateRule& rule, float share, Carries carries)
    : rows_(std::move(rows)),
      share_(share),
      carries_(carries),
      learning_rate_(rule.learning_rate),
      shared_(values, width, rule) {
  ANTDT_CHECK(rows_.keys.size() == shared_.rows(), "{} rows of {} floats for {}", rows_.keys.size(),
              width, values.size());
  remember_sent();
}

void ElasticReplica::begin(std::span<const float> centre) {
  std::ranges::copy(centre.first(shared_.values().size()), shared_.values().begin());
  shared_.clear_state();
  remember_sent();
}

void ElasticReplica::remember_sent() {
  if (carries_ == Carries::kReplica) sent_.assign(shared_.values().begin(), shared_.values().end());
}

ps::TableGradient ElasticReplica::exchange(std::span<const float> centre) {
  const std::span<float> values = shared_.values();
  const bool carries_replica = carries_ == Carries::kReplica;
  const std::span<const float> known = carries_replica ? std::span<const float>(sent_) : values;
  ps::TableGradient carried{rows_.table, {rows_.keys, {}}};
  carried.gradient.values.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float d = share_ * (known[i] - centre[i]);
    values[i] -= d;
    carried.gradient.values[i] = carries_replica ? values[i] : d;
  }
  remember_sent();
  return carried;
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
