// Makes what a job's configuration names, from what the program has registered.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "trainer/kit/registry.h"
#include "trainer/main/run.h"
#include "trainer/torch/device/choice.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {

// What it makes may keep the Context that it was made from. Errors (kUsage) list the names that the
// program has.
class Maker final : public Parts {
 public:
  // An error if the registry or the configuration has one.
  [[nodiscard]] static Result<std::unique_ptr<Maker>> of(const Registry& registry,
                                                         const std::string& config_json);

  // An emulated model, and others that LibTorch does not compute, have none of LibTorch's devices.
  [[nodiscard]] Result<ComputeDevice> device(WorkerId worker) const override;
  [[nodiscard]] Result<std::unique_ptr<Engine>> engine(const data::DataShape& shape,
                                                       const MakePace& pace,
                                                       const ComputeDevice& device) override;
  [[nodiscard]] Result<std::unique_ptr<PsModel>> served(const data::DataShape& shape,
                                                        const MakePace& pace) override;
  [[nodiscard]] Status try_to_make(const data::DataShape& shape) override;
  [[nodiscard]] Status options_read() const override;

 private:
  Maker(const Registry::Impl& registry, std::string config_json, TrainerConfig config,
        kit::Options options);
  // An engine for a processor fits only a plain choice.
  [[nodiscard]] Result<std::unique_ptr<Engine>> torch_engine(const data::DataShape& shape,
                                                             const DeviceChoice& choice);
  [[nodiscard]] kit::Context context(const data::DataShape& shape);
  [[nodiscard]] const Instrument* instrument() const;
  [[nodiscard]] Result<std::shared_ptr<kit::Model>> model(const kit::Context& context) const;
  [[nodiscard]] Result<kit::Metric> metric(const kit::Context& context) const;
  [[nodiscard]] Result<kit::Schedule> schedule(const kit::Context& context) const;
  [[nodiscard]] Result<std::unique_ptr<kit::Optimizer>> optimizer(const kit::Context& context,
                                                                  std::size_t floats) const;
  [[nodiscard]] Result<std::unique_ptr<data::RecordReader>> own_reader(
      data::Split which, data::DataSummary& summary) override;

  const Registry::Impl& registry_;
  const kit::Options options_;
  const kit::Settings settings_;
  std::deque<kit::DataShape> shapes_;  // of the contexts
};

// Its worker. `registry` must outlive it.
[[nodiscard]] WorkerProgram program_of(const Registry& registry);

}  // namespace antdt::trainer
