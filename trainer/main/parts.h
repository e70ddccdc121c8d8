// What a worker is made of, as its job's configuration names it. Each program has parts of its own:
// with LibTorch trainer/kit makes them, and without it trainer/instruments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/data/dataset.h"
#include "trainer/data/index/opening.h"
#include "trainer/emulated/pace.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/ps_model.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::trainer {

// The data of one split; the reader is null if the split has no records.
struct Split {
  data::DataSummary summary;
  std::unique_ptr<data::RecordReader> reader;
};

// What a worker computes on.
struct ComputeDevice {
  std::optional<std::uint32_t>
      cuda;          // its number among those that the process sees; none: a processor
  std::string name;  // of a CUDA device: its class, "cuda:NVIDIA H100 80GB HBM3"
};

// The pace of the emulated model.
using MakePace = std::function<Result<Pace>()>;

// Must outlive what it makes. Errors (kUsage) name what is wrong in job.toml.
class Parts {
 public:
  Parts(std::string config_json, TrainerConfig config)
      : config_json_(std::move(config_json)), config_(std::move(config)) {}
  virtual ~Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Of pinned data only what is pinned to this domain can be read.
  void in_domain(std::string domain) { domain_ = std::move(domain); }
  // Called with how far the opening of data is, which may take long, and with nothing when it is
  // over.
  void tell_of_data(data::Opening::Tell tell) { opening_ = data::Opening(std::move(tell)); }
  [[nodiscard]] const TrainerConfig& config() const { return config_; }
  [[nodiscard]] Result<Split> open(data::Split which);

  [[nodiscard]] virtual Result<ComputeDevice> device(WorkerId /*worker*/) const {
    return ComputeDevice{};
  }
  [[nodiscard]] virtual Result<std::unique_ptr<Engine>> engine(const data::DataShape& shape,
                                                               const MakePace& pace,
                                                               const ComputeDevice& device) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<PsModel>> served(const data::DataShape& shape,
                                                                const MakePace& pace) = 0;
  // Makes what a worker would train, for data of this shape, and throws it away.
  [[nodiscard]] virtual Status try_to_make(const data::DataShape& shape) = 0;
  // To be called once everything is made: whether each option of [user] was read.
  [[nodiscard]] virtual Status options_read() const { return {}; }

 private:
  [[nodiscard]] Result<Split> opened(data::Split which);
  // `trainer.reader`, which is not empty. Completes the summary of the data.
  [[nodiscard]] virtual Result<std::unique_ptr<data::RecordReader>> own_reader(
      data::Split which, data::DataSummary& summary) = 0;

  const std::string config_json_;
  const TrainerConfig config_;
  std::string domain_;
  data::Opening opening_;
};

// Whether a worker with these parts could begin to work for their job: makes everything that a
// worker needs.
[[nodiscard]] Status check_job(Parts& parts);

}  // namespace antdt::trainer
