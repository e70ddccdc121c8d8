#include "bench/gaia/replica.h"

#include <algorithm>

#include "core/check.h"
#include "trainer/collective/prepare.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::bench::gaia {

void compute_with_one_thread() { trainer::set_compute_threads({}); }

Batches::Batches(std::vector<std::uint32_t> rows, std::uint32_t batch, std::uint64_t seed)
    : rows_(std::move(rows)), batch_(batch), at_(rows_.size()), random_(seed) {
  ANTDT_CHECK(batch_ <= rows_.size(), "batches of {} of {} records", batch_, rows_.size());
}

void Batches::next(const data::Examples& train, data::Examples& out) {
  if (at_ + batch_ > rows_.size()) {
    std::ranges::shuffle(rows_, random_);
    at_ = 0;
  }
  take_rows(train, std::span(rows_).subspan(at_, batch_), out);
  at_ += batch_;
}

Result<Replica> Replica::make(const data::DataShape& shape, double rate, double momentum,
                              std::uint64_t seed) {
  trainer::TrainerConfig config;
  config.model = "mlp";
  config.hidden = {128};
  config.optimizer = "sgd";
  config.learning_rate = rate;
  config.momentum = momentum;
  config.embedding_gradients = "dense";
  config.seed = seed;
  ANTDT_TRY(auto engine, trainer::make_torch_engine(config, shape));
  ANTDT_TRY(const auto builder, trainer::prepare_collective(0, 1, {}));
  const trainer::MemberAddress address = builder->address();
  ANTDT_TRY(auto alone, builder->connect(std::span(&address, 1), {}));
  return Replica(std::move(alone), std::move(engine));
}

Status Replica::train(std::span<const data::Examples> batches, double weight) {
  engine_->begin_step(*alone_);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    ANTDT_RETURN_IF_ERROR(engine_->compute(batches[i], i + 1 == batches.size()));
  }
  ANTDT_RETURN_IF_ERROR(engine_->finish_reduction());
  return engine_->apply(weight);
}

Result<double> Replica::accuracy(const data::Examples& examples) {
  ANTDT_TRY(const auto found, engine_->evaluate(examples));
  return static_cast<double>(found.correct) / static_cast<double>(found.records);
}

std::span<float> Replica::values() {
  const std::span<std::byte> bytes = engine_->state_parts().front();
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace antdt::bench::gaia
