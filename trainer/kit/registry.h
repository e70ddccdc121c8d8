// The content of a Registry.
#pragma once

#include <antdt/kit.h>

#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "trainer/instruments/instruments.h"

namespace antdt {

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
