// What is trained: real data, a built-in model, and how the jobs of sync_quality.py train it.
#pragma once

#include <string>

#include "core/result.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::bench::replicas {

struct Task {
  std::string name;
  trainer::TrainerConfig config;
  data::DataShape shape;
  data::Examples train, test;
  std::uint32_t members = 0;
  std::uint32_t batch = 0;  // records of a step, of all members together
  std::uint32_t epochs = 1;
};

// "mlp" and "resnet" learn MNIST, of which `directory` has the four files, unpacked; "deepfm"
// learns clicks, of which it has train_10k.tsv. kUsage for another name.
[[nodiscard]] Result<Task> read_task(const std::string& name, const std::string& directory);

// kUsage unless all members have the same share of a step, which the records are enough for.
[[nodiscard]] Status check_division(const Task& task);

}  // namespace antdt::bench::replicas
