// Engines for devices, which tests run on a processor; with ANTDT_TEST_DEVICE=cuda on a CUDA
// device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/local_group.h"
#include "tests/trainer/torch/engine_testing.h"
#include "trainer/torch/device/device_engine.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/models/model.h"

namespace antdt::trainer {

inline constexpr float kRounded = 2e-5F;

inline torch::Device test_device() {
  const char* const named = std::getenv("ANTDT_TEST_DEVICE");
  return named != nullptr && std::string(named) == "cuda" ? torch::Device(torch::kCUDA, 0)
                                                          : torch::Device(torch::kCPU);
}
// How much of what training changes rounding may: convolutions and sums of a device are less exact,
// and its sums into rows of a table have no order.
inline double rounding() { return test_device().is_cpu() ? 2e-3 : 5e-2; }

// How far four steps on a device may be from those on a processor: losses relative to a loss, and
// the distance relative to what was trained.
struct Bounds {
  double first_loss = 0, later_losses = 0, distance = 0;
};
// A ResNet on a device: rounding after each convolution flips signs before ReLUs, which moves some
// weights far. Emulated in float32 against float64, over 10 to 30 seeds: with a relative error of
// 5e-7 after each convolution (Winograd's algorithm, which cuDNN may choose, makes 1e-6) later
// losses were up to 3.5e-2 off, and the distance up to 0.17. The loss of the first step depends on
// no update: an error of 1e-5 moved it by at most 3e-6, while factors in TF32 moved it by 3.9e-5 in
// the median. So that bound is what finds TF32.
inline Bounds bounds_of(const std::string& model) {
  if (model == "resnet" && !test_device().is_cpu()) return {1e-5, 5e-2, 0.25};
  return {1e-4, 1e-4, rounding()};
}

// On a processor the same work has the same bits.
inline void expect_same(const Engine& a, const Engine& b) {
  if (test_device().is_cpu()) {
    EXPECT_EQ(state_of(a), state_of(b));
  } else {
    EXPECT_LT(max_difference(state_of(a), state_of(b)), 1e-4);
  }
}

inline Training training_of(std::shared_ptr<kit::Model> model) {
  Training training;
  training.model = std::move(model);
  training.metric = count_by_label;
  return training;
}

inline std::unique_ptr<Engine> device_engine(const TrainerConfig& config,
                                             const data::DataShape& shape,
                                             std::shared_ptr<kit::Model> model = nullptr) {
  DeviceChoice choice;
  choice.device = test_device();
  if (config.precision == "bf16") choice.precision = torch::kBFloat16;
  if (config.precision == "fp16") choice.precision = torch::kFloat16;
  if (!model) model = make_model(config, shape).value();
  Training training = training_of(std::move(model));
  training.table = table_gradients(config.embedding_gradients).value();
  auto engine = make_device_engine(
      std::move(training),
      {config.optimizer, config.learning_rate, config.momentum, config.weight_decay}, shape,
      choice);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

inline double alone(Engine& engine, const std::vector<data::Examples>& batches, double weight) {
  LocalGroup group(1);
  return step(engine, *group.member(0), batches, weight);
}

}  // namespace antdt::trainer
