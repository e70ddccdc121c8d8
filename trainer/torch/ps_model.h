// A LibTorch model whose parameters are rows on servers.
#pragma once

#include <antdt/kit/parts.h>

#include <memory>
#include <vector>

#include "trainer/loop/ps_model.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

struct ServedModel {
  // models_needed() alike models, one for each thread that trains (trainer.shadow.threads). Made
  // for data whose ids are below 1: see without_rows.
  std::vector<std::shared_ptr<kit::Model>> models;
  kit::Metric metric;
};
[[nodiscard]] std::size_t models_needed(const TrainerConfig& config);
[[nodiscard]] data::DataShape without_rows(const data::DataShape& shape);

// A model for data of that shape. Its tables:
//   The tables that correspond to columns of the model's embedding table
//   (kit::Model::table_columns): a row an id. Rows begin as under all-reduce. "dense": the other
//   parameters in the flat order of FlatParameters, the gaps included. Row b is floats [1024 b,
//   1024 (b + 1)); the last is filled with zeros.
//
// Under sync = "shadow-…" the model keeps a replica of the dense parameters, and "dense" is its
// centre, with the rule "sum" (S-EASGD) or "mean" (S-MA, S-BMUF). Each of `shadow_threads` threads
// then computes a part of each batch, and updates the replica by that part's gradient without
// waiting for the others (Hogwild).
//
// Its memory depends on the batch and the dense parameters, not on shape.id_rows. The dense first
// values depend only on the seed. They differ from those of an all-reduce job, whose generator has
// drawn the table before.
//
// kUsage if servers do not have the update rule (they have no momentum), or if the model has no
// table, or has state that servers cannot hold.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                                   const data::DataShape& shape,
                                                                   ServedModel served);
// The built-in model that `config` names.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_torch_ps_model(const TrainerConfig& config,
                                                                   const data::DataShape& shape);

}  // namespace antdt::trainer
