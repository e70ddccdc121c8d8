// A LibTorch model whose parameters are rows on servers.
#pragma once

#include <memory>

#include "trainer/loop/ps_model.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// The model of `config` for data of that shape. Its tables:
//   The model's embedding table under its own name ("table"; of "lr": "weights"),
//   where the data has ids: a row an id. Rows begin as under all-reduce.
//   "first_order", of deepfm and xdeepfm: a row of one float an id, the column of
//   their table that begins with zeros; "table" has the embeddings alone.
//   "dense": the other parameters in the flat order of FlatParameters, the gaps
//   included. Row b is floats [1024 b, 1024 (b + 1)); the last is filled with zeros.
//
// What it holds follows the batch and the dense parameters; it does not grow with
// shape.id_rows. The dense first values follow from the seed alone: they are not
// those of an all-reduce job, whose generator has drawn the table before.
//
// kUsage when the model or the update rule cannot be had: servers know no momentum.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                                   const data::DataShape& shape);

}  // namespace antdt::trainer
