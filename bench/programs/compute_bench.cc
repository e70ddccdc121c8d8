// What computing a batch costs when the parameters are rows on servers, compared with a table that
// is in the worker: rows_of and compute of a PsModel, without any server, against compute of the
// engine for all-reduce. Batches are like Criteo's: 26 ids, 13 numbers, embeddings of 8; the
// logarithm of an id is uniformly distributed, as under Zipf's law. The two take turns, so that
// other load on the machine affects both equally.
//
//   antdt-compute-bench [MODEL, default deepfm] [BATCH, default 1024] [ID_ROWS, default 1000000]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/torch/ps_model.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/torch_engine.h"

namespace {

using namespace antdt;
using namespace antdt::trainer;

constexpr int kRounds = 60;

data::Examples clicks(const data::DataShape& shape, std::size_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  const auto rows_a_field = static_cast<double>(shape.id_rows / shape.id_width);
  data::Examples out;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t f = 0; f < shape.id_width; ++f) {
      const double of_field = std::pow(rows_a_field, unit(random)) - 1;
      out.ids.push_back(
          static_cast<std::int64_t>(static_cast<double>(f) * rows_a_field + of_field));
    }
    for (std::size_t d = 0; d < shape.dense_width; ++d) {
      out.dense.push_back(static_cast<float>(unit(random)));
    }
    out.labels.push_back(unit(random) < 0.25 ? 1.0F : 0.0F);
  }
  return out;
}

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// Times of each round in ms.
struct Times {
  std::vector<double> all;
  template <class F>
  auto add(F run) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    all.push_back(took.count());
    return result;
  }
  [[nodiscard]] double median() {
    std::ranges::sort(all);
    return all[all.size() / 2];
  }
};

void print(const char* what, Times& times, std::size_t batch) {
  const double ms = times.median();
  fmt::print("{:<24} {:>8.3f} ms {:>10.0f} samples/s\n", what, ms,
             static_cast<double>(batch) / ms * 1e3);
}

void measure(const TrainerConfig& config, const data::DataShape& shape, std::size_t batch_size) {
  const auto engine = checked(make_torch_engine(config, shape));
  const auto model = checked(make_torch_ps_model(config, shape));
  std::mt19937 random(1);
  Times whole;
  Times keys;
  Times compute;
  std::size_t rows = 0;
  for (int round = 0; round < kRounds; ++round) {
    const data::Examples batch = clicks(shape, batch_size, random);
    whole.add([&] { return checked(engine->compute(batch, false)); });
    const auto needed = keys.add([&] { return model->rows_of(batch); });
    std::vector<std::vector<float>> values;
    for (const auto& table : needed) {
      values.emplace_back(table.keys.size() * model->tables()[table.table].width, 0.01F);
    }
    compute.add([&] { return checked(model->compute(batch, needed, values)); });
    rows += needed.front().keys.size();
  }
  fmt::print("{}, {} records, {} of {} rows a batch\n", config.model, batch_size, rows / kRounds,
             shape.id_rows);
  print("whole table: compute", whole, batch_size);
  print("on servers: rows_of", keys, batch_size);
  print("on servers: compute", compute, batch_size);
}

}  // namespace

int main(int argc, char** argv) try {
  TrainerConfig config;
  if (argc > 1) config.model = argv[1];
  data::DataShape shape;
  shape.dense_width = 13;
  shape.id_width = 26;
  shape.id_rows = argc > 3 ? std::stoull(argv[3]) : 1'000'000;
  shape.classes = 2;
  set_compute_threads(PoolThreads{});
  measure(config, shape, argc > 2 ? std::stoull(argv[2]) : 1024);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "antdt-compute-bench: {}\n", e.what());
  return 1;
}
