// The models that are no modules of LibTorch: `tally`, `tally3` and `emulated`. They show what
// AntDT does, and learn nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/main/run.h"

namespace antdt::trainer {

struct Instrument {
  struct From {
    const TrainerConfig& config;
    const data::DataShape& shape;
    const MakePace& pace;
  };
  std::function<Result<std::unique_ptr<Engine>>(const From&)> engine;
  std::function<Result<std::unique_ptr<PsModel>>(const From&)> served;
};

// By the name that job.toml gives as trainer.model.
[[nodiscard]] std::map<std::string, Instrument> all_instruments();

// A worker with these models and nothing else, which does not load LibTorch.
[[nodiscard]] WorkerProgram instrument_program();

}  // namespace antdt::trainer
