// Makes what a job's configuration names, from what the program has registered.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/kit/registry.h"
#include "trainer/torch/device/choice.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::trainer {

// The data of one split; the reader is null if the split has no records.
struct Split {
  data::DataSummary summary;
  std::unique_ptr<data::RecordReader> reader;
};

// Must outlive what it makes, which may keep the Context that it was made from. Errors (kUsage)
// list the names that the program has.
class Maker {
 public:
  using MakePace = std::function<Result<Pace>()>;

  // An error if the registry or the configuration has one.
  [[nodiscard]] static Result<std::unique_ptr<Maker>> of(const Registry& registry,
                                                         const std::string& config_json);

  // Of pinned data only what is pinned to this domain can be read.
  void in_domain(std::string domain) { domain_ = std::move(domain); }
  [[nodiscard]] const TrainerConfig& config() const { return config_; }
  [[nodiscard]] Result<Split> open(data::Split which);
  // `pace`: the pace of the emulated model.
  // `device`: what it computes on; an engine for a processor fits only a plain choice.
  [[nodiscard]] Result<std::unique_ptr<Engine>> engine(const data::DataShape& shape,
                                                       const MakePace& pace,
                                                       const DeviceChoice& device = {});
  // What this worker computes on. An emulated model, and others that LibTorch does not compute,
  // have none of LibTorch's devices.
  [[nodiscard]] Result<DeviceChoice> device(WorkerId worker) const;
  [[nodiscard]] Result<std::unique_ptr<PsModel>> served(const data::DataShape& shape,
                                                        const MakePace& pace);
  // To be called once everything is made: whether each option of [user] was read.
  [[nodiscard]] Status options_read() const;

 private:
  Maker(const Registry::Impl& registry, std::string config_json, TrainerConfig config,
        kit::Options options);
  [[nodiscard]] kit::Context context(const data::DataShape& shape);
  [[nodiscard]] const Instrument* instrument() const;
  [[nodiscard]] Result<std::shared_ptr<kit::Model>> model(const kit::Context& context) const;
  [[nodiscard]] Result<kit::Metric> metric(const kit::Context& context) const;
  [[nodiscard]] Result<kit::Schedule> schedule(const kit::Context& context) const;
  [[nodiscard]] Result<std::unique_ptr<kit::Optimizer>> optimizer(const kit::Context& context,
                                                                  std::size_t floats) const;
  [[nodiscard]] Result<std::unique_ptr<data::RecordReader>> own_reader(data::Split which,
                                                                       data::DataSummary& summary);

  const Registry::Impl& registry_;
  const std::string config_json_;
  std::string domain_;
  const TrainerConfig config_;
  const kit::Options options_;
  const kit::Settings settings_;
  std::deque<kit::DataShape> shapes_;  // of the contexts
};

// Whether a worker of this program could begin to work for the job: makes everything that a worker
// needs.
[[nodiscard]] Status check_job(const Registry& registry, const std::string& config_json);

// The names that the program has registered, as JSON.
[[nodiscard]] std::string described(const Registry& registry);

}  // namespace antdt::trainer
