#include "bench/replicas/task.h"

#include <nlohmann/json.hpp>

#include "bench/gaia/images.h"

namespace antdt::bench::replicas {
namespace {

data::Examples rows_of(const data::Examples& all, std::size_t from, std::size_t to) {
  data::Examples some;
  some.append(all, from, to);
  return some;
}

Status read_digits(const std::string& directory, Task& task) {
  ANTDT_TRY(auto images, gaia::read_images(directory));
  task.shape = images.shape;
  task.train = std::move(images.train);
  task.test = std::move(images.test);
  return {};
}

Status read_clicks(const std::string& directory, Task& task) {
  constexpr std::size_t kTrained = 8000;
  const nlohmann::json job{{"data",
                            {{"format", "criteo"},
                             {"paths", nlohmann::json::array({directory + "/train_10k.tsv"})},
                             {"hash_buckets", 16384}}}};
  ANTDT_TRY(const data::Examples all, gaia::read_all(job.dump(), data::Split::kTrain, task.shape));
  if (all.count <= kTrained) {
    return fail(ErrorKind::kUsage, "{}/train_10k.tsv has {} clicks: it must have more than {}",
                directory, all.count, kTrained);
  }
  task.train = rows_of(all, 0, kTrained);
  task.test = rows_of(all, kTrained, all.count);
  return {};
}

}  // namespace

Result<Task> read_task(const std::string& name, const std::string& directory) {
  Task task;
  ANTDT_TRY(task.config, trainer::parse_trainer_config("{}"));
  task.name = task.config.model = name;
  task.config.optimizer = name == "mlp" ? "sgd" : "adam";
  task.config.learning_rate = name == "mlp" ? 0.1 : 1e-3;
  if (name == "mlp") {
    task.config.hidden = {128};
    task.members = 16;
    task.batch = 512;
    ANTDT_RETURN_IF_ERROR(read_digits(directory, task));
  } else if (name == "resnet") {
    task.members = 4;
    task.batch = 64;
    ANTDT_RETURN_IF_ERROR(read_digits(directory, task));
    task.train = rows_of(task.train, 0, 6000);
    task.test = rows_of(task.test, 0, 2000);
  } else if (name == "deepfm") {
    task.members = 8;
    task.batch = 128;
    task.epochs = 2;
    ANTDT_RETURN_IF_ERROR(read_clicks(directory, task));
  } else {
    return fail(ErrorKind::kUsage, "'{}' is no task: use mlp, resnet or deepfm", name);
  }
  return task;
}

Status check_division(const Task& task) {
  if (task.members == 0 || task.batch == 0 || task.batch % task.members != 0) {
    return fail(
        ErrorKind::kUsage,
        "steps of {} records cannot be divided evenly among {} members: use a batch that is "
        "a multiple of the members",
        task.batch, task.members);
  }
  if (task.batch > task.train.count) {
    return fail(ErrorKind::kUsage, "a step of {} records is more than all {}", task.batch,
                task.train.count);
  }
  return {};
}

}  // namespace antdt::bench::replicas
