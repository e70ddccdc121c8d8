// Recorded batch times of several workers, to be replayed as slowdowns: CSV with a header and at
// least the columns `worker` (a number), `time` (by which rows are ordered) and `batch_time_norm`
// (time of a batch, in any unit). The mini-batch times of Alibaba's PAI clusters have this format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt::drill {

class Trace {
 public:
  // The error (kUsage) names the line and what is wrong with it, but not the file.
  [[nodiscard]] static Result<Trace> parse(std::string_view csv);

  // By row: times divided by the least time of the whole trace, so at least 1. Worker i uses column
  // i modulo workers(). Never empty.
  [[nodiscard]] const std::vector<double>& slowdowns(std::uint32_t worker) const {
    return by_worker_[worker % by_worker_.size()];
  }
  [[nodiscard]] std::size_t workers() const { return by_worker_.size(); }

 private:
  std::vector<std::vector<double>> by_worker_;
};

// By the path that rules name.
using Traces = std::map<std::string, std::shared_ptr<const Trace>>;

}  // namespace antdt::drill
