// Serves the job's metrics, if job.toml says where: [metrics] listen.
#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/metrics/metrics_server.h"
#include "core/result.h"
#include "ctl/job/metrics/past_counts.h"

namespace antdt::jobd {

struct Shell;

class MetricsDesk {
 public:
  explicit MetricsDesk(Shell& shell) : shell_(shell) {}

  // If the address cannot be used, that is an error of the job's first daemon. A later one must not
  // fail because of it: it says so, and tries again.
  [[nodiscard]] Status listen();
  void tick();

 private:
  [[nodiscard]] Status try_to_listen();
  [[nodiscard]] std::string text();

  Shell& shell_;
  ctl::PastCounts past_;
  std::unique_ptr<metrics::MetricsServer> server_;
  MonoTime try_again_ = MonoTime::max();
};

}  // namespace antdt::jobd
