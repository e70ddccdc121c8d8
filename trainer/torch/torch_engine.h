// A LibTorch model as an Engine.
#pragma once

#include <antdt/kit/parts.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/loop/engine.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// What is sent of the gradient of a model's embedding table, and what is updated in a step.
enum class TableGradients {
  kDense,   // the whole table is sent and updated
  kSparse,  // only the rows of the batch are sent and updated
  kAuto,    // rows or the whole table are sent, whichever is quicker, and the results are kDense's
};
// Of trainer.embedding_gradients; kUsage if it is another text.
[[nodiscard]] Result<TableGradients> table_gradients(const std::string& named);

// What a worker trains: made by its program, or built in.
struct Training {
  std::shared_ptr<kit::Model> model;
  std::unique_ptr<kit::Optimizer> optimizer;  // for as many floats as the model's parameters need
  kit::Metric metric;
  kit::Schedule schedule;  // none: the learning rate stays
  TableGradients table = TableGradients::kDense;
  std::uint32_t threads = 1;  // compute with at most so many (threads/compute_threads.h)
};
// How many floats the trained parameters of a model need, gaps included. kUsage: see
// FlatParameters.
[[nodiscard]] Result<std::size_t> floats_of(const kit::Model& model);
[[nodiscard]] Result<std::unique_ptr<Engine>> make_torch_engine(Training training,
                                                                const data::DataShape& shape);

// An engine whose embedding rows are on servers (Engine::hosted_rows), with all else as above.
// `training` has no optimizer yet, and a model that was made for data without rows (without_rows in
// ps_model.h). kUsage if the model has no embedding table.
using MakeOptimizer = std::function<Result<std::unique_ptr<kit::Optimizer>>(std::size_t floats)>;
[[nodiscard]] Result<std::unique_ptr<Engine>> make_served_engine(const TrainerConfig& config,
                                                                 const data::DataShape& shape,
                                                                 Training training,
                                                                 const MakeOptimizer& optimizer);

// The built-in model and optimizer of `config` for data of this shape. kUsage if they cannot be
// made.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_torch_engine(const TrainerConfig& config,
                                                                const data::DataShape& shape);

}  // namespace antdt::trainer
