// The content of a Registry.
#pragma once

#include <antdt/kit.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/emulated/pace.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/ps_model.h"
#include "trainer/loop/trainer_config.h"

namespace antdt {

namespace trainer {

// A model that is no module of LibTorch. It shows what AntDT does, and learns nothing.
struct Instrument {
  struct From {
    const TrainerConfig& config;
    const data::DataShape& shape;
    const std::function<Result<Pace>()>& pace;
  };
  std::function<Result<std::unique_ptr<Engine>>(const From&)> engine;
  std::function<Result<std::unique_ptr<PsModel>>(const From&)> served;
};

}  // namespace trainer

struct Registry::Impl {
  std::map<std::string, kit::ModelFactory> models;
  std::map<std::string, trainer::Instrument> instruments;
  std::map<std::string, kit::ReaderFactory> readers;
  std::map<std::string, kit::OptimizerFactory> optimizers;
  std::map<std::string, kit::MetricFactory> metrics;
  std::map<std::string, kit::ScheduleFactory> schedules;
  std::string problem;  // the first name that was registered twice, or has no factory
};

}  // namespace antdt
