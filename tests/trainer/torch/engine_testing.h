// Data, configurations and steps that tests of engines share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/os/fs.h"
#include "tests/trainer/saved_state.h"
#include "trainer/collective/collective.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {

inline data::DataShape click_shape() {
  data::DataShape shape;
  shape.dense_width = 3;
  shape.id_width = 4;
  shape.id_rows = 50;
  shape.classes = 2;
  return shape;
}
inline data::DataShape image_shape() {
  data::DataShape shape;
  shape.dense_width = 64;
  shape.classes = 3;
  shape.channels = 1;
  shape.height = 8;
  shape.width = 8;
  return shape;
}

inline TrainerConfig config_of(const std::string& model, const std::string& optimizer = "sgd") {
  TrainerConfig config = parse_trainer_config("{}").value();
  config.seed = 5;
  config.model = model;
  config.optimizer = optimizer;
  config.learning_rate = optimizer == "sgd" ? 0.1 : 0.01;
  config.embedding_dim = 4;
  config.hidden = {16, 8};
  return config;
}

// Clicks that depend on the first field and the first number.
inline data::Examples clicks(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  data::Examples out;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = static_cast<std::int64_t>(random() % 10);
    out.ids.push_back(first);
    for (int f = 1; f < 4; ++f) out.ids.push_back(10 + static_cast<std::int64_t>(random() % 40));
    const float x = static_cast<float>(random() % 1000) / 1000;
    out.dense.insert(out.dense.end(), {x, 0.5F, 1 - x});
    out.labels.push_back((first < 5) != (x > 0.8F) ? 1.0F : 0.0F);
  }
  return out;
}

// Images whose class is the third of the picture that is bright.
inline data::Examples images(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  data::Examples out;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = random() % 3;
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        const float noise = static_cast<float>(random() % 100) / 400;
        out.dense.push_back(noise + (column * 3 / 8 == label ? 0.7F : 0.0F));
      }
    }
    out.labels.push_back(static_cast<float>(label));
  }
  return out;
}

inline bool learns_images(const std::string& model) { return model == "mlp" || model == "resnet"; }
// What a model learns: images or clicks.
inline data::DataShape shape_for(const std::string& model) {
  return learns_images(model) ? image_shape() : click_shape();
}
inline data::Examples records_for(const std::string& model, std::size_t count, unsigned seed) {
  return learns_images(model) ? images(count, seed) : clicks(count, seed);
}

inline data::Examples rows(const data::Examples& of, const data::DataShape& shape, std::size_t from,
                           std::size_t to) {
  data::Examples out;
  out.count = to - from;
  const auto slice = [&](const auto& all, auto& part, std::size_t width) {
    part.assign(all.begin() + static_cast<std::ptrdiff_t>(from * width),
                all.begin() + static_cast<std::ptrdiff_t>(to * width));
  };
  slice(of.dense, out.dense, shape.dense_width);
  slice(of.ids, out.ids, shape.id_width);
  slice(of.labels, out.labels, 1);
  if (!of.weights.empty()) slice(of.weights, out.weights, 1);
  return out;
}

// Members may call it in threads of their own.
inline std::unique_ptr<Engine> engine_of(const TrainerConfig& config,
                                         const data::DataShape& shape) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);  // LibTorch's seed is one for the process
  auto engine = make_torch_engine(config, shape);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

inline std::vector<float> state_of(const Engine& engine) {
  const TempDir directory;
  EXPECT_TRUE(save_state(engine, directory.path(), Step{1}));
  const auto bytes = read_file(directory / "state.bin");
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  return values;
}

// All parts of an engine's state: the parameters, then what the optimizer keeps, its counter of
// steps, and buffers.
using Bits = std::vector<std::byte>;
inline std::vector<Bits> bits_of(Engine& engine) {
  std::vector<Bits> all;
  for (const auto& part : engine.state_parts()) all.emplace_back(part.begin(), part.end());
  return all;
}
inline std::vector<float> as_floats(const Bits& part) {
  std::vector<float> values(part.size() / sizeof(float));
  std::memcpy(values.data(), part.data(), values.size() * sizeof(float));
  return values;
}
inline std::vector<float> trained_floats(Engine& engine) { return as_floats(bits_of(engine)[0]); }

// The distance of two models. One flipped sign before a ReLU, which rounding alone can do and
// which depends on the processor, moves a few weights far, and so is no measure: their maximum.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(sum);
}

inline double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return most;
}

// One step over these micro-batches.
inline double step(Engine& engine, Collective& collective,
                   const std::vector<data::Examples>& batches, double weight) {
  engine.begin_step(collective);
  double loss = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto sums = engine.compute(batches[i], i + 1 == batches.size());
    EXPECT_TRUE(sums) << sums.error().message;
    loss += sums->loss;
  }
  EXPECT_TRUE(engine.finish_reduction());
  EXPECT_TRUE(engine.apply(weight));
  return loss;
}

// Takes over the bytes of another engine's parts, as a member that has no state.
inline void take_over(Engine& to, Engine& from) {
  const auto source = from.state_parts();
  const auto target = to.state_parts();
  ASSERT_EQ(source.size(), target.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    ASSERT_EQ(source[i].size(), target[i].size()) << "part " << i;
    std::copy(source[i].begin(), source[i].end(), target[i].begin());
  }
  to.state_replaced();
}

}  // namespace antdt::trainer
