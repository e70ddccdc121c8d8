// One copy of the model, and the records that it trains.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "bench/gaia/images.h"
#include "core/result.h"
#include "trainer/loop/engine.h"

namespace antdt::bench::gaia {

// From now on this process computes with one thread.
void compute_with_one_thread();

// Batches of one domain's records, in a new order in each epoch.
class Batches {
 public:
  Batches(std::vector<std::uint32_t> rows, std::uint32_t batch, std::uint64_t seed);
  void next(const data::Examples& train, data::Examples& out);
  [[nodiscard]] const std::vector<std::uint32_t>& rows() const { return rows_; }

 private:
  std::vector<std::uint32_t> rows_;
  const std::uint32_t batch_;
  std::size_t at_ = 0;
  std::mt19937_64 random_;
};

// A perceptron with 128 hidden units, trained by SGD.
class Replica {
 public:
  [[nodiscard]] static Result<Replica> make(const data::DataShape& shape, double rate,
                                            double momentum, std::uint64_t seed);

  // Of the learning rate that it was made with, from now on.
  void set_rate(double factor) { engine_->set_rate(factor); }
  // One update by the sum of the gradients of these batches, divided by `weight`.
  [[nodiscard]] Status train(std::span<const data::Examples> batches, double weight);
  // As a fraction.
  [[nodiscard]] Result<double> accuracy(const data::Examples& examples);
  // Its parameters, gaps included.
  [[nodiscard]] std::span<float> values();

 private:
  Replica(std::unique_ptr<trainer::Collective> alone, std::unique_ptr<trainer::Engine> engine)
      : alone_(std::move(alone)), engine_(std::move(engine)) {}

  std::unique_ptr<trainer::Collective> alone_;  // a group of one
  std::unique_ptr<trainer::Engine> engine_;
};

}  // namespace antdt::bench::gaia
